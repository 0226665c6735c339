"""Writes `vectors.jsonl` and `tokens.jsonl`: what the published model and its tokenizer make of texts.

    python make.py DIRECTORY

DIRECTORY has the files of all-MiniLM-L6-v2 (`cargo xtask model` leaves them below `target/model`). Needs numpy, scipy,
safetensors and tokenizers. All arithmetic is in single precision with the weights as published. Vectors are 384 whole
numbers of 16 bits, little-endian, base64: each is a number of the vector times 32767.
"""

import base64, json, sys
import numpy as np
from safetensors.numpy import load_file
from scipy.special import erf
from tokenizers import Tokenizer

MAX_TOKENS = 128
HERE = __file__.rsplit("/", 1)[0]
weights = load_file(sys.argv[1] + "/model.safetensors")
tokenizer = Tokenizer.from_file(sys.argv[1] + "/tokenizer.json")
tokenizer.no_padding()
tokenizer.no_truncation()

SHORT = """
hi
a
delete
weather
GitHub
getUserById
get_user_by_id
read a file
list files
send email
convert currency USD to EUR
days between two dates
What's the weather in Paris?
translate "good morning" into Japanese
How far is the moon?
resize image to 800x600
stock price of AAPL
SELECT * FROM users WHERE id = 5;
https://example.com/a/b?c=d&e=f#g
C:\\Users\\me\\Documents\\report (final).docx
{"name": "fetch", "arguments": {"url": "x"}}
def add(a, b): return a + b
3.14159 26535 89793
+49 (0)30 1234-567
no
the the the the the the
asdfghjkl qwertyuiop zxcvbnm
I don't know; maybe we shouldn't.
naïve café résumé Ångström
crée un fichier et envoie-le par courriel
¿Dónde está la biblioteca?
Übermäßig große Straßenbahnhaltestelle
Привет, как дела?
数据库 查询
東京の天気はどうですか
안녕하세요 세계
مرحبا بالعالم
שלום עולם
नमस्ते दुनिया
สวัสดีชาวโลก
🙂
🚀🚀🚀 deploy 🚀
👩‍👩‍👧‍👦 family
≤ ≥ ≠ ∞ ∑
… — – “quotes” ‘single’
[CLS] [SEP] [MASK]
tab\tand\nnewline\r\nand   spaces
""".strip("\n").split("\n")
SHORT = [line.replace("\\t", "\t").replace("\\n", "\n").replace("\\r", "\r") for line in SHORT]
LONG = """
Send an email to John about tomorrow's meeting and add it to my calendar.
Search the web for the latest news about electric cars and summarise the first three results.
Read and parse a JSON file, then post its contents to the given webhook.
Creates a new issue in a repository, with a title, a body, labels and people it is assigned to.
Returns the current weather conditions for a city: temperature, humidity, wind speed and a short description.
Book a table for two at an Italian restaurant near the central station on Friday evening at half past seven.
Find all open pull requests older than thirty days, comment on each that it will be closed, and label it as stale.
Query the customer database for everyone who bought something in the last quarter but not since, export the list as CSV and upload it to the marketing folder.
The quick brown fox jumps over the lazy dog while the five boxing wizards jump quickly and pack my box with five dozen liquor jugs.
Translate the attached contract from German to English, keep the numbering of the paragraphs, and mark every place where the meaning is uncertain.
Calculate the monthly payment of a loan of 250000 euros at 3.7 percent interest over 25 years, and show how much of the first payment is interest.
Take the photos from last weekend, remove the blurry ones, resize the rest to a width of 1200 pixels, and make an album that only the family can see.
Kubernetes pods in namespace prod-eu-west-1 keep restarting with OOMKilled; fetch their logs, the memory limits from the deployment and the last five events.
Gets historical candlestick data (open, high, low, close, volume) for a trading pair such as BTC/USDT between two timestamps in milliseconds; at most 1000 candles are returned per request.
""".strip("\n").split("\n")
PARAGRAPHS = [
    " ".join(LONG[:3]),
    " ".join(LONG[3:6]),
    " ".join(LONG[6:9]),
    " ".join(LONG[9:14]),
    " ".join(SHORT[:27]),
    " ".join(SHORT[27:]),
    "word " * 126,
    "x" * 100,
    "x" * 101,
    "more than there is room for " * 40,
    "",
    " ",
]
ODD = [
    "\x00a\x01b\x7fc", "a\ufffdb", "a\u200bb\u200dc\ufeffd", "\u00ada\u00adb", "a\u00a0b\u2003c\u3000d\u2028e\u0085f",
    "ＦＵＬＬ ｗｉｄｔｈ １２３", "ﬁne oﬃce", "İstanbul ıi", "ΑΣ ΟΔΟΣ", "ǅungla Ǆ", "ẞ ß", "e\u0301 \u0301 \u0301a", "Å Å",
    "한국어", "가각", "㐀𠀀豈丽", "日本語テキスト、ひらがな。", "中English文mixed",
    "a_b-c.d,e;f:g!h?i", "$5 £6 €7 ¥8 ^` ~|<=>+", "«a» ‹b› „c‟", "a।b॥c", "a،b؛c؟", "٣٤٥ ½ ² ₂", "♥ ☃ ★ ©®™ °",
    "🇫🇷🇩🇪 👍🏽 1️⃣ ❤️", "\U0001F9D1\u200D\U0001F680", "\ue000 private \U000F0000", "\u0378 unassigned", "a\u0338b q\u0307\u0323",
    "क्षेत्र", "ประเทศไทย", "ខ្មែរ", "தமிழ்", "עִבְרִית", "عَرَبِيّ", "Việt Nam Tiếng", "Ḿậḿ",
    "[UNK]", "[unk] [cls]", "x[SEP]y", "[PAD][MASK]", "[CLS", "##ing ## #", "un##able",
    "antidisestablishmentarianism", "supercalifragilisticexpialidocious", "ed" * 50, "ed" * 51, "é" * 100, "é" * 101,
    "\t\n\r ", "\x0b\x0c", "a\x0bb\x1cc", "don't can't it's", "U.S.A. e.g. i.e.", "1,000,000.00", "a/b\\c", "@user #tag",
    "\u2581meta", "Ⅷ ⅷ", "ａ", "𝒜𝓁𝓅𝒽𝒶 𝟙𝟚", "ĳ ĸ ŉ", "\u1e9b\u0323", "\ufdfa", "ŁÓDŹ łódź", "Øre øre Đ đ", "\u0130\u0307",
]


def norm(x, name):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt(x.var(-1, keepdims=True) + 1e-12) * weights[name + ".weight"] + weights[name + ".bias"]


def linear(x, name):
    return x @ weights[name + ".weight"].T + weights[name + ".bias"]


def vector(ids):
    x = weights["embeddings.word_embeddings.weight"][ids] + weights["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for layer in range(6):
        name = f"encoder.layer.{layer}."
        query, key, value = (
            linear(x, name + "attention.self." + part).reshape(len(ids), 12, 32).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(32))
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        found = (scores / scores.sum(-1, keepdims=True) @ value).transpose(1, 0, 2).reshape(len(ids), 384)
        x = norm(x + linear(found, name + "attention.output.dense"), name + "attention.output.LayerNorm")
        inner = linear(x, name + "intermediate.dense")
        inner = inner * 0.5 * (1 + erf(inner / np.float32(np.sqrt(2))))
        x = norm(x + linear(inner.astype(np.float32), name + "output.dense"), name + "output.LayerNorm")
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


def tokens(text):
    ids = tokenizer.encode(text).ids
    return ids if len(ids) <= MAX_TOKENS else ids[: MAX_TOKENS - 1] + ids[-1:]


def packed(ids):
    return base64.b64encode(np.rint(vector(ids) * 32767).astype("<i2").tobytes()).decode()


with open(HERE + "/vectors.jsonl", "w") as file:
    for text in SHORT + LONG + PARAGRAPHS:
        ids = tokens(text)
        file.write(json.dumps({"text": text, "tokens": ids, "vector": packed(ids)}) + "\n")
with open(HERE + "/tokens.jsonl", "w") as file:
    for text in ODD:
        file.write(json.dumps({"text": text, "tokens": tokens(text)}) + "\n")

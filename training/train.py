"""Trains the retriever: requests and the tools that serve them come to lie near each other.

InfoNCE in both directions over batches of one source, with hard negatives. Embeddings and the lower layers stay as
they are, and the result is averaged with the original weights, which keeps general similarity.
"""

import argparse
import json
import math
import random
import time
from collections import Counter, defaultdict
from pathlib import Path

import torch

import data
import mine
import model

TEMPERATURE = 0.05
# The weight of request → tool; the rest is tool → request.
FORWARD = 0.8
# Hard negatives per pair, on average.
HARD = 0.6
FROZEN_LAYERS = 2
RATE, LAYER_DECAY, WEIGHT_DECAY, WARM_UP = 8e-5, 0.85, 0.01, 0.1
# A source of four times as many pairs is drawn from twice as often.
SIZE_EXPONENT = 0.5


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder with pairs.jsonl.gz and tools.jsonl.gz")
    parser.add_argument("--out", required=True, help="model directory to write")
    parser.add_argument("--without", default="", help="comma-separated sets to leave out of training")
    parser.add_argument("--from", dest="source", help="model directory to start from; default: the published model")
    parser.add_argument("--steps", type=int, default=220)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--tokens", type=int, nargs=2, default=[56, 64], help="longest request and tool text")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--share", type=float, default=0.5, help="share of the trained weights in the average")
    parser.add_argument("--bf16", action="store_true", help="multiply in bfloat16: a fifth of the time where the processor can")
    parser.add_argument("--mine", action="store_true", help="mine hard negatives again with the starting model")
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    torch.set_flush_denormal(True)
    torch.use_deterministic_algorithms(True)
    source = Path(args.source) if args.source else model.published()
    encoder = model.Encoder(source, bf16=args.bf16)
    tools, pairs = data.read(args.data)
    names = [name for name in args.without.split(",") if name]
    unknown = set(names) - {data.set_of(pair.source) for pair in pairs}
    if unknown:
        raise SystemExit(f"--without: no pairs are of `{', '.join(sorted(unknown))}`")
    tools, pairs = data.without(tools, pairs, names)
    if args.mine or not any(pair.negatives for pair in pairs):
        print("mining hard negatives", flush=True)
        mine.mine(encoder, tools, pairs)
    counts = Counter(pair.source for pair in pairs)
    print(f"{len(pairs)} pairs of {len(counts)} sources", flush=True)

    losses = fit(encoder, tools, pairs, args)
    model.write(encoder, source, args.out, args.share)
    record = {
        "without": sorted(data.left_out(names)),
        "pairs": dict(sorted(counts.items())),
        "steps": args.steps,
        "batch": args.batch,
        "tokens": args.tokens,
        "seed": args.seed,
        "share": args.share,
        "bf16": args.bf16,
        "mined": args.mine,
        "first_losses": losses[:5],
        "last_losses": losses[-5:],
    }
    (Path(args.out) / "training.json").write_text(json.dumps(record, indent=1) + "\n")


def fit(encoder, tools, pairs, args):
    chance, steps = random.Random(args.seed), args.steps
    groups = parameter_groups(encoder.network)
    optimiser = torch.optim.AdamW(groups, weight_decay=WEIGHT_DECAY)
    warm = max(1, round(WARM_UP * steps))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / warm, max(0.0, (steps - step) / max(1, steps - warm)))
    )
    by_source = defaultdict(list)
    for pair in pairs:
        by_source[pair.source].append(pair)
    sources = sorted(by_source)
    weights = [len(by_source[source]) ** SIZE_EXPONENT for source in sources]
    losses, started = [], time.time()
    encoder.network.train()
    for step in range(steps):
        batch = draw(by_source[chance.choices(sources, weights)[0]], args.batch, chance)
        loss = batch_loss(encoder, tools, batch, args.tokens, chance)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(encoder.network.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        losses.append(round(loss.item(), 4))
        if (step + 1) % 20 == 0:
            recent = sum(losses[-20:]) / 20
            print(f"step {step + 1}: loss {recent:.3f}, {time.time() - started:.0f} s", flush=True)
    return losses


def parameter_groups(network):
    """The trained parameters; lower layers learn more slowly."""
    for parameter in network.embeddings.parameters():
        parameter.requires_grad_(False)
    groups, layers = [], network.encoder.layer
    for at, layer in enumerate(layers):
        if at < FROZEN_LAYERS:
            for parameter in layer.parameters():
                parameter.requires_grad_(False)
        else:
            groups.append({"params": list(layer.parameters()), "lr": RATE * LAYER_DECAY ** (len(layers) - 1 - at)})
    return groups


def draw(pairs, size, chance):
    """A batch of one source, no request or tool twice where there are enough."""
    batch, seen = [], set()
    for pair in chance.sample(pairs, min(len(pairs), 4 * size)):
        if pair.request not in seen and pair.tool not in seen:
            batch.append(pair)
            seen |= {pair.request, pair.tool}
        if len(batch) == size:
            break
    return batch


def batch_loss(encoder, tools, batch, tokens, chance):
    hard = []
    for pair in batch:
        if pair.negatives and chance.random() < HARD:
            hard.append(tools[chance.choice(pair.negatives)])
    requests = encoder.embed([pair.request for pair in batch], tokens[0])
    texts = encoder.embed([pair.positive for pair in batch] + [tool.text for tool in hard], tokens[1])
    logits = requests @ texts.T / TEMPERATURE
    candidates = [tools.get(pair.tool) for pair in batch] + hard
    masked = torch.tensor(
        [[at != own and may_be_right(pair, candidate, tools) for at, candidate in enumerate(candidates)]
         for own, pair in enumerate(batch)]
    )
    logits = logits.masked_fill(masked, -math.inf)
    right = torch.arange(len(batch))
    forward = torch.nn.functional.cross_entropy(logits, right)
    backward = torch.nn.functional.cross_entropy(logits[:, : len(batch)].T, right)
    return FORWARD * forward + (1 - FORWARD) * backward


def may_be_right(pair, candidate, tools):
    """Whether a candidate may answer the request as well, so that it is no negative."""
    right = tools.get(pair.tool)
    if candidate is None or right is None:
        return False
    same_name = candidate.name and candidate.name == right.name
    same_description = candidate.description and candidate.description == right.description
    return candidate.key in pair.golds or candidate.key == right.key or bool(same_name or same_description)


if __name__ == "__main__":
    main()

"""Reads training pairs and the tools that they name, and tells which of them a held-out set may not see.

A folder of training data has `pairs.jsonl.gz` (`request`, `positive`, `source`, `tool`, `golds`, `negatives`) and
`tools.jsonl.gz` (`tool`, `catalogue`, `text`, `server`, `description`). Both may also be there without `.gz`.
"""

import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path

# Sets whose catalogues share servers: leaving out one of them leaves out the other.
INSEPARABLE = [{"toolbench", "traject"}]

# Catalogues that are no set of their own but contain tools of one: the tools that both have are dropped with it.
OVERLAPS = {"livemcp": {"mcp"}}

# The longest description prefix that is compared to tell whether two tools are the same.
SAME_DESCRIPTION = 200


@dataclass(frozen=True)
class Tool:
    key: str
    catalogue: str
    text: str
    server: str
    name: str
    description: str


@dataclass
class Pair:
    request: str
    positive: str
    source: str
    tool: str
    golds: frozenset
    negatives: list


def set_of(source):
    """The set that a source was made from: `traject_part` and `traject_synth` are made from `traject`."""
    return re.sub(r"_(part|synth|steps)$", "", source)


def read(folder):
    """Tools by key, and pairs in the order of the file."""
    tools = {}
    for row in lines(Path(folder), "tools.jsonl"):
        tool = Tool(
            row["tool"],
            row["catalogue"],
            row["text"],
            row.get("server") or "",
            row.get("name") or "",
            row.get("description") or "",
        )
        tools[tool.key] = tool
    pairs = [
        Pair(
            row["request"],
            row["positive"],
            row["source"],
            row["tool"],
            frozenset(row["golds"]),
            [key for key in row.get("negatives", []) if key in tools],
        )
        for row in lines(Path(folder), "pairs.jsonl")
    ]
    return tools, pairs


def lines(folder, name):
    packed = folder / f"{name}.gz"
    opened = gzip.open(packed, "rt", encoding="utf-8") if packed.exists() else open(folder / name, encoding="utf-8")
    with opened as file:
        for line in file:
            yield json.loads(line)


def left_out(names):
    """The sets that are left out with `names`: also those that share servers with them."""
    out = set(names)
    for together in INSEPARABLE:
        if out & together:
            out |= together
    return out


def without(tools, pairs, names):
    """The tools and pairs that remain when the sets `names` are left out, with everything made from them."""
    out = left_out(names)
    unseen = {tool.key for tool in tools.values() if tool.catalogue in out}
    for name in out:
        known = [tool for tool in tools.values() if tool.catalogue == name]
        descriptions = {prefix(tool) for tool in known if len(tool.description) > 20}
        servers = {tool.server.lower() for tool in known if tool.server}
        for tool in tools.values():
            # A shared name of a server is enough within a catalogue of the same kind of servers.
            shares_server = tool.catalogue in OVERLAPS.get(name, ()) and tool.server.lower() in servers
            if shares_server or prefix(tool) in descriptions:
                unseen.add(tool.key)
    kept_tools = {key: tool for key, tool in tools.items() if key not in unseen}
    requests = {normalised(pair.request) for pair in pairs if set_of(pair.source) in out}
    kept = [
        pair
        for pair in pairs
        if set_of(pair.source) not in out
        and pair.tool not in unseen
        and normalised(pair.request) not in requests
    ]
    for pair in kept:
        pair.negatives = [key for key in pair.negatives if key in kept_tools]
    return kept_tools, kept


def prefix(tool):
    return tool.description[:SAME_DESCRIPTION]


def normalised(text):
    return " ".join(re.findall(r"\w+", text.lower()))

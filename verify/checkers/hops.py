"""Who hears of whom after some layers when every node reads a given few in each layer: replay by sets.

Data: ``reads``, for each node (from 0) the nodes that it reads in one layer (itself is always kept);
``layers``; ``reached`` and ``unreached``, pairs (reader, source) of which at least one is stated.
"""

from collections.abc import Mapping
from typing import Any

from verify.checkers.reading import Wrong, natural, word
from verify.checkers.terms import IllFormed
from verify.model.evidence import Check, Obligation

NAME = "hop checker"
KINDS = frozenset({"hops"})


def judge(obligation: Obligation) -> Check:
    """``proved`` when exactly the stated pairs are, and are not, connected after the stated layers."""
    return word(NAME, obligation, _hops)


def _hops(data: Mapping[str, Any]) -> str:
    reads = [{natural(source) for source in row} for row in data["reads"]]
    if any(source >= len(reads) for row in reads for source in row):
        raise Wrong(f"a node beyond the {len(reads)} given is read")
    layers = natural(data["layers"])
    known = [{node} for node in range(len(reads))]
    for _ in range(layers):
        known = [known[node].union(*(known[source] for source in row)) for node, row in enumerate(reads)]
    stated = 0
    for name, wanted in (("reached", True), ("unreached", False)):
        for reader, source in data.get(name, []):
            stated += 1
            if (natural(source) in known[natural(reader)]) is not wanted:
                raise Wrong(
                    f"after {layers} layers {reader} {'does not hear' if wanted else 'hears'} of {source}"
                )
    if not stated:
        raise IllFormed("no pair is stated")
    return f"{len(reads)} nodes, {layers} layers, {stated} pairs as stated"

"""Attention graphs as obligations: windows, pooling slots, global tokens."""

from collections.abc import Iterable
from typing import Any

from verify.model.evidence import Obligation

Reads = list[list[int]]


def hops(label: str, reads: Reads, layers: int, **pairs: list[list[int]]) -> Obligation:
    """The obligation of kind ``hops``; ``pairs`` are ``reached`` and ``unreached``."""
    data: dict[str, Any] = {"reads": reads, "layers": layers, **pairs}
    return Obligation("hops", label, "E", data)


def window(tokens: int, width: int) -> Reads:
    """Causal sliding window: each token reads the ``width`` tokens before it."""
    return [list(range(max(0, t - width), t)) for t in range(tokens)]


def slots(tokens: int, width: int, stride: int) -> Reads:
    """Tokens 0 … tokens − 1, then one slot per ``stride`` tokens, which reads ``width`` tokens from there.

    A token reads the slots that hold it, so two tokens share a slot iff one hears of the other in 2 layers.
    """
    held = [range(start, min(start + width, tokens)) for start in range(0, tokens, stride)]
    readers = [[tokens + slot for slot, inside in enumerate(held) if t in inside] for t in range(tokens)]
    return readers + [list(inside) for inside in held]


def neighbours(tokens: Iterable[int]) -> list[list[int]]:
    """The pairs (t + 1, t)."""
    return [[t + 1, t] for t in tokens]

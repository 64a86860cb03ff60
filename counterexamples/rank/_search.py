"""The search behind rank.gap: the blocks of the softmax matrix that give the best floors."""

from itertools import combinations
from typing import Any

from counterexamples.rank.gap import FLOORS, KEYS, QUERIES
from verify.numbers.convert import to_fraction

DIGITS = 9
"""Floors that agree to this many digits count as one; then the first block in alphabetical order is taken."""


def blocks() -> list[dict[str, Any]]:
    """For each rank m in the claim the m + 1 tokens whose block has the smallest ‖inverse‖, in floats."""
    import numpy

    queries, keys = (numpy.array([float(to_fraction(x)) for x in row]) for row in (QUERIES, KEYS))
    scores = numpy.exp(numpy.outer(queries, keys))
    weights = scores / scores.sum(axis=1, keepdims=True)

    def size(tokens: tuple[int, ...]) -> str:
        inverse = numpy.linalg.inv(weights[numpy.ix_(tokens, tokens)])
        return f"{float(numpy.linalg.norm(inverse)):.{DIGITS}e}"

    found = [
        min(combinations(range(len(queries)), len(tokens)), key=lambda block: (float(size(block)), block))
        for tokens, _ in FLOORS
    ]
    return [{"rows": list(block), "columns": list(block)} for block in found]

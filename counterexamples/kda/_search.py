"""The search behind kda.gate-basis: small KDA steps that are the projector on (1, 1)/√2."""

from fractions import Fraction
from itertools import product
from math import gcd
from typing import Any

HALVES = [[Fraction(1, 2)] * 2] * 2
STRENGTHS = [Fraction(n, 2) for n in range(5)]
DECAYS = [Fraction(n, 2) for n in range(3)]


def projector() -> list[dict[str, Any]]:
    """Every step along a whole direction of entries up to 2, with strength and decays in halves, that is it.

    One direction stands for all its multiples; a strength of 0 leaves nothing of the direction.
    """
    directions = [pair for pair in product(range(3), range(-2, 3)) if _reduced(pair)]
    return [
        {
            "direction": [str(x) for x in direction],
            "beta": str(beta),
            "alpha": [str(x) for x in alpha],
            "matrix": [[str(x) for x in row] for row in HALVES],
        }
        for direction in directions
        for beta, *alpha in product(STRENGTHS, DECAYS, DECAYS)
        if _step(direction, beta, alpha) == HALVES
    ]


def _reduced(direction: tuple[int, int]) -> bool:
    """One of all whole multiples of a direction: no common factor, the first entry that is not 0 positive."""
    return gcd(*direction) == 1 and direction > (0, 0)


def _step(direction: tuple[int, int], beta: Fraction, alpha: list[Fraction]) -> list[list[Fraction]]:
    """(I − β kkᵀ/‖k‖²) Diag(α)."""
    length = sum(x * x for x in direction)
    return [
        [
            (Fraction(row == column) - beta * x * y / length) * decay
            for column, (y, decay) in enumerate(zip(direction, alpha, strict=True))
        ]
        for row, x in enumerate(direction)
    ]

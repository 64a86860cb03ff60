"""A user's features of given keys: exact numbers, or enclosures at any precision."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from flint import arb, ctx

from counterexamples.collision._balls import ball


@dataclass(frozen=True)
class Features:
    """Features T×m.

    Attributes:
        how: how they were computed, in words.
        rational: the exact values, where all of them are rational.
        balls: enclosures of all values at a precision in bits.
    """

    how: str
    rational: list[list[Fraction]] | None
    balls: Callable[[int], list[list[arb]]]


def exactly(how: str, rows: list[list[Fraction]]) -> Features:
    """Features whose values are all rational."""
    return Features(how, rows, partial(_enclosed, rows))


def _enclosed(rows: list[list[Fraction]], precision: int) -> list[list[arb]]:
    with ctx.workprec(precision):
        return [[ball(x) for x in row] for row in rows]

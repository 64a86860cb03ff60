"""Singular values of a softmax matrix, found in balls and rounded outwards to short decimals."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

from derivations.softmax.definition import weights
from verify.numbers.ball import Ball

FIRST_PRECISION = 256
MOST_PRECISION = 4096
DIGITS = 34
"""Significant digits of the bounds; neighbours may differ in the last two."""
CLUSTER = 10**-20
"""Relative distance at which eigenvalues count as neighbours: pivots near all of them are tiny."""

Rows = Sequence[Sequence[Fraction]]


@dataclass(frozen=True)
class Spectrum:
    """Enclosures of the singular values in decreasing order, and the bits a re-check needs.

    Attributes:
        values: lower and upper bounds; 0 where a value vanishes, lower bound 0 where it may.
        most: an upper bound of the rank.
        bits: precision of fixed-point intervals in which the bounds can be decided.
    """

    values: tuple[tuple[Fraction, Fraction], ...]
    most: int
    bits: int

    @property
    def least(self) -> int:
        """A lower bound of the rank."""
        return sum(low > 0 for low, _ in self.values)


def spectrum(queries: Rows, keys: Rows, scale: Fraction) -> Spectrum:
    """Enclose the singular values of softmax(scale·q_i·k_j), for queries n×d and keys n'×d."""
    logits = [[scale * sum(x * y for x, y in zip(q, k, strict=True)) for k in keys] for q in queries]
    size = min(len(queries), len(keys))
    most = min(_distinct(logits), _distinct(list(zip(*logits, strict=True))), size)
    precision = FIRST_PRECISION
    while True:
        found = _eigenvalues(logits, precision)
        smallest = found[most - 1]
        if smallest > Fraction(1, 2 ** (precision // 3)) or precision >= MOST_PRECISION:
            break
        precision *= 2
    noise = Fraction(1, 2 ** (precision // 2))
    values = [_around(x) if x > noise else (Fraction(0), _root_above(noise)) for x in found[:most]]
    resolved = [x for x in found[:most] if x > noise]
    return Spectrum(
        (*values, *[(Fraction(0), Fraction(0))] * (size - most)),
        most,
        _bits(resolved or [Fraction(1)], size) if len(resolved) == most else 2 * precision,
    )


def _distinct(logits: Sequence[Sequence[Fraction]]) -> int:
    """Rows that differ by more than a constant."""
    return len({tuple(x - row[0] for x in row) for row in logits})


def _eigenvalues(logits: Rows, precision: int) -> list[Fraction]:
    """Approximate eigenvalues of A Aᵀ (or AᵀA where smaller), the largest first."""
    from flint import acb_mat, ctx

    balls = Ball(precision)
    rows = [weights(balls, balls.matrix([[x] for x in row])).entries() for row in logits]
    table = balls.matrix(rows)
    if len(rows) > len(rows[0]):
        table = balls.transpose(table)
    gram = balls.matmul(table, balls.transpose(table))
    with ctx.workprec(precision):
        found = [_middle(x.real) for x in acb_mat(gram.mid()).eig(algorithm="approx")]
    return sorted(found, reverse=True)


def _middle(ball: Any) -> Fraction:
    mantissa, exponent = ball.mid().man_exp()
    return int(mantissa) * Fraction(2) ** int(exponent)


def _around(square: Fraction) -> tuple[Fraction, Fraction]:
    """Decimals below and above the root, one unit of the last digit away."""
    low, high = (_root(square, rounding) for rounding in (ROUND_FLOOR, ROUND_CEILING))
    unit = Fraction(10) ** (low.adjusted() - DIGITS + 1)
    return Fraction(low) - unit, Fraction(high) + unit


def _root_above(square: Fraction) -> Fraction:
    return Fraction(_root(square, ROUND_CEILING).normalize(Context(prec=3, rounding=ROUND_CEILING)))


def _root(square: Fraction, rounding: str) -> Decimal:
    exact = Context(prec=2 * DIGITS)
    root = exact.sqrt(exact.divide(Decimal(square.numerator), Decimal(square.denominator)))
    return Context(prec=DIGITS, rounding=rounding).plus(root)


def _bits(squares: Sequence[Fraction], size: int) -> int:
    """Enough for pivots next to a cluster of eigenvalues, each as small as the bounds are wide."""
    small = max(0, -_log2(squares[-1]))
    cluster = longest = 1
    for larger, smaller in pairwise(squares):
        cluster = cluster + 1 if larger - smaller < larger * Fraction(CLUSTER) else 1
        longest = max(longest, cluster)
    return 3 * small + 4 * size + 128 * (longest + 1)


def _log2(x: Fraction) -> int:
    return x.numerator.bit_length() - x.denominator.bit_length()

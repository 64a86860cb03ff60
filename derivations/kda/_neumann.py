"""Two ways to invert I + N in a rounded format, for N with β everywhere below the diagonal (equal unit keys).

All matrices that occur have equal entries along each diagonal, and so do their rounded ones, since every
entry of a diagonal is computed by the same operations in the same order. So a matrix is the list of its
entries at distance 0, 1, …, C − 1 below the main diagonal.
"""

from collections.abc import Callable
from fractions import Fraction

Diagonals = list[Fraction]
Rounding = Callable[[Fraction], Fraction]


def exact_inverse(beta: Fraction, size: int) -> Diagonals:
    """1 at distance 0, −β(1 − β)^{d−1} at distance d."""
    return [Fraction(1)] + [-beta * (1 - beta) ** (d - 1) for d in range(1, size)]


def _product(left: Diagonals, right: Diagonals, rounded: Rounding) -> Diagonals:
    """Matrix product, every product and every sum rounded."""
    entries = []
    for d in range(len(left)):
        total = Fraction(0)
        for part in range(d + 1):
            if left[part] and right[d - part]:
                total = rounded(total + rounded(left[part] * right[d - part]))
        entries.append(total)
    return entries


def neumann(beta: Fraction, size: int, rounded: Rounding) -> Diagonals:
    """(I − N)(I + N²)(I + N⁴)…(I + N^{C/2}), C = ``size`` a power of two, as kernels compute it."""
    strength = rounded(beta)
    power = [Fraction(0)] + [strength] * (size - 1)
    result = [Fraction(1)] + [-strength] * (size - 1)
    reached = 2
    while reached < size:
        power = _product(power, power, rounded)
        result = _product(result, [Fraction(1), *power[1:]], rounded)
        reached *= 2
    return result


def forward_substitution(beta: Fraction, size: int, rounded: Rounding) -> Diagonals:
    """Row by row: entry d is −β − Σ_{0<r<d} β·(entry r), every product and every sum rounded."""
    strength = rounded(beta)
    entries = [Fraction(1)]
    for d in range(1, size):
        total = -strength
        for r in range(1, d):
            total = rounded(total - rounded(strength * entries[r]))
        entries.append(total)
    return entries


def largest_error(found: Diagonals, beta: Fraction) -> Fraction:
    """The largest deviation from the exact inverse over all entries."""
    return max(abs(x - y) for x, y in zip(found, exact_inverse(beta, len(found)), strict=True))

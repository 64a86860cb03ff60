"""Fast intervals: ends are integers over 2**BITS, and every operation rounds them outwards.

Unlike ``enclosure.Interval`` the error is absolute, so this suits numbers that are neither huge nor tiny.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import isqrt
from typing import NamedTuple

from verify.checkers.enclosure import enclosed

BITS = 160
ONE = 1 << BITS
GUARD = 64
"""Further bits inside the elementary functions, far more than their rounding errors use up."""
_WORK = BITS + GUARD
LARGEST = 64
"""Largest exponent treated."""


class Dyadic(NamedTuple):
    """All reals from ``low``/2**BITS to ``high``/2**BITS."""

    low: int
    high: int

    @classmethod
    def of(cls, low: Fraction | int, high: Fraction | int | None = None) -> "Dyadic":
        """The narrowest around a rational, or around all numbers between two."""
        high = low if high is None else high
        return cls(low.numerator * ONE // low.denominator, -(-high.numerator * ONE // high.denominator))

    def plus(self, other: "Dyadic") -> "Dyadic":
        """Sum."""
        return Dyadic(self.low + other.low, self.high + other.high)

    def minus(self, other: "Dyadic") -> "Dyadic":
        """Difference."""
        return Dyadic(self.low - other.high, self.high - other.low)

    def times(self, other: "Dyadic") -> "Dyadic":
        """Product."""
        low, high = _product(self, other)
        return Dyadic(low >> BITS, -(-high >> BITS))

    def inverse(self) -> "Dyadic":
        """1/x.

        Raises:
            ValueError: it contains 0.
        """
        if self.low <= 0 <= self.high:
            raise ValueError("division by an interval that contains 0")
        return Dyadic(ONE * ONE // self.high, -(-ONE * ONE // self.low))

    def __str__(self) -> str:
        return enclosed(Fraction(self.low, ONE), Fraction(self.high, ONE))


def _product(x: Dyadic, y: Dyadic) -> tuple[int, int]:
    """Ends of the product over 2**(2·BITS), exact."""
    (a, b), (c, d) = x, y
    if a >= 0 and c >= 0:
        return a * c, b * d
    ends = (a * c, a * d, b * c, b * d)
    return min(ends), max(ends)


def inner(pairs: Iterable[tuple[Dyadic, Dyadic]]) -> Dyadic:
    """Sum of products, rounded once."""
    low = high = 0
    for x, y in pairs:
        least, most = _product(x, y)
        low += least
        high += most
    return Dyadic(low >> BITS, -(-high >> BITS))


def exp(x: Dyadic) -> Dyadic:
    """e^x."""
    return _increasing(_exp, x)


def sqrt(x: Dyadic) -> Dyadic:
    """√x for x that is certainly at least 0."""
    if x.low < 0:
        raise ValueError("the root of a number that may be negative")
    return Dyadic(isqrt(x.low * ONE), isqrt(x.high * ONE) + 1)


def sigmoid(x: Dyadic) -> Dyadic:
    """1/(1 + e^−x)."""
    return _increasing(_sigmoid, x)


def softplus(x: Dyadic) -> Dyadic:
    """ln(1 + e^x)."""
    return _increasing(_softplus, x)


def _increasing(function: Callable[[int], Dyadic], x: Dyadic) -> Dyadic:
    low = function(x.low)
    return low if x.low == x.high else Dyadic(low.low, function(x.high).high)


def _exp(x: int) -> Dyadic:
    """By e^x = (e^{x/2^k})^{2^k} and the Taylor series."""
    if x > LARGEST * ONE:
        raise ValueError(f"an exponent of {x / ONE:.6g} is beyond {LARGEST}")
    if x < -BITS * ONE:
        return Dyadic(0, 1)
    halvings = max(0, x.bit_length() - BITS + 8)
    small = (x << GUARD) >> halvings
    # |small| <= 2⁻⁸. Each of the at most 26 terms is off by less than 3 units, the rest is below 1.
    total, term, count = 0, 1 << _WORK, 0
    while term not in (0, -1):
        total += term
        count += 1
        term = (term * small >> _WORK) // count
    low, high = total - 100, total + 100
    for _ in range(halvings):
        low, high = low * low >> _WORK, -(-high * high >> _WORK)
    return Dyadic(low >> GUARD, -(-high >> GUARD))


def _sigmoid(x: int) -> Dyadic:
    one = Dyadic(ONE, ONE)
    if x >= 0:
        return one.plus(_exp(-x)).inverse()
    power = _exp(x)
    # 1 − 1/(1 + e^x) keeps both ends monotone in e^x.
    return one.minus(one.plus(power).inverse())


def _softplus(x: int) -> Dyadic:
    """ln(1 + u) = 2·artanh(u/(2 + u)) with u = e^−|x| <= 1, and max(x, 0) on top."""
    power = _exp(-abs(x))
    top = max(x, 0)
    return Dyadic(top + _log1p(power.low).low, top + _log1p(power.high).high)


def _log1p(u: int) -> Dyadic:
    # z <= 1/3: each of the at most 71 terms is off by less than 4 units, twice; the rest is below 4.
    z = (u << _WORK) // (2 * ONE + u)
    square, power, total, odd = z * z >> _WORK, z, 0, 1
    while power:
        total += power // odd
        power = power * square >> _WORK
        odd += 2
    return Dyadic((2 * total - 600) >> GUARD, -(-(2 * total + 600) >> GUARD))

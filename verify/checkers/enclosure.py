"""Intervals with rational ends, and rigorous enclosures of exp and softmax, on the standard library alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from typing import Self

BITS = 256
"""Ends are rounded outwards to multiples of 2**-BITS relative to their size."""
LARGEST = 10**5
"""Largest exponent treated: e^x is kept as an exact fraction of that many digits."""
_MOST_DIGITS = 12
"""Of an end of an interval, for reading."""


def decimal(value: Fraction) -> str:
    """Six significant digits, for reading only; of any size, unlike a float."""
    return f"{Decimal(value.numerator) / Decimal(value.denominator):.6g}"


def enclosed(low: Fraction, high: Fraction) -> str:
    """All numbers from ``low`` to ``high`` as text: ends rounded outwards, to digits that tell them apart.

    Where that takes more than 12, as midpoint ± radius, which contains all of them too.
    """
    apart = (
        _quotient(max(abs(low), abs(high)) / (high - low), 2, ROUND_CEILING).adjusted() if low < high else 0
    )
    digits = max(apart + 3, 6) if low < high else _MOST_DIGITS
    if digits <= _MOST_DIGITS:
        ends = _quotient(low, digits, ROUND_FLOOR), _quotient(high, digits, ROUND_CEILING)
        return f"[{ends[0]:g}, {ends[1]:g}]"
    middle = _quotient((low + high) / 2, _MOST_DIGITS, ROUND_HALF_EVEN)
    radius = max(high - Fraction(middle), Fraction(middle) - low)
    return f"{middle:g} ± {_quotient(radius, 2, ROUND_CEILING):g}"


def _quotient(value: Fraction, digits: int, rounding: str) -> Decimal:
    with localcontext(prec=digits, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN):
        return Decimal(value.numerator) / Decimal(value.denominator)


def _rounded(value: Fraction, *, up: bool) -> Fraction:
    if not value:
        return value
    size = value.numerator.bit_length() - value.denominator.bit_length()
    scale = Fraction(2) ** (BITS - size)
    scaled = value * scale
    whole = -((-scaled.numerator) // scaled.denominator) if up else scaled.numerator // scaled.denominator
    return whole / scale


@dataclass(frozen=True)
class Interval:
    """All reals from ``low`` to ``high``; every operation encloses all results."""

    low: Fraction
    high: Fraction

    @classmethod
    def point(cls, value: Fraction | int) -> Self:
        """A single number."""
        return cls(Fraction(value), Fraction(value))

    def _outward(self, low: Fraction, high: Fraction) -> "Interval":
        return Interval(_rounded(low, up=False), _rounded(high, up=True))

    def __add__(self, other: "Interval") -> "Interval":
        return self._outward(self.low + other.low, self.high + other.high)

    def __sub__(self, other: "Interval") -> "Interval":
        return self._outward(self.low - other.high, self.high - other.low)

    def __mul__(self, other: "Interval") -> "Interval":
        ends = [x * y for x in (self.low, self.high) for y in (other.low, other.high)]
        return self._outward(min(ends), max(ends))

    def __truediv__(self, other: "Interval") -> "Interval":
        if not other.excludes_zero:
            raise ValueError("division by an interval that contains 0")
        return self * Interval(1 / other.high, 1 / other.low)

    def __str__(self) -> str:
        return enclosed(self.low, self.high)

    @property
    def excludes_zero(self) -> bool:
        """Whether 0 is certainly not in it."""
        return self.low > 0 or self.high < 0

    @property
    def magnitude(self) -> Fraction:
        """The smallest absolute value in it: a lower bound of |x|."""
        return max(self.low, -self.high, Fraction(0))


def exp(x: Fraction) -> Interval:
    """An interval around e^x, by e^x = (e^{x/2^k})^{2^k} and the Taylor series with its remainder.

    Raises:
        ValueError: |x| exceeds ``LARGEST``.
    """
    if abs(x) > LARGEST:
        raise ValueError(f"the exponent {decimal(x)} is beyond ±{LARGEST}")
    halvings = max(0, abs(x.numerator).bit_length() - x.denominator.bit_length() + 2)
    small = x / 2**halvings
    # |small| < 1/2: after n terms the remainder is below twice the next term.
    term, total, count = Fraction(1), Fraction(0), 0
    while abs(term) > Fraction(1, 2 ** (BITS + halvings)):
        total += term
        count += 1
        term = term * small / count
    result = Interval(_rounded(total - 2 * abs(term), up=False), _rounded(total + 2 * abs(term), up=True))
    for _ in range(halvings):
        result = result * result
    return result


def softmax_read(logits: Sequence[Fraction], values: Sequence[Sequence[Fraction]]) -> list[Interval]:
    """An enclosure of each coordinate of Σ_t softmax(logits)_t · values_t (values T×V)."""
    top = max(logits)
    weights = [exp(logit - top) for logit in logits]
    total = sum(weights[1:], weights[0])
    outputs = []
    for column in zip(*values, strict=True):
        terms = [weight * Interval.point(value) for weight, value in zip(weights, column, strict=True)]
        outputs.append(sum(terms[1:], terms[0]) / total)
    return outputs

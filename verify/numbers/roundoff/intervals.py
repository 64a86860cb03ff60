"""Arrays of intervals with float64 ends: every operation encloses all results, rounding outwards.

numpy's +, -, *, / and sqrt round to nearest (IEEE 754), so the number next to a result is beyond the exact
one. Exact sums and short products stay as they are: a bound of rounding errors doubles at a power of two, and
boxes often end there. Exponentials and logarithms come from balls. An end that is NaN says that nothing is
known.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from verify.numbers.formats import Format, round_array

Array = NDArray[np.float64]
_BITS = 64


def _outward(low: Array, high: Array, exact: NDArray[np.bool_] | bool = False) -> "Intervals":
    """Around ends that were rounded to nearest, except where they are exact."""
    return Intervals(
        np.where(exact, low, np.nextafter(low, -np.inf)), np.where(exact, high, np.nextafter(high, np.inf))
    )


def _sum_above(x: Array, y: Array) -> Array:
    """The smallest number that is not below x + y, by the exact error of the rounded sum (Knuth, TAOCP 2,
    4.2.2, theorem B); the error is NaN where it overflows."""
    total = x + y
    part = total - x
    error = (x - (total - part)) + (y - part)
    return np.where(error <= 0, total, np.nextafter(total, np.inf))


@dataclass(frozen=True, eq=False)
class Intervals:
    """The intervals from ``low`` to ``high``, entry by entry."""

    low: Array
    high: Array

    @classmethod
    def around(cls, value: Fraction) -> "Intervals":
        """One interval around a rational; a point where float64 has it."""
        return cls(np.array([below(value)]), np.array([above(value)]))

    def __neg__(self) -> "Intervals":
        return Intervals(-self.high, -self.low)

    def __add__(self, other: "Intervals") -> "Intervals":
        return Intervals(-_sum_above(-self.low, -other.low), _sum_above(self.high, other.high))

    def __sub__(self, other: "Intervals") -> "Intervals":
        return self + -other

    def __mul__(self, other: "Intervals") -> "Intervals":
        ends = [x * y for x in (self.low, self.high) for y in (other.low, other.high)]
        exact = self._short() & other._short()
        return _outward(np.minimum.reduce(ends), np.maximum.reduce(ends), exact)

    def __truediv__(self, other: "Intervals") -> "Intervals":
        ends = [x / y for x in (self.low, self.high) for y in (other.low, other.high)]
        result = _outward(np.minimum.reduce(ends), np.maximum.reduce(ends))
        return result.known_where((other.low > 0) | (other.high < 0))

    @property
    def magnitude(self) -> Array:
        """The largest absolute value in it."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def square(self) -> "Intervals":
        """The squares of its numbers."""
        smallest = np.where(
            (self.low <= 0) & (self.high >= 0), 0.0, np.minimum(np.abs(self.low), np.abs(self.high))
        )
        result = _outward(smallest * smallest, self.magnitude * self.magnitude, self._short())
        return Intervals(np.maximum(result.low, 0.0), result.high)

    def sqrt(self) -> "Intervals":
        """The roots of its numbers; nothing is known where one is negative."""
        result = _outward(np.sqrt(self.low), np.sqrt(self.high))
        return Intervals(np.maximum(result.low, 0.0), result.high)

    def exp(self) -> "Intervals":
        """The exponentials of its numbers."""
        return self._rising(lambda x: x.exp())

    def log(self) -> "Intervals":
        """The logarithms of its numbers; nothing is known where one is not positive."""
        return self._rising(lambda x: x.log()).known_where(self.low > 0)

    def widened(self, by: Array) -> "Intervals":
        """With all numbers at most ``by`` away."""
        return _outward(self.low - by, self.high + by)

    def known_where(self, mask: NDArray[np.bool_]) -> "Intervals":
        """Where the mask is false nothing is known."""
        return Intervals(np.where(mask, self.low, np.nan), np.where(mask, self.high, np.nan))

    def rounded_to(self, target: Format) -> "Intervals":
        """The range of its numbers after rounding to nearest, which keeps their order."""
        return Intervals(round_array(target, self.low), round_array(target, self.high))

    def _short(self) -> NDArray[np.bool_]:
        """Where both ends have at most 24 bits, so that products of two such are exact."""
        ends = np.stack([self.low, self.high])
        return np.asarray((ends.astype(np.float32) == ends).all(axis=0))

    def _rising(self, function: Callable[[Any], Any]) -> "Intervals":
        """A rising function of its numbers, enclosed by balls at both ends."""
        with ctx.workprec(_BITS):
            lows = [float(function(arb(x)).lower()) for x in self.low.tolist()]
            highs = [float(function(arb(x)).upper()) for x in self.high.tolist()]
        return _outward(np.array(lows), np.array(highs))


def below(value: Fraction) -> float:
    """The largest float64 that is at most the rational."""
    nearest = value.numerator / value.denominator
    return nearest if Fraction(nearest) <= value else float(np.nextafter(nearest, -np.inf))


def above(value: Fraction) -> float:
    """The smallest float64 that is at least the rational."""
    return -below(-value)

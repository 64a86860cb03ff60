"""Dual numbers over the rationals: a value with its derivative in one variable."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Dual:
    """A number and its derivative; a plain number is one that does not move."""

    value: Fraction
    slope: Fraction = Fraction(0)

    def __add__(self, other: "Dual") -> "Dual":
        return Dual(self.value + other.value, self.slope + other.slope)

    def __sub__(self, other: "Dual") -> "Dual":
        return Dual(self.value - other.value, self.slope - other.slope)

    def __mul__(self, other: "Dual") -> "Dual":
        return Dual(self.value * other.value, self.slope * other.value + self.value * other.slope)

    def __truediv__(self, other: "Dual") -> "Dual":
        value = self.value / other.value
        return Dual(value, (self.slope - value * other.slope) / other.value)


def total(terms: Sequence[Dual]) -> Dual:
    """Their sum."""
    return sum(terms, Dual(Fraction(0)))


def pair(left: Sequence[Dual], right: Sequence[Dual]) -> Dual:
    """Inner product of two vectors of one length."""
    return total([x * y for x, y in zip(left, right, strict=True)])

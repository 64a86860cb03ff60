"""Balls a user's feature map can compute with: like numbers, but nothing about them is ever guessed."""

import math
from fractions import Fraction
from numbers import Integral
from typing import Any

from flint import arb, fmpq, fmpz

from verify.model.errors import RequestError
from verify.numbers.convert import to_fraction

FUNCTIONS = frozenset(
    {"exp", "log", "sqrt", "erf", "erfc", "gamma", "sin", "cos", "tan", "sinh", "cosh", "tanh"}
    | {"asin", "acos", "atan", "asinh", "acosh", "atanh"}
)
"""Functions of one number, each a method of the balls."""


def ball(value: object) -> arb:
    """A ball around a number that a feature map uses or gives, at the precision in force."""
    if isinstance(value, FeatureBall):
        return value.ball
    if isinstance(value, arb | fmpz | fmpq):
        return arb(value)
    if isinstance(value, Integral):
        return arb(int(value))
    if isinstance(value, float) and math.isfinite(value):
        return arb(value)
    fraction = to_fraction(value)  # type: ignore[arg-type]
    return arb(fmpq(fraction.numerator, fraction.denominator))


class FeatureBall:
    """An enclosure of a real number with arithmetic, certain comparisons and arb's functions (``x.exp()``).

    A comparison that the enclosures leave open raises; so does turning one into a float, after which no
    error would be known. Floats that meet one stand for their exact binary values.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: object) -> None:
        self.ball = ball(value)

    def __add__(self, other: object) -> "FeatureBall":
        return FeatureBall(self.ball + ball(other))

    __radd__ = __add__

    def __sub__(self, other: object) -> "FeatureBall":
        return FeatureBall(self.ball - ball(other))

    def __rsub__(self, other: object) -> "FeatureBall":
        return FeatureBall(ball(other) - self.ball)

    def __mul__(self, other: object) -> "FeatureBall":
        return FeatureBall(self.ball * ball(other))

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> "FeatureBall":
        return FeatureBall(self.ball / ball(other))

    def __rtruediv__(self, other: object) -> "FeatureBall":
        return FeatureBall(ball(other) / self.ball)

    def __pow__(self, power: object) -> "FeatureBall":
        if isinstance(power, Integral):
            return self._power(int(power))
        return FeatureBall((self.ball.log() * ball(power)).exp())

    def _power(self, power: int) -> "FeatureBall":
        # FLINT's square of a ball around 0 can be NaN, a product is not.
        result, square, left = arb(1), self.ball, abs(power)
        while left:
            if left % 2:
                result = result * square
            square, left = square * square, left // 2
        return FeatureBall(result if power >= 0 else 1 / result)

    def __neg__(self) -> "FeatureBall":
        return FeatureBall(-self.ball)

    def __abs__(self) -> "FeatureBall":
        return FeatureBall(abs(self.ball))

    def _certainly(self, other: object, yes: bool, no: bool) -> bool:
        if yes == no:
            raise RequestError(
                f"whether {self.ball} is above, at or below {ball(other)} is open at this precision, and the"
                " feature map asks; give keys away from its jumps"
            )
        return yes

    def __lt__(self, other: object) -> bool:
        return self._certainly(other, bool(self.ball < ball(other)), bool(self.ball >= ball(other)))

    def __le__(self, other: object) -> bool:
        return self._certainly(other, bool(self.ball <= ball(other)), bool(self.ball > ball(other)))

    def __gt__(self, other: object) -> bool:
        return not self <= other

    def __ge__(self, other: object) -> bool:
        return not self < other

    def __eq__(self, other: object) -> bool:
        return self._certainly(other, bool(self.ball == ball(other)), bool(self.ball != ball(other)))

    def __bool__(self) -> bool:
        return self != 0

    def __float__(self) -> float:
        raise RequestError(
            "the feature map turns a ball into a float, which loses its error; use methods of the numbers it"
            " is given, e.g. x.exp() for math.exp(x)"
        )

    def __getattr__(self, name: str) -> Any:
        if name not in FUNCTIONS:
            raise AttributeError(f"numbers have no {name}; they have {', '.join(sorted(FUNCTIONS))}")
        function = getattr(self.ball, name)
        return lambda: FeatureBall(function())


def exact(value: arb) -> Fraction:
    """The number that a ball of radius 0 is."""
    mantissa, exponent = value.man_exp()
    return int(mantissa) * Fraction(2) ** int(exponent)

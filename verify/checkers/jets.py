"""Intervals with the intervals of their partial derivatives, and the functions a gated head is made of."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from verify.checkers.dyadic import ONE, Dyadic, exp, inner, sigmoid, softplus, sqrt


class Jet(NamedTuple):
    """A value, and its derivative in each numbered unknown it depends on."""

    value: Dyadic
    slopes: Mapping[int, Dyadic]

    def scaled(self, value: Dyadic, factor: Dyadic) -> "Jet":
        """A function of it, with that value and that derivative."""
        return Jet(value, {i: factor.times(slope) for i, slope in self.slopes.items()})

    def plus(self, other: "Jet") -> "Jet":
        """Sum."""
        slopes = dict(self.slopes)
        for i, slope in other.slopes.items():
            slopes[i] = slopes[i].plus(slope) if i in slopes else slope
        return Jet(self.value.plus(other.value), slopes)

    def minus(self, other: "Jet") -> "Jet":
        """Difference."""
        minus = Dyadic(-ONE, -ONE)
        return self.plus(other.scaled(minus.times(other.value), minus))

    def times(self, other: "Jet") -> "Jet":
        """Product."""
        x, y = self.value, other.value
        slopes = {i: slope.times(y) for i, slope in self.slopes.items()}
        for i, slope in other.slopes.items():
            more = x.times(slope)
            slopes[i] = slopes[i].plus(more) if i in slopes else more
        return Jet(x.times(y), slopes)


def certain(value: Dyadic) -> Jet:
    """A number that depends on no unknown."""
    return Jet(value, {})


def dot(weights: Sequence[Dyadic], token: Sequence[Jet]) -> Jet:
    """w·x for a token x."""
    value = inner((w, x.value) for w, x in zip(weights, token, strict=True))
    total = certain(value)
    for w, x in zip(weights, token, strict=True):
        if x.slopes:
            total = Jet(value, total.plus(x.scaled(value, w)).slopes)
    return total


def normed(y: Sequence[Jet], eps: Dyadic) -> list[Jet]:
    """y/√(Σy² + eps)."""
    square = certain(eps)
    for item in y:
        square = square.plus(item.times(item))
    value = sqrt(square.value).inverse()
    cube = value.times(value).times(value)
    factor = square.scaled(value, cube.times(Dyadic(-ONE // 2, -ONE // 2)))
    return [item.times(factor) for item in y]


def strength(y: Jet) -> Jet:
    """σ(y)."""
    value = sigmoid(y.value)
    return y.scaled(value, value.times(Dyadic(ONE, ONE).minus(value)))


def decay(y: Jet, bias: Dyadic, rate: Dyadic) -> Jet:
    """e^(−rate · ln(1 + e^(y + bias)))."""
    inside = y.value.plus(bias)
    value = exp(Dyadic(0, 0).minus(rate.times(softplus(inside))))
    return y.scaled(value, Dyadic(0, 0).minus(rate.times(sigmoid(inside)).times(value)))

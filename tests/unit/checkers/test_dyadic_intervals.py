"""Dyadic intervals enclose what FLINT's balls enclose, tightly, and refuse what they cannot enclose."""

import random
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpq

from verify.checkers import dyadic
from verify.checkers.dyadic import BITS, ONE, Dyadic, inner

WIDTH = 64
"""Units of 2**-BITS that an enclosure of a point may be wide, for results of about 1."""


def exact(x: Fraction) -> arb:
    return arb(fmpq(x.numerator, x.denominator))


def encloses(found: Dyadic, wanted: arb) -> bool:
    """Whether the whole ball, far smaller than the interval, lies in it."""
    low, high = (arb(fmpq(end, ONE)) for end in found)
    return bool(low <= wanted) and bool(wanted <= high)


@pytest.fixture(autouse=True)
def precise():
    with ctx.workprec(2 * BITS):
        yield


@pytest.mark.parametrize("seed", range(20))
def test_arithmetic_encloses_every_point(seed: int) -> None:
    rng = random.Random(seed)
    points = [Fraction(rng.randint(-999, 999), rng.randint(1, 999)) for _ in range(4)]
    (a, b), (c, d) = sorted(points[:2]), sorted(points[2:])
    x, y = Dyadic.of(a, b), Dyadic.of(c, d)
    for p in (a, b, (2 * a + b) / 3):
        for q in (c, d, (c + 3 * d) / 4):
            assert encloses(x.plus(y), exact(p + q))
            assert encloses(x.minus(y), exact(p - q))
            assert encloses(x.times(y), exact(p * q))
            assert encloses(inner([(x, y), (y, y)]), exact(p * q + q * q))
            if c > 0 or d < 0:
                assert encloses(y.inverse(), exact(1 / q))
    ends = [p * q for p in (a, b) for q in (c, d)]
    product = x.times(y)
    assert min(ends) - Fraction(product.low, ONE) < Fraction(2000, ONE)
    assert Fraction(product.high, ONE) - max(ends) < Fraction(2000, ONE)


@pytest.mark.parametrize("size", [0, 1, 20, 150])
@pytest.mark.parametrize("seed", range(10))
def test_functions_enclose_their_values(size: int, seed: int) -> None:
    rng = random.Random(seed)
    p = Fraction(rng.randint(-(2**60), 2**60), 2**60) * size
    x, at = Dyadic.of(p), exact(p)
    found = {"sigmoid": 1 / (1 + (-at).exp()), "softplus": (1 + at.exp()).log()}
    if p < 60:
        found["exp"] = at.exp()
    if p >= 0:
        found["sqrt"] = at.sqrt()
    for name, wanted in found.items():
        enclosure = getattr(dyadic, name)(x)
        assert encloses(enclosure, wanted), name
        scale = max(1, enclosure.high >> BITS)
        assert enclosure.high - enclosure.low <= WIDTH * scale * max(1, 8 * size), name


def test_functions_of_an_interval_reach_from_end_to_end() -> None:
    for name in ("exp", "sigmoid", "softplus"):
        function = getattr(dyadic, name)
        whole, low, high = (function(Dyadic.of(*ends)) for ends in ((-3, 2), (-3, -3), (2, 2)))
        assert (whole.low, whole.high) == (low.low, high.high)


@pytest.mark.parametrize(
    "broken",
    [
        lambda: Dyadic.of(-1, 1).inverse(),
        lambda: Dyadic.of(0).inverse(),
        lambda: dyadic.sqrt(Dyadic.of(Fraction(-1, 10**9), 1)),
        lambda: dyadic.exp(Dyadic.of(65)),
    ],
)
def test_what_has_no_enclosure_is_refused(broken) -> None:
    with pytest.raises(ValueError, match=r"contains 0|negative|beyond"):
        broken()

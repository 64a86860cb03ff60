"""Rational intervals against FLINT's balls, which share no code with them."""

from fractions import Fraction

import flint
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verify.checkers.enclosure import LARGEST, Interval, enclosed, exp, softmax_read
from verify.checkers.exponential_determinant import enclose

RATIONALS = st.fractions(min_value=-60, max_value=60, max_denominator=1000)


def ball(value: Fraction) -> flint.arb:
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def encloses(interval: Interval, value: flint.arb) -> bool:
    return bool(ball(interval.low) <= value) and bool(value <= ball(interval.high))


@settings(deadline=None)
@given(RATIONALS)
def test_exp_encloses_the_true_value_tightly(x: Fraction) -> None:
    found = exp(x)
    with flint.ctx.workprec(600):
        assert encloses(found, ball(x).exp())
    assert found.high - found.low <= found.low / 2**240


ENDS = [Fraction(0), Fraction(2) ** -300, -(Fraction(2) ** -300), Fraction(-20000), Fraction(LARGEST)]


@pytest.mark.parametrize("x", ENDS)
def test_exp_encloses_the_true_value_at_the_ends(x: Fraction) -> None:
    with flint.ctx.workprec(600):
        assert encloses(exp(x), ball(x).exp())


def test_exponents_beyond_the_limit_are_refused() -> None:
    with pytest.raises(ValueError, match="beyond"):
        exp(Fraction(-LARGEST - 1))


@settings(deadline=None)
@given(RATIONALS, RATIONALS, RATIONALS, RATIONALS, st.fractions(0, 1), st.fractions(0, 1))
def test_operations_enclose_every_result(
    a: Fraction, b: Fraction, c: Fraction, d: Fraction, s: Fraction, t: Fraction
) -> None:
    left, right = Interval(min(a, b), max(a, b)), Interval(min(c, d), max(c, d))
    x, y = a + s * (b - a), c + t * (d - c)
    for found, exact in ((left + right, x + y), (left - right, x - y), (left * right, x * y)):
        assert found.low <= exact <= found.high
    if right.excludes_zero:
        quotient = left / right
        assert quotient.low <= x / y <= quotient.high
    assert left.magnitude <= abs(x)


def test_division_by_an_interval_around_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="contains 0"):
        Interval.point(1) / Interval(Fraction(-1), Fraction(1))


def test_softmax_read_encloses_the_closed_form() -> None:
    (found,) = softmax_read([Fraction(0), Fraction(1), Fraction(2)], [[Fraction(x)] for x in (1, -2, 1)])
    with flint.ctx.workprec(600):
        e = flint.arb(1).exp()
        assert encloses(found, (e - 1) * (e - 1) / (1 + e + e * e))


def test_softmax_read_depends_on_differences_of_logits_only() -> None:
    values = [[Fraction(1)], [Fraction(-3)]]
    far = Fraction(10 * LARGEST)
    assert softmax_read([far, far - 2], values) == softmax_read([Fraction(0), Fraction(-2)], values)


def test_exponential_determinant_agrees_with_balls() -> None:
    queries = [Fraction(x, 7) for x in (-11, 3, 0, 9)]
    keys = [Fraction(x, 5) for x in (4, -6, 1, 12)]
    with flint.ctx.workprec(600):
        matrix = flint.arb_mat([[ball(q * k).exp() for k in keys] for q in queries])
        assert encloses(enclose(queries, keys), matrix.det())


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        ("0", "1", "[0, 1]"),
        ("-1", "1/3", "[-1, 0.333334]"),
        ("1/2", "1/2", "[0.5, 0.5]"),
        ("1/3", "1/3", "[0.333333333333, 0.333333333334]"),
        ("-0.154571001", "-0.154570999", "[-0.154571001, -0.154570999]"),
    ],
)
def test_an_enclosure_is_printed_with_digits_that_tell_its_ends_apart(low: str, high: str, text: str) -> None:
    assert enclosed(Fraction(low), Fraction(high)) == text


@settings(deadline=None)
@given(RATIONALS, st.integers(0, 40), st.integers(0, 9))
def test_a_printed_enclosure_contains_all_of_it(middle: Fraction, digits: int, width: int) -> None:
    spread = (abs(middle) + 1) * width / Fraction(10) ** digits
    text = enclosed(middle - spread, middle + spread)
    if text.startswith("["):
        low, high = map(Fraction, text[1:-1].split(", "))
        assert low != high or not spread
    else:
        centre, radius = map(Fraction, text.split(" ± "))
        low, high = centre - radius, centre + radius
    assert low <= middle - spread
    assert middle + spread <= high
    assert high - low <= 4 * max(spread, Fraction(1, 10**11) * (abs(middle) + 1))

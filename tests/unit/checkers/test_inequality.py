"""The interval bounds of explicit numbers against FLINT's balls, on planted falsehoods and on bad data."""

from fractions import Fraction
from typing import Any

import flint
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verify.checkers.enclosure import Interval
from verify.checkers.inequality import enclose, judge, log
from verify.checkers.terms import read
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

X = ["v", "x"]
NEAR_ZERO = ["+", ["exp", ["log", X]], ["*", ["q", "-1"], X]]
"""Exactly 0; its enclosure has 0 inside."""
POSITIVE = st.fractions(min_value=Fraction(1, 10**6), max_value=10**6, max_denominator=10**6)


def judged(data: Any) -> Check:
    return judge(Obligation("inequality", "a bound", "B", data))


def inside(exact: flint.arb, found: Interval) -> bool:
    return not (bool(exact < ball(found.low)) or bool(exact > ball(found.high)))


def ball(value: Fraction) -> flint.arb:
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


@settings(deadline=None)
@given(POSITIVE)
def test_log_encloses_the_true_value_tightly(x: Fraction) -> None:
    found = log(x)
    with flint.ctx.workprec(600):
        exact = ball(x).log()
        assert inside(exact, found)
    assert found.high - found.low <= max(found.magnitude, Fraction(1)) / 2**240


AT_THE_ENDS = [Fraction(1), Fraction(2), Fraction(1, 2), Fraction(2) ** 900, Fraction(2**61 + 1)]


@pytest.mark.parametrize("x", AT_THE_ENDS)
def test_log_at_powers_of_two_and_beyond(x: Fraction) -> None:
    found = log(x)
    with flint.ctx.workprec(900):
        exact = ball(x).log()
        assert inside(exact, found)


@pytest.mark.parametrize("x", ["2", "3", "5/7", "4/3"])
def test_a_series_cut_early_still_encloses_the_true_value(x: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verify.checkers.inequality.BITS", 12)
    found = log(Fraction(x))
    assert found.high - found.low > Fraction(1, 2**40)
    with flint.ctx.workprec(600):
        assert inside(ball(Fraction(x)).log(), found)


@settings(deadline=None)
@given(st.fractions(-20, 20, max_denominator=50), st.integers(-30, 30))
def test_terms_enclose_the_true_value(x: Fraction, power: int) -> None:
    shifted = ["+", ["^", X, 2], ["q", "1/3"]]
    term = ["+", ["*", ["exp", X], ["^", shifted, power]], ["*", ["q", "-7/2"], ["log", shifted]]]
    found = enclose(read(term), {"x": x})
    with flint.ctx.workprec(900):
        inner = ball(x) ** 2 + ball(Fraction(1, 3))
        exact = ball(x).exp() * inner**power - ball(Fraction(7, 2)) * inner.log()
        assert inside(exact, found)


LN_2 = {"term": ["log", X], "values": {"x": "2"}}
DIGITS = "693147180559945309417232121458176568"
BELOW, ABOVE = (str(Fraction(int(DIGITS) + add, 10 ** len(DIGITS))) for add in (0, 1))


def test_a_true_bound_is_proved_on_both_sides() -> None:
    check = judged({**LN_2, "above": BELOW, "below": ABOVE})
    assert check.verdict is Verdict.PROVED, check.detail


@pytest.mark.parametrize("wrong", [{"above": ABOVE}, {"below": BELOW}, {"above": BELOW, "below": BELOW}])
def test_a_bound_on_the_wrong_side_is_refuted(wrong: dict[str, str]) -> None:
    assert judged({**LN_2, **wrong}).verdict is Verdict.REFUTED


def test_equality_is_no_strict_inequality() -> None:
    for side in ("above", "below"):
        check = judged({"term": ["+", X, ["q", "1"]], "values": {"x": "2"}, side: "3"})
        assert check.verdict is Verdict.REFUTED


def test_a_bound_inside_the_enclosure_is_undecided() -> None:
    for side in ("above", "below"):
        assert judged({"term": NEAR_ZERO, "values": {"x": "3"}, side: "0"}).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(
    "term", [["log", NEAR_ZERO], ["^", NEAR_ZERO, -1], ["^", NEAR_ZERO, -2], ["exp", ["log", NEAR_ZERO]]]
)
def test_a_term_that_may_be_undefined_is_undecided(term: Any) -> None:
    for side in ("above", "below"):
        assert judged({"term": term, "values": {"x": "3"}, side: "0"}).verdict is Verdict.UNDECIDED


def test_large_factors_are_compared_with_formats() -> None:
    largest = str((2 - Fraction(1, 2**7)) * 2**127)
    eighty = {"term": ["exp", X], "values": {"x": "80"}, "below": largest}
    assert judged(eighty).verdict is Verdict.PROVED
    assert judged({**eighty, "values": {"x": "160"}}).verdict is Verdict.REFUTED


@pytest.mark.parametrize(
    "data",
    [
        {},
        None,
        {**LN_2},
        {**LN_2, "above": 0.5},
        {**LN_2, "above": "nan"},
        {"term": ["log", X], "values": {}, "above": "0"},
        {"term": ["log", X], "values": {"x": "2", "y": "1"}, "above": "0"},
        {"term": ["log", X], "values": {"x": "-2"}, "above": "0"},
        {"term": ["log", X], "values": {"x": "0"}, "above": "0"},
        {"term": ["log", X], "values": ["x", "2"], "above": "0"},
        {"term": ["^", X, -1], "values": {"x": "0"}, "above": "0"},
        {"term": ["^", X, 10**9], "values": {"x": "2"}, "above": "0"},
        {"term": ["exp", X], "values": {"x": "1000000"}, "above": "0"},
        {"term": ["at", "a", [["q", "1"]]], "values": {}, "above": "0"},
        {"term": ["sum", "j", ["q", "1"], ["q", "2"], ["q", "1"]], "values": {}, "above": "0"},
        {"term": ["sqrt", X], "values": {"x": "2"}, "above": "0"},
    ],
)
def test_bad_data_is_refused_without_raising(data: Any) -> None:
    assert judged(data).verdict is Verdict.REFUTED

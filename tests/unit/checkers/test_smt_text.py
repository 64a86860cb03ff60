"""SMT-LIB text as branches of literals means what it says, and certificates of signs do not overreach."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from verify.checkers import positivstellensatz
from verify.checkers.polynomials import Polynomial
from verify.checkers.smt_text import Literal, branches, polynomial
from verify.checkers.terms import IllFormed
from verify.model.evidence import Obligation
from verify.model.verdict import Verdict

POINTS = [Fraction(n, 2) for n in range(-4, 5)]
TESTS = {"=": lambda v: v == 0, "!=": lambda v: v != 0, ">": lambda v: v > 0, ">=": lambda v: v >= 0}

FORMULAS: list[tuple[str, Callable[[Fraction, Fraction], bool]]] = [
    ("(<= x y)", lambda x, y: x <= y),
    ("(not (<= x y))", lambda x, y: not x <= y),
    ("(not (< x y))", lambda x, y: not x < y),
    ("(not (>= x y))", lambda x, y: not x >= y),
    ("(not (> x y))", lambda x, y: not x > y),
    ("(not (= (* x x) y))", lambda x, y: x * x != y),
    ("(<= 0.0 x y)", lambda x, y: 0 <= x <= y),
    ("(not (<= 0.0 x y))", lambda x, y: not 0 <= x <= y),
    ("(or (< x 0.5) (and (> y (- 1)) (not (= x y))))", lambda x, y: x < 0.5 or (y > -1 and x != y)),
    ("(not (or (< x 0.5) (and (> y (- 1.0)) (= x y))))", lambda x, y: not (x < 0.5 or (y > -1 and x == y))),
    ("(= (<= x 0.0) (< y 1.0))", lambda x, y: (x <= 0) == (y < 1)),
    ("(not (= (<= x 0.0) (< y 1.0)))", lambda x, y: (x <= 0) != (y < 1)),
    ("(> (ite (> x 0.0) x (- y)) (/ 1.0 2.0))", lambda x, y: (x if x > 0 else -y) > Fraction(1, 2)),
    ("(not (> (ite (> x 0.0) x (- y)) y))", lambda x, y: not (x if x > 0 else -y) > y),
    ("(< (size (- x y 1.0)) one)", lambda x, y: abs(x - y - 1) < 1),
]
DEFINED = """; a comment with (brackets
(define-fun one () Real 1.0)
(define-fun size ((z Real)) Real (ite (<= z 0.0) (- z) z))
"""


def value(p: Polynomial, x: Fraction, y: Fraction) -> Fraction:
    at = {"<x>": x, "<y>": y}
    total = Fraction(0)
    for monomial, coefficient in p.items():
        for name, power in monomial:
            coefficient *= at[name] ** power
        total += coefficient
    return total


def holds(branch: list[Literal], x: Fraction, y: Fraction) -> bool:
    return all(TESTS[literal.relation](value(literal.polynomial, x, y)) for literal in branch)


@pytest.mark.parametrize(("formula", "meant"), FORMULAS, ids=[text for text, _ in FORMULAS])
def test_branches_hold_where_the_formula_does(
    formula: str, meant: Callable[[Fraction, Fraction], bool]
) -> None:
    found = branches(f"{DEFINED}(assert {formula})", 64)
    for x, y in product(POINTS, repeat=2):
        assert any(holds(branch, x, y) for branch in found) == meant(x, y), (x, y)


@pytest.mark.parametrize(
    "text",
    [
        "(assert (distinct x y))",
        "(assert (<= (div x 2) 1))",
        "(assert (<= x 1)",
        "(push)",
        "(assert (<= (/ 1 x) 1))",
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises((IllFormed, LookupError, ValueError, TypeError)):
        branches(text, 64)


def test_too_many_branches_are_refused() -> None:
    with pytest.raises(IllFormed, match="more than 64 branches"):
        branches("(assert (or (< x 0) (> x 0)))" * 7, 64)


def test_terms_stand_alone() -> None:
    assert polynomial("(- (* 2.0 x) x)") == polynomial("x")


def judge(text: str, *cases: list[dict[str, Any]]) -> Verdict:
    data = {"smtlib": text, "cases": list(cases)}
    return positivstellensatz.judge(Obligation("positivstellensatz", "", "E", data)).verdict


def test_strict_signs_are_needed() -> None:
    case = [{"of": [0]}, {"of": [1]}]
    assert judge("(assert (not (<= x 0.0)))(assert (<= x 0.0))", case) is Verdict.PROVED
    assert judge("(assert (not (< x 0.0)))(assert (<= x 0.0))", case) is Verdict.REFUTED


def test_an_odd_power_of_what_is_not_0_has_no_sign() -> None:
    text = "(assert (not (= x 0)))(assert (= (+ x y) 0))(assert (not (= y 0)))"
    assert judge(text, [{"of": [0]}, {"of": [2]}, {"of": [1], "times": "(- 1.0)"}]) is Verdict.REFUTED
    # x² + y² − (x + y)x − (x + y)y + 2xy is 0, but the sign of xy is unknown.
    squares = [{"of": [0, 0]}, {"of": [2, 2]}, {"of": [1], "times": "(- (+ x y))"}]
    assert judge(text, [*squares, {"of": [0, 2], "times": "2.0"}]) is Verdict.REFUTED


def test_a_number_can_be_the_positive_term() -> None:
    assert (
        judge("(assert (<= (+ (* x x) 1.0) 0.0))", [{"of": [0]}, {"of": [], "square": "x"}, {"of": []}])
        is Verdict.PROVED
    )

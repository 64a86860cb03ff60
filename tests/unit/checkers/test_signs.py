"""Signs and orders from what a setting says: what follows, and what must not."""

from typing import Any

import pytest

from verify.checkers.normal_form import NormalForm
from verify.checkers.ordering import Ordering
from verify.checkers.signs import Signs
from verify.checkers.terms import ONE, Term, minus, plus, read

x, y, n, k = (["v", name] for name in "xynk")
a_j = ["at", "a", [["v", "j"]]]
NOTHING: dict[str, Any] = {
    "positive": [],
    "nonnegative": [],
    "nonzero": [],
    "nonempty": [],
    "order": [],
}


def signs(**setting: Any) -> Signs:
    return Signs(NormalForm(), NOTHING | setting)


def form(judge: Signs, term: Any) -> Any:
    return judge.forms.of(read(term))


def product(*items: Any) -> list[Any]:
    return ["*", *items]


def total(body: Any, lower: Any = ("q", "1")) -> list[Any]:
    return ["sum", "j", list(lower), n, body]


@pytest.mark.parametrize(
    ("term", "setting", "expected"),
    [
        (x, {}, False),
        (x, {"positive": ["x"]}, True),
        (x, {"nonnegative": ["x"]}, False),
        (x, {"positive": ["y"]}, False),
        (["exp", x], {}, True),
        (["log", x], {"positive": ["x"]}, False),
        (["^", x, 2], {}, False),
        (["^", x, -1], {"positive": ["x"]}, True),
        (product(x, y), {"positive": ["x"]}, False),
        (product(x, y), {"positive": ["x", "y"]}, True),
        (product(["q", "-1"], x), {"positive": ["x"]}, False),
        (["+", x, product(["q", "-1"], y)], {"positive": ["x", "y"]}, False),
        (["+", x, y], {"positive": ["x"], "nonnegative": ["y"]}, True),
        (["+", ["q", "1"], ["^", x, 2]], {}, True),
        (total(a_j), {"positive": ["a"]}, False),
        (total(a_j), {"positive": ["a"], "nonempty": [n]}, True),
        (total(a_j, ("q", "2")), {"positive": ["a"], "nonempty": [n]}, False),
        (total(a_j, ("v", "k")), {"positive": ["a"], "order": [[k, n]]}, True),
        (total(a_j, ("v", "k")), {"positive": ["a"], "order": [[n, k]]}, False),
        (total(a_j), {"nonnegative": ["a"], "nonempty": [n]}, False),
        (n, {"nonempty": [n]}, True),
        (n, {"order": [[["q", "0"], n]]}, False),
        (["q", "0"], {}, False),
    ],
)
def test_positive(term: Any, setting: dict[str, Any], expected: bool) -> None:
    judge = signs(**setting)
    assert judge.positive(form(judge, term)) is expected


@pytest.mark.parametrize(
    ("term", "setting", "expected"),
    [
        (x, {}, False),
        (x, {"nonzero": [x]}, True),
        (product(x, y), {"nonzero": [x]}, False),
        (product(x, y), {"nonzero": [x, y]}, True),
        (["+", x, y], {"nonzero": [x, y]}, False),
        (["+", x, y], {"nonzero": [["+", x, y]]}, True),
        (["+", product(["q", "2"], x), product(["q", "2"], y)], {"nonzero": [["+", x, y]]}, True),
        (["+", x, product(["q", "2"], y)], {"nonzero": [["+", x, y]]}, False),
        (product(["q", "-3"], x), {"positive": ["x"]}, True),
        (a_j, {"nonzero": [["at", "a", [["v", "k"]]]]}, False),
        (["q", "-2"], {}, True),
    ],
)
def test_nonzero(term: Any, setting: dict[str, Any], expected: bool) -> None:
    judge = signs(**setting)
    assert judge.is_nonzero(form(judge, term)) is expected


@pytest.mark.parametrize(
    ("term", "setting", "expected"),
    [
        (["^", ["+", x, y], 2], {}, True),
        (["^", ["+", x, y], 3], {}, False),
        (product(["q", "-1"], ["^", x, 2]), {}, False),
        (total(["^", a_j, 2]), {}, True),
        (total(a_j), {}, False),
        (total(["v", "j"]), {"positive": ["j"]}, False),
        (["^", total(["^", a_j, 2]), -1], {}, True),
        (["+", ["^", x, 2], y], {}, False),
    ],
)
def test_terms_that_are_not_negative(term: Any, setting: dict[str, Any], expected: bool) -> None:
    assert signs(**setting).term_nonnegative(read(term)) is expected


def order(*pairs: tuple[Any, Any]) -> Ordering:
    return Ordering.of(NOTHING | {"order": [list(pair) for pair in pairs]})


def index(name: str, shift: int = 0) -> Term:
    return plus(("v", name), ("q", str(shift)))


def test_inequalities_add_up_but_do_not_turn_round() -> None:
    known = order((k, n), (n, x))
    assert known.at_most(index("k"), index("x"))
    assert known.at_most(index("k", -1), index("n"))
    assert not known.at_most(index("k", 1), index("n"))
    assert not known.at_most(index("n"), index("k"))
    assert not known.at_most(index("k"), index("y"))
    assert not order().at_most(("q", "1"), index("n"))


def test_the_range_of_a_sum_is_known_inside_it_only() -> None:
    known = order().inside("j", ("v", "k"), ("v", "n"))
    assert known.at_most(("v", "j"), ("v", "n"))
    assert known.at_most(("v", "k"), ("v", "j"))
    assert not known.at_most(("v", "k"), ("v", "n")), "the sum may be empty"
    assert not known.at_most(("v", "n"), ("v", "j"))


def test_facts_on_an_outer_variable_do_not_hold_for_a_bound_one_of_its_name() -> None:
    known = order((k, n)).inside("k", ONE, ("v", "x"))
    assert not known.at_most(("v", "k"), ("v", "n"))
    assert known.at_most(("v", "k"), ("v", "x"))
    deeper = order().inside("j", ONE, ("v", "k")).inside("k", ONE, ("v", "x"))
    assert not deeper.at_most(("v", "j"), ("v", "k"))
    itself = order().inside("k", ONE, minus(("v", "k"), ONE))
    assert not itself.at_most(plus(("v", "k"), ONE), ("v", "k"))
    assert not itself.at_most(("v", "k"), minus(("v", "k"), ONE))
    beyond = order().inside("k", ONE, plus(("v", "k"), ("v", "m")))
    assert not beyond.at_most(ONE, plus(("v", "k"), ("v", "m"))), "the limit means another k"

"""Krawczyk's test proves zeros that are there and nothing else."""

from typing import Any

import pytest

from verify.checkers import krawczyk
from verify.model.evidence import Obligation
from verify.model.verdict import Verdict

X, Y = ["v", "x"], ["v", "y"]


# x² = 2 and e^y = x near (1.41421356, 0.34657359).
DATA: dict[str, Any] = {
    "variables": ["x", "y"],
    "steps": [["square", ["^", X, 2]]],
    "equations": [["+", ["v", "square"], ["q", "-2"]], ["+", ["exp", Y], ["*", ["q", "-1"], X]]],
    "centre": ["141421356/100000000", "34657359/100000000"],
    "radius": ["1/10000000", "1/10000000"],
    "inverse": [["3535/10000", "0"], ["1/4", "7071/10000"]],
    "apart": ["+", X, Y],
    "above": "176/100",
}


def judged(data: dict[str, Any]) -> Verdict:
    return krawczyk.judge(Obligation("zero-in-box", "test", "B", data)).verdict


def word(**changes: Any) -> Verdict:
    return judged(DATA | changes)


def test_a_zero_is_found() -> None:
    assert word() is Verdict.PROVED


@pytest.mark.parametrize(
    "changes",
    [
        {"centre": ["14142/10000", "34657359/100000000"]},
        {"equations": [["+", ["v", "square"], ["q", "2"]], ["+", ["exp", Y], ["*", ["q", "-1"], X]]]},
        {"equations": [["v", "square"], ["+", ["exp", Y], ["*", ["q", "-1"], X]]]},
        {"inverse": [["1/4", "7071/10000"], ["3535/10000", "0"]]},
        {"inverse": [["0", "0"], ["0", "0"]]},
        {"above": "177/100"},
        {"above": "-1/100"},
        {"above": None},
        {"radius": ["0", "1/10000000"]},
        {"radius": ["1/10000000"]},
        {"variables": ["x", "x"]},
        {"steps": [["x", ["^", X, 2]]]},
        {"steps": []},
        {"equations": [["log", ["*", ["q", "-1"], X]], Y]},
        {"equations": [["^", ["+", X, ["*", ["q", "-1"], X]], -1], Y]},
        {"equations": "x"},
        {"centre": None},
    ],
)
def test_anything_else_is_refuted(changes: dict[str, Any]) -> None:
    assert word(**changes) is Verdict.REFUTED


def test_a_bound_and_its_term_come_together() -> None:
    """Of the two, neither is read without the other."""
    for alone in ("apart", "above"):
        data = {name: entry for name, entry in DATA.items() if name not in ("apart", "above")}
        assert judged(data) is Verdict.PROVED
        assert judged(data | {alone: DATA[alone]}) is Verdict.REFUTED


def test_derivatives_of_every_operation_count() -> None:
    """ln(x)/x⁻¹·e^{x}: at x = 1 the value is 0 and the slope e."""
    product = ["*", ["log", X], ["^", ["^", X, -1], -1], ["exp", X]]
    changes = {
        "variables": ["x"],
        "steps": [],
        "equations": [product],
        "centre": ["1000001/1000000"],
        "radius": ["1/100000"],
        "inverse": [["36788/100000"]],
        "apart": X,
        "above": "9/10",
    }
    assert word(**changes) is Verdict.PROVED
    assert word(**(changes | {"inverse": [["-36788/100000"]]})) is Verdict.REFUTED

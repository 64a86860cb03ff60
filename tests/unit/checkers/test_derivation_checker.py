"""The step checker against planted falsehoods: each one beside the honest twin that it does accept."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from derivation_pairs import PAIRS, chain, proved, why, x, y

from verify.model.evidence import Obligation


def honest() -> Obligation:
    return (
        chain((x + y) ** 2)
        .rearrange("square", x**2 + 2 * x * y + y**2)
        .rearrange("again", (y + x) ** 2)
        .obligation()
    )


def tampered(change: Callable[[dict[str, Any]], None]) -> Obligation:
    data = copy.deepcopy(dict(honest().data))
    change(data)
    return Obligation("derivation", "tampered", "C", data)


def test_an_honest_chain_is_proved() -> None:
    assert proved(honest())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d["steps"][0].update(after=["v", "x"]), "does not reduce to zero"),
        (
            lambda d: d["steps"][1].update(before=["^", ["+", ["v", "y"], ["v", "x"]], 2]),
            "does not start where",
        ),
        (lambda d: d["steps"].pop(0), "does not start where"),
        (lambda d: d["steps"].pop(), "do not end at the goal"),
        (lambda d: d["goal"].update(rhs=["v", "x"]), "do not end at the goal"),
        (lambda d: d["goal"].update(lhs=["v", "x"]), "does not start where"),
        (lambda d: d["goal"].update(relation=">="), "do not end at the goal"),
        (lambda d: d["goal"].update(derivatives=[["v", "x"]]), "in which variables"),
        (lambda d: d["steps"][0].update(relation=">="), "does not fit the rule"),
        (lambda d: d["steps"][0].update(rule="believe"), "does not allow"),
        (lambda d: d["steps"][0].update(uses=[["h", ["q", "1"]]]), "does not allow"),
        (lambda d: d["steps"][0].update(unfold=["h"]), "does not allow"),
        (lambda d: d["steps"][0].update(terms=[["q", "1"]]), "does not allow"),
        (lambda d: d["steps"][0].update(splits=[[["v", "n"], ["v", "n"]]]), "does not allow"),
        (lambda d: d["steps"][0].update(variable=["v", "x"]), "does not allow"),
        (lambda d: d["steps"][0].update(rule="unfold", unfold=["h"]), "not defined"),
        (lambda d: d["steps"][0].update(rule="use hypothesis", uses=[["h", ["q", "1"]]]), "no hypothesis"),
        (lambda d: d["steps"][0].update(before="nonsense"), "not a term"),
        (lambda d: d["steps"][0].update(before=["q", "1/0"]), "not an exact rational"),
        (lambda d: d.pop("setting"), "malformed"),
        (lambda d: d.update(steps=None), "malformed"),
    ],
    ids=range(21),
)
def test_tampering_is_noticed(change: Callable[[dict[str, Any]], None], reason: str) -> None:
    assert not proved(tampered(change))
    assert reason in why(tampered(change))


def test_false_steps_whose_errors_cancel_are_noticed() -> None:
    assert not proved(chain(x).rearrange("wrong", x + 1).rearrange("wrong back", x).obligation())


@pytest.mark.parametrize("name", PAIRS)
def test_the_falsehood_is_not_proved(name: str) -> None:
    assert not proved(PAIRS[name][0])


@pytest.mark.parametrize("name", PAIRS)
def test_its_honest_twin_is(name: str) -> None:
    assert proved(PAIRS[name][1]), why(PAIRS[name][1])


def test_a_goal_with_derivatives_says_so() -> None:
    made = chain(x**2).differentiate("differentiate", 2 * x, x).obligation()
    assert made.data["goal"]["derivatives"] == [["v", "x"]]
    hidden = copy.deepcopy(dict(made.data))
    hidden["goal"]["derivatives"] = []
    assert not proved(Obligation("derivation", "x² = 2x", "C", hidden))

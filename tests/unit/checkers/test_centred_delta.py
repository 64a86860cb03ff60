"""The replay of the delta rule on centred data accepts a true history and notices every planted fault."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from verify.checkers import centred_delta
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

# Worked out by hand: κ_2 = (1, 0), κ_3 = (0, 2), v̄ = 0, 1/2, 1.
TRUE: dict[str, Any] = {
    "keys": [["0", "0"], ["2", "0"], ["1", "3"]],
    "values": [["0"], ["1"], ["2"]],
    "erase": True,
    "states": [[["0"], ["0"]], [["1/2"], ["0"]], [["1/3"], ["1"]]],
    "eigenvalues": ["0", "0", "-2/3"],
    "norm_squared": ["0", "4", "10"],
    "query": ["3", "1"],
    "outputs": [["0"], ["2"], ["3"]],
}


def judged(data: Any) -> Check:
    return centred_delta.judge(Obligation("centred-delta", "a history", "E", data))


def test_a_history_worked_out_by_hand_is_accepted() -> None:
    check = judged(TRUE)
    assert check.verdict is Verdict.PROVED, check.detail


def test_without_the_erase_term_nothing_is_taken_along_the_key() -> None:
    keys, values = [["0"], ["2"], ["4"]], [["0"], ["1"], ["0"]]
    shared = {"keys": keys, "values": values}
    assert (
        judged({**shared, "erase": False, "states": [[["0"]], [["1/2"]], [["0"]]]}).verdict is Verdict.PROVED
    )
    assert (
        judged({**shared, "erase": True, "states": [[["0"]], [["1/2"]], [["-2/3"]]]}).verdict
        is Verdict.PROVED
    )


def _set(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: dict[str, Any]) -> None:
        place: Any = data
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_set("states", 2, 1, 0, to="2"), "after token 3"),
        (_set("states", to=[[["0"], ["0"]]]), "1 states"),
        (_set("eigenvalues", 2, to="2/3"), "eigenvalues"),
        (_set("norm_squared", 1, to="2"), "lengths"),
        (_set("outputs", 1, 0, to="1"), "outputs"),
        (_set("keys", 1, 0, to="3"), "after token 2"),
        (_set("values", 2, 0, to="3"), "after token 3"),
        (_set("erase", to="yes"), "neither true nor false"),
        (_set("query", to=["1"]), "malformed"),
        (_set("keys", to=[["0", "0"], ["2"], ["1", "3"]]), "differ in length"),
    ],
)
def test_a_planted_falsehood_is_refuted(change: Callable[[dict[str, Any]], None], reason: str) -> None:
    data = copy.deepcopy(TRUE)
    change(data)
    check = judged(data)
    assert check.verdict is Verdict.REFUTED
    assert reason in check.detail


@pytest.mark.parametrize("missing", ["query", "outputs"])
def test_outputs_are_those_of_a_query(missing: str) -> None:
    data = {name: entry for name, entry in TRUE.items() if name != missing}
    assert judged(data).verdict is Verdict.REFUTED
    both = {name: entry for name, entry in data.items() if name not in ("query", "outputs")}
    assert judged(both).verdict is Verdict.PROVED


@pytest.mark.parametrize("junk", [None, 0.5, "1/0", "x", [], [[]], {}, 3, "1e9"], ids=repr)
def test_malformed_data_is_refuted_and_never_raises(junk: object) -> None:
    assert judged({}).verdict is Verdict.REFUTED
    for name in TRUE:
        assert judged({**TRUE, name: junk}).verdict is Verdict.REFUTED, name

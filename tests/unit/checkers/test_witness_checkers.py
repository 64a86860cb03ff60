"""Each witness checker accepts a true witness, rejects planted falsehoods, and never raises on bad data."""

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations
from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verify.checkers import (
    delta_read,
    determinant,
    exponential_determinant,
    linear_attention,
    polynomial_certificate,
    state_collision,
    transition,
)
from verify.checkers.determinant import eliminate
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

Data = dict[str, Any]

KEYS = {"features": [["1", "0"], ["1", "1"], ["1", "2"]], "keys": [["0"], ["1"], ["2"]]}
LAMBDA, X, Y = ["v", "lambda"], ["v", "x"], ["v", "y"]

TRUE: dict[str, Data] = {
    "state-collision": {
        "first": {**KEYS, "values": [["0", "5"], ["0", "5"], ["0", "5"]]},
        "second": {**KEYS, "values": [["1", "3"], ["-2", "9"], ["1", "3"]]},
        "z": ["1", "-2", "1"],
        "w": ["1", "-2"],
        "query": ["1"],
        "gap": "1/2",
    },
    "determinant": {"matrix": [["1/2", "1/3"], ["1/4", "1/5"]], "determinant": "1/60", "nonzero": True},
    "exponential-determinant": {"queries": ["0", "1/2", "3"], "keys": ["-1", "1/3", "2"], "sign": 1},
    "delta-read": {
        "writes": [
            {"beta": "1", "key": ["1", "0"], "value": ["1", "0"]},
            {"beta": "1", "key": ["3/5", "4/5"], "value": ["0", "1"]},
        ],
        "query": ["1", "0"],
        "output": ["16/25", "3/5"],
        "unit": True,
    },
    "kda-step": {
        "direction": ["1", "-1"],
        "norm_squared": "2",
        "beta": "1/2",
        "alpha": ["1/2", "1/3"],
        "matrix": [["3/8", "1/12"], ["1/8", "1/4"]],
        "unit": True,
    },
    "diagonal-plus-rank-one": {
        "diagonal": ["1", "1"],
        "left": ["-3", "0"],
        "right": ["0", "1"],
        "matrix": [["1", "-3"], ["0", "1"]],
    },
    "polynomial-certificate": {
        "equations": [["+", ["*", X, Y], ["q", "-1"]], X],
        "multipliers": [["q", "-2"], ["*", ["q", "2"], Y]],
        "target": ["q", "2"],
    },
    "linear-attention": {
        "queries": [["1", "2"], ["0", "1"], ["1", "1"]],
        "keys": [["1", "0"], ["2", "1"], ["0", "3"]],
        "values": [["1"], ["2"], ["-1"]],
        "chunk": 2,
        "mask": "causal",
        "outputs": [["1"], ["2"], ["4"]],
    },
}


CHECKERS = (
    delta_read,
    determinant,
    exponential_determinant,
    linear_attention,
    polynomial_certificate,
    state_collision,
    transition,
)


def judged(kind: str, data: Any) -> Check:
    (checker,) = (module for module in CHECKERS if kind in module.KINDS)
    return checker.judge(Obligation(kind, "a witness", "E", data))


def test_every_kind_has_a_true_witness_here() -> None:
    assert frozenset().union(*(module.KINDS for module in CHECKERS)) == set(TRUE)


@pytest.mark.parametrize("kind", TRUE)
def test_a_true_witness_is_accepted(kind: str) -> None:
    check = judged(kind, TRUE[kind])
    assert check.verdict is Verdict.PROVED, check.detail


def at(*path: str | int, to: object) -> Callable[[Data], None]:
    """A change of one place in the data."""

    def change(data: Data) -> None:
        place: Any = data
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to

    return change


FALSE = [
    ("state-collision", at("second", "values", 0, 0, to="2"), "state"),
    ("state-collision", at("second", "values", to=[["0", "5"]] * 3), "the same"),
    ("state-collision", at("gap", to="9/10"), "certainly"),
    ("state-collision", at("gap", to="0"), "separates nothing"),
    ("state-collision", at("query", to=["0"]), "certainly"),
    ("state-collision", at("z", to=["1", "-1", "1"]), "not zero"),
    ("state-collision", at("z", to=["0", "0", "0"]), "z is zero"),
    ("state-collision", at("w", to=["1", "2"]), "values"),
    ("state-collision", at("first", "keys", to=[["0"], ["1"], ["1"]]), "one key has two"),
    ("state-collision", at("first", "keys", to=[["0"], ["1"]]), "different numbers"),
    ("determinant", at("determinant", to="1/61"), "1/60"),
    ("determinant", at("matrix", to=[["1", "2"], ["2", "4"]]), "determinant"),
    ("determinant", at("nonzero", to="true"), "neither true nor false"),
    ("exponential-determinant", at("sign", to=-1), "determinant"),
    ("exponential-determinant", at("queries", to=["0", "0", "3"]), "column"),
    ("exponential-determinant", at("keys", to=["0", "1"]), "square"),
    ("delta-read", at("output", to=["16/25", "4/5"]), "output"),
    ("delta-read", at("writes", 0, "key", to=["2", "0"]), "squared length"),
    ("delta-read", at("writes", 1, "beta", to="98/100"), "output"),
    ("kda-step", at("matrix", 0, 1, to="-1/12"), "stated"),
    ("kda-step", at("matrix", to=[["3/8", "1/8"], ["1/12", "1/4"]]), "stated"),
    ("kda-step", at("norm_squared", to="3"), "squared length"),
    ("kda-step", at("norm_squared", to="0"), "impossible"),
    ("kda-step", at("alpha", to=["1/2"]), "decays"),
    ("diagonal-plus-rank-one", at("left", 0, to="3"), "stated"),
    ("diagonal-plus-rank-one", at("right", to=["0"]), "length"),
    ("polynomial-certificate", at("multipliers", 0, to=["q", "1"]), "not 0"),
    ("polynomial-certificate", at("target", to=["q", "1"]), "not 0"),
    ("polynomial-certificate", at("multipliers", to=[["q", "-1"]]), "multipliers"),
    ("polynomial-certificate", at("equations", 1, to=["^", X, -1]), "polynomial"),
    ("linear-attention", at("outputs", 1, 0, to="3"), "output"),
    ("linear-attention", at("mask", to="none"), "output"),
    ("linear-attention", at("mask", to="all"), "mask"),
    ("linear-attention", at("chunk", to=0), "chunk"),
]


@pytest.mark.parametrize(("kind", "change", "reason"), FALSE)
def test_a_planted_falsehood_is_refuted(kind: str, change: Callable[[Data], None], reason: str) -> None:
    data = json.loads(json.dumps(TRUE[kind]))
    change(data)
    check = judged(kind, data)
    assert check.verdict is Verdict.REFUTED
    assert reason in check.detail


def _places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in _places(item, (*path, key)))]


@pytest.mark.parametrize("kind", TRUE)
@pytest.mark.parametrize("junk", [None, 0.5, "1/0", "x", [], [[]], {}, True, "1e9"], ids=repr)
def test_malformed_data_is_refuted_and_never_raises(kind: str, junk: object) -> None:
    assert judged(kind, {}).verdict is Verdict.REFUTED
    for path in _places(TRUE[kind])[1:]:
        data = json.loads(json.dumps(TRUE[kind]))
        at(*path, to=copy.deepcopy(junk))(data)
        check = judged(kind, data)
        if data != TRUE[kind]:
            assert check.verdict is Verdict.REFUTED, path


def test_equal_states_with_different_normalisers_are_no_collision() -> None:
    zero = [["0"], ["0"], ["0"]]
    other = {"features": [["1", "0"], ["1", "1"], ["1", "3"]], "keys": [["0"], ["1"], ["3"]]}
    data = {
        "first": {**KEYS, "values": zero},
        "second": {**other, "values": zero},
        "query": ["1"],
        "gap": "1/9",
    }
    assert "normaliser" in judged("state-collision", data).detail


def test_one_chunk_without_mask_sees_the_future() -> None:
    data = TRUE["linear-attention"] | {"chunk": 3, "mask": "none", "outputs": [["3"], ["-1"], ["4"]]}
    assert judged("linear-attention", data).verdict is Verdict.PROVED


def test_a_vandermonde_matrix_is_built_from_its_nodes() -> None:
    data = {"nodes": ["1/2", "2", "-1"], "powers": [0, 1, 2], "determinant": "27/4"}
    assert judged("determinant", data).verdict is Verdict.PROVED
    assert judged("determinant", data | {"powers": [0, 1, 3]}).verdict is Verdict.REFUTED


def test_a_determinant_of_zero_is_not_nonzero() -> None:
    data = {"matrix": [["1", "2"], ["2", "4"]]}
    assert judged("determinant", data | {"determinant": "0"}).verdict is Verdict.PROVED
    assert judged("determinant", data | {"determinant": "0", "nonzero": True}).verdict is Verdict.REFUTED
    assert judged("determinant", data | {"nonzero": False}).verdict is Verdict.REFUTED


def test_a_rank_is_compared() -> None:
    data = {"matrix": [["0", "1", "2"], ["0", "2", "4"], ["0", "0", "3"]], "rank": 2}
    assert judged("determinant", data).verdict is Verdict.PROVED
    assert judged("determinant", data | {"rank": 3}).verdict is Verdict.REFUTED


ENTRIES = st.fractions(min_value=-3, max_value=3, max_denominator=3)


def _leibniz(rows: list[list[Fraction]]) -> Fraction:
    total = Fraction(0)
    for order in permutations(range(len(rows))):
        swaps = sum(order[i] > order[j] for j in range(len(rows)) for i in range(j))
        total += (-1) ** swaps * prod((rows[i][order[i]] for i in range(len(rows))), start=Fraction(1))
    return total


@settings(deadline=None)
@given(
    st.integers(1, 4).flatmap(
        lambda n: st.lists(st.lists(ENTRIES, min_size=n, max_size=n), min_size=n, max_size=n)
    )
)
def test_elimination_gives_the_sum_over_permutations(rows: list[list[Fraction]]) -> None:
    rank, determinant = eliminate(rows)
    assert determinant == _leibniz(rows)
    assert (rank == len(rows)) == (determinant != 0)

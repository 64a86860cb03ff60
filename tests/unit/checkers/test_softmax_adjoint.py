"""Dual numbers accept true gradients of softmax attention and notice every planted fault."""

import copy
from typing import Any

import pytest

from derivations.softmax._backward import in_numbers
from verify.checkers import softmax_adjoint
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

# Weights 1/4 and 3/4 on values 0 and 8, cotangents ō = 1 and ℓ̄ = 4: o = 6, so the scores' gradients are
# 1/4·(0 − 6 + 4) and 3/4·(8 − 6 + 4).
BY_HAND: dict[str, Any] = {
    "powers": [["1", "3"]],
    "values": [["0"], ["8"]],
    "outputs": [["1"]],
    "totals": ["4"],
    "gradients": {"scores": [["-1/2", "9/2"]], "values": [["1/4"], ["3/4"]]},
}


def judged(data: Any) -> Check:
    return softmax_adjoint.judge(Obligation("softmax-adjoint", "gradients", "E", data))


def test_gradients_worked_out_by_hand_are_accepted() -> None:
    check = judged(BY_HAND)
    assert check.verdict is Verdict.PROVED, check.detail
    assert check.detail.startswith("4 derivatives")


@pytest.mark.parametrize("name", ["scores", "values"])
@pytest.mark.parametrize("place", [(0, 0), (-1, -1)], ids=str)
def test_each_gradient_is_compared_entry_by_entry(name: str, place: tuple[int, int]) -> None:
    data = copy.deepcopy(dict(in_numbers().data))
    assert judged(data).verdict is Verdict.PROVED
    data["gradients"][name][place[0]][place[1]] = "1/97"
    check = judged(data)
    assert check.verdict is Verdict.REFUTED
    assert f"derivative in {name}[" in check.detail


def test_a_hidden_token_has_no_gradient() -> None:
    gradients = {"scores": [["0", "4"]], "values": [["0"], ["1"]]}
    assert judged({**BY_HAND, "powers": [["0", "3"]], "gradients": gradients}).verdict is Verdict.PROVED


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"totals": ["3"]}, "derivative in scores"),
        ({"outputs": [["2"]]}, "derivative in scores"),
        ({"values": [["0"], ["7"]]}, "derivative in scores"),
        ({"powers": [["1", "-3"]]}, "positive"),
        ({"powers": [["0", "0"]]}, "sees a token"),
        ({"powers": [["1", "3", "1"]]}, "do not fit"),
        ({"totals": ["4", "4"]}, "do not fit"),
        ({"outputs": [["1", "1"]]}, "width"),
        ({"gradients": {**BY_HAND["gradients"], "scores": [["-1/2", "9/2", "0"]]}}, "another shape"),
        ({"gradients": {**BY_HAND["gradients"], "values": [["1/4"]]}}, "another shape"),
    ],
)
def test_a_planted_falsehood_is_refuted(change: dict[str, Any], reason: str) -> None:
    check = judged({**BY_HAND, **change})
    assert check.verdict is Verdict.REFUTED
    assert reason in check.detail


@pytest.mark.parametrize("junk", [None, 0.5, "1/0", "x", [], [[]], {}, 3, "1e9"], ids=repr)
def test_malformed_data_is_refuted_and_never_raises(junk: object) -> None:
    assert judged({}).verdict is Verdict.REFUTED
    for name in BY_HAND:
        assert judged({**BY_HAND, name: junk}).verdict is Verdict.REFUTED, name
    for name in BY_HAND["gradients"]:
        gradients = {**BY_HAND["gradients"], name: junk}
        assert judged({**BY_HAND, "gradients": gradients}).verdict is Verdict.REFUTED, name

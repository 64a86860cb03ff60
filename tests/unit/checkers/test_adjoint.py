"""Dual numbers accept true gradients of the KDA recurrence and notice every planted fault."""

import copy
from typing import Any

import pytest

from derivations.kda._backward import in_numbers
from verify.checkers import adjoint
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

# One token, one channel, by hand: P = αs = 3/2, m = v − kP = 2, u = βm = 1, S = P + ku = 7/2, o = qS; with
# A = s̄ + qō = 1 + 2·3 = 7: v̄ = βAk = 7, β̄ = Akm = 28, P̄ = A − kv̄ = −7.
BY_HAND: dict[str, Any] = {
    "queries": [["2"]],
    "keys": [["2"]],
    "values": [["5"]],
    "decays": [["1/2"]],
    "strengths": ["1/2"],
    "initial": [["3"]],
    "outputs": [["3"]],
    "final": [["1"]],
    "gradients": {
        "queries": [["21/2"]],
        "keys": [["-7/2"]],
        "values": [["7"]],
        "decays": [["-21/2"]],
        "strengths": ["28"],
        "initial": [["-7/2"]],
    },
}


def judged(data: Any) -> Check:
    return adjoint.judge(Obligation("adjoint", "gradients", "E", data))


def test_gradients_worked_out_by_hand_are_accepted() -> None:
    check = judged(BY_HAND)
    assert check.verdict is Verdict.PROVED, check.detail
    assert check.detail.startswith("6 derivatives")


@pytest.mark.parametrize("name", adjoint.INPUTS)
def test_each_gradient_is_compared_entry_by_entry(name: str) -> None:
    data = copy.deepcopy(dict(in_numbers().data))
    assert judged(data).verdict is Verdict.PROVED
    rows = data["gradients"][name]
    if name == "strengths":
        rows[-1] = "1/97"
    else:
        rows[-1][-1] = "1/97"
    check = judged(data)
    assert check.verdict is Verdict.REFUTED
    assert f"{name}[{len(rows) - 1}]" in check.detail


@pytest.mark.parametrize("name", [*adjoint.INPUTS, "outputs", "final"])
def test_gradients_of_other_inputs_are_refuted(name: str) -> None:
    data = copy.deepcopy(BY_HAND)
    data[name] = ["7"] if name == "strengths" else [["7"]]
    assert judged(data).verdict is Verdict.REFUTED


def test_shapes_must_fit() -> None:
    two = {**BY_HAND, "keys": [["2", "1"]]}
    assert "widths do not fit" in judged(two).detail
    gradients = {**BY_HAND["gradients"], "keys": [["-7/2", "0"]]}
    assert "another shape" in judged({**BY_HAND, "gradients": gradients}).detail
    longer = {**BY_HAND["gradients"], "strengths": ["28", "0"]}
    assert "another shape" in judged({**BY_HAND, "gradients": longer}).detail


@pytest.mark.parametrize("decay", ["0", "-1/2"])
def test_a_decay_without_a_real_gate_is_refuted(decay: str) -> None:
    assert "is positive" in judged({**BY_HAND, "decays": [[decay]]}).detail


@pytest.mark.parametrize("junk", [None, 0.5, "1/0", "x", [], [[]], {}, 3, "1e9"], ids=repr)
def test_malformed_data_is_refuted_and_never_raises(junk: object) -> None:
    assert judged({}).verdict is Verdict.REFUTED
    for name in BY_HAND:
        assert judged({**BY_HAND, name: junk}).verdict is Verdict.REFUTED, name
    for name in adjoint.INPUTS:
        gradients = {**BY_HAND["gradients"], name: junk}
        assert judged({**BY_HAND, "gradients": gradients}).verdict is Verdict.REFUTED, name

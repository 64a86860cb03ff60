"""The bound of inverses by doubling: nothing exceeds it; it is near what they err by where they hold."""

import dataclasses

import numpy as np
import pytest
import torch
from conspiring import Conspiring
from torch import Tensor

from verify.audit.case import Shape
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.mechanism import MECHANISMS
from verify.audit.reference.results import float64_reference
from verify.audit.tolerance.predicted.doubling import doubling_delta_rule
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.worst_case.chunk_scores import Rounding
from verify.audit.tolerance.worst_case.doubled import system
from verify.audit.tolerance.worst_case.enclosed import Enclosed
from verify.audit.tolerance.worst_case.rigorous import derivation, worst_case

C = 24
U = 2.0**-24
ROUNDING = Rounding(U / (1 - U), 1e-38, C, "", 87.0)
KINDS = {kind.name: kind for kind in REAL_CLASSES}
DOUBLING = Algorithm("chunked", 32, "float32", "float32", "float32", inverse="doubling")


def doubled(a: Conspiring, m: Tensor, order: str) -> Tensor:
    eye = torch.eye(len(m), dtype=torch.float64)
    power, found, covered = m, eye - m, 2
    while covered < len(m):
        power = a.product(power, power)
        found = a.product(found, eye + power) if order == "left" else a.product(eye + power, found)
        covered *= 2
    return found


def strict(keys: str, strength: float) -> np.ndarray:
    k = np.random.default_rng(2).standard_normal((C, 8)) + {"constant": 1e9, "near": 2.0, "random": 0.0}[keys]
    k /= np.linalg.norm(k, axis=1, keepdims=True)
    return np.tril(strength * k @ k.T, -1)


@pytest.mark.parametrize("order", ["left", "right"])
@pytest.mark.parametrize("keys", ["constant", "near", "random"])
@pytest.mark.parametrize("strength", [0.5, 1.0])
def test_no_conspiracy_exceeds_it(order: str, keys: str, strength: float) -> None:
    m = strict(keys, strength)
    error = 20 * U * np.abs(m)
    found = system(Enclosed(m, 1e-15 * np.abs(m)), error, ROUNDING)
    right = np.random.default_rng(5).standard_normal((C, 1))
    exact = np.linalg.inv(np.eye(C) + m)
    before, beside = found.applied([np.abs(right[:, 0])], np.abs(exact @ right)[:, 0])
    bound, largest = np.abs(exact) @ before + beside, 0.0
    given, r = torch.from_numpy(m), torch.from_numpy(right)
    for row in (C - 1, C // 2, 3):
        conspiracy = Conspiring(U)

        def entry(row: int = row, conspiracy: Conspiring = conspiracy) -> Tensor:
            lost = torch.from_numpy(error) * conspiracy.chosen(given.shape)
            return (doubled(conspiracy, given + lost, order) @ r)[row, 0]

        off = abs(conspiracy.worst(entry).item() - (exact @ right)[row, 0])
        assert off <= bound[row] * (1 + 1e-9)
        largest = max(largest, off / bound[row])
    assert largest > 1 / 4


@pytest.mark.parametrize("mechanism", ["delta", "gdn", "kda"])
@pytest.mark.parametrize("name", ["random", "positive", "constant-key-0.5", "constant-key-1"])
def test_a_kernel_that_doubles_stays_below(mechanism: str, name: str) -> None:
    case = draw_case(
        KINDS[name], mechanism, Shape(1, 40, 1, 2, 24, 8), dtype="float32", seed=5, with_state=True
    )
    arrays = {field: torch.from_numpy(x).float() for field, x in case.arrays().items()}
    output, state = doubling_delta_rule(**arrays, scale=case.scale, chunk_size=32)
    reference = float64_reference(case)
    bound, plain = (
        worst_case(case, reference, dataclasses.replace(DOUBLING, inverse=inverse))
        for inverse in ("doubling", "substitution")
    )
    error = np.linalg.norm(output.double().numpy() - reference.output, axis=-1)
    ending = np.linalg.norm(state.double().numpy() - reference.final_state, axis=(-1, -2))
    assert (error <= bound.output).all()
    assert (ending <= bound.state).all()
    if name == "random":
        # Powers of a small matrix vanish: no more than substitution may err by, or hardly.
        assert (bound.output < 1.5 * plain.output).all()
    if name == "constant-key-1":
        # Powers of 2^15 and more cancel: useless, and so are the results.
        assert error.max() > 10 * plain.output.max()
        assert bound.output.max() > 1


def test_powers_that_overflow_leave_nothing_finite() -> None:
    m = np.tril(np.full((C, C), 1e9), -1)
    with np.errstate(invalid="ignore", over="ignore"):
        found = system(Enclosed(m, 0 * m), 0 * m, ROUNDING)
    assert not np.isfinite(found.beside).all()


def test_it_is_derived_for_rules_of_one_direction() -> None:
    found = derivation(MECHANISMS["kda"], DOUBLING)
    assert found is not None
    assert "by doubling" in found.assumptions[-1]
    assert derivation(MECHANISMS["gdn2"], DOUBLING) is None

"""The proved bound of one input: no rounding exceeds it, wrong kernels do, certificates say so truthfully."""

import dataclasses
from collections.abc import Callable
from importlib import import_module

import numpy as np
import pytest
import torch

from verify.audit.bench import Bench
from verify.audit.case import Case, Outcome, Shape
from verify.audit.certify import certify
from verify.audit.convention.convention import Convention
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.judge import judge
from verify.audit.mechanism import MECHANISMS
from verify.audit.reference.results import float64_reference
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.worst_case.rigorous import derived, worst_case
from verify.checkers.kernel_certificate import recheck

KINDS = {kind.name: kind for kind in REAL_CLASSES}
SHAPE = Shape(B=1, T=24, H=1, HV=2, K=6, V=5)
ERASING = [name for name, kind in MECHANISMS.items() if kind.erases]
REPLACING = [name for name, kind in MECHANISMS.items() if kind.erases or kind.directed]
NAMES = ("random", "constant-key-0.97", "gate-strong", "gate-reset", "beta-above-one", "predicted-value")


def drawn(mechanism: str, name: str, dtype: str = "float32") -> Case:
    return draw_case(KINDS[name], mechanism, SHAPE, dtype=dtype, seed=3, with_state=True)


CASES = [
    (mechanism, name, dtype)
    for mechanism in REPLACING
    for name in NAMES
    for dtype in ("float32", "bfloat16")
    if KINDS[name].suits(MECHANISMS[mechanism])
]


@pytest.mark.parametrize(("mechanism", "name", "dtype"), CASES)
def test_our_recurrent_kernels_meet_it(mechanism: str, name: str, dtype: str) -> None:
    convention = Convention.load("ours", mechanism, f"recurrent_{mechanism}")
    case = drawn(mechanism, name, dtype)
    reference = float64_reference(case)
    bound = worst_case(case, reference, Algorithm.of(convention, dtype))
    kernel = getattr(import_module(f"kernels.{mechanism}.recurrent"), f"recurrent_{mechanism}")
    arrays = {n: torch.from_numpy(x).to(getattr(torch, case.dtype_of(n))) for n, x in case.arrays().items()}
    output, state = kernel(**arrays, scale=case.scale, output_final_state=True)
    error = np.linalg.norm(output.double().numpy() - reference.output, axis=-1)
    assert (error <= bound.output).all()
    assert (
        np.linalg.norm(state.double().numpy() - reference.final_state, axis=(-1, -2)) <= bound.state
    ).all()
    assert (error / bound.output).max() > 1e-3


def perturbed(case: Case, u: float, sign: Callable[[], float]) -> tuple[np.ndarray, np.ndarray]:
    """The recurrence of every head, each result of an operation moved by u in the direction of ``sign``."""
    s = case.shape
    output, final = np.empty((s.B, s.T, s.HV, s.V)), np.empty((s.B, s.HV, s.K, s.V))

    def moved(x):
        return x * (1 + u * sign())

    def dot(x, y):
        total = moved(x[0] * y[0])
        for a, b in zip(x[1:], y[1:], strict=True):
            total = moved(total + moved(a * b))
        return total

    q, k = case.spread("q") * case.scale, case.spread("k")
    for b, h in np.ndindex(s.B, s.HV):
        state = case.initial_state[b, h]
        for t in range(s.T):
            key = k[b, t, h]
            decayed = moved(moved(np.exp(case.log_decay[b, t, h]))[:, None] * state)
            written = moved(case.beta[b, t, h] * moved(case.v[b, t, h] - dot(key, decayed)))
            state = moved(decayed + moved(key[:, None] * written))
            output[b, t, h] = dot(moved(q[b, t, h]), state)
        final[b, h] = state
    return output, final


@pytest.mark.parametrize("mechanism", ERASING)
@pytest.mark.parametrize("name", ["random", "constant-key-0.97", "beta-above-one"])
def test_roundings_that_conspire_do_not_exceed_it(mechanism: str, name: str) -> None:
    case = drawn(mechanism, name)
    algorithm = Algorithm.of(Convention.load("ours", mechanism, f"recurrent_{mechanism}"), "float32")
    reference = float64_reference(case)
    bound = worst_case(case, reference, algorithm)
    rng = np.random.default_rng(1)
    signs = (lambda: 1.0, lambda: -1.0, lambda: rng.choice([-1.0, 1.0]), lambda: rng.uniform(-1, 1))
    largest = 0.0
    for sign in signs:
        output, state = perturbed(case, 2.0**-24, sign)
        ratio = np.linalg.norm(output - reference.output, axis=-1) / bound.output
        assert ratio.max() <= 1
        assert (np.linalg.norm(state - reference.final_state, axis=(-1, -2)) <= bound.state).all()
        largest = max(largest, float(ratio.max()))
    # Not beyond reach: roundings in one direction come within a factor of 200 of it.
    assert largest > 1 / 200


@pytest.mark.parametrize("mechanism", REPLACING)
def test_more_than_the_bound_is_refuted(mechanism: str) -> None:
    convention = Convention.load("ours", mechanism, f"recurrent_{mechanism}")
    case = drawn(mechanism, "random")
    yardstick = Bench(convention, 1, runs=8).yardstick(case)
    bound = yardstick.worst_case
    # Only the worst case speaks here: the derived tolerance is made too wide to notice.
    wide = dataclasses.replace(
        yardstick,
        output_tolerance=yardstick.output_tolerance + 1,
        state_tolerance=yardstick.state_tolerance + 1,
    )
    for factor, refuted in ((0.9, False), (1.1, True)):
        output = yardstick.output.copy()
        output[0, 4, 1, 2] += factor * bound.output[0, 4, 1]
        judged = judge(case, Outcome(output, yardstick.state, "float32", "float32", None, 0.0), wide)
        assert judged.failed is refuted
        assert judged.cell()["worst_case"]["output"] == pytest.approx(factor, rel=1e-4)


def test_it_is_derived_where_the_algorithm_is_one_of_those_analysed() -> None:
    usual = Algorithm("chunked", 16, "float32", "float32", "float32")
    for mechanism, algorithm, expected in (
        ("kda", dataclasses.replace(usual, form="recurrent", chunk_size=None), True),
        ("kda", usual, True),
        ("linear", usual, True),
        ("dplr", usual, True),
        ("gdn2", dataclasses.replace(usual, form="recurrent", chunk_size=None), True),
        ("gdn2", dataclasses.replace(usual, corrections="factored"), True),
        ("gdn2", dataclasses.replace(usual, inverse="doubling"), False),
        ("dplr", dataclasses.replace(usual, qk_norm="unit"), False),
        ("softmax", dataclasses.replace(usual, form="tiled"), True),
        ("softmax_sink", dataclasses.replace(usual, form="tiled"), True),
        ("linear_normalised", usual, True),
        ("kda", dataclasses.replace(usual, inverse="doubling"), True),
        ("kda", dataclasses.replace(usual, products="tf32"), True),
        ("kda", dataclasses.replace(usual, products="tf32", accumulate="hopper"), True),
        ("gdn2", dataclasses.replace(usual, products="tf32"), False),
        ("kda", dataclasses.replace(usual, accumulate="hopper"), False),
        ("kda", dataclasses.replace(usual, beta_form="sigmoid"), False),
    ):
        assert derived(MECHANISMS[mechanism], algorithm) is expected, (mechanism, algorithm)


def test_a_certificate_states_it_and_recheck_compares() -> None:
    target, classes = "kernels.delta.recurrent:recurrent_delta", ["random", "integer"]
    result = certify(target, "delta", "ours", classes=classes, gradients=True)
    stated = result["worst_case"]
    assert (stated["derived"], stated["met"]) == (True, True)
    assert 1e-4 < stated["worst_ratio"] < 0.2
    assert {cell["class"] for cell in result["cells"] if cell["worst_case"] is None} == {"integer"}
    assert recheck(result) == []
    assert "worst_case" in recheck({**result, "worst_case": {**stated, "worst_ratio": 1e-5}})[0]
    assert "met is False" in recheck({**result, "worst_case": {**stated, "met": False}})[0]
    cells = [dict(cell) for cell in result["cells"]]
    cell = next(cell for cell in cells if cell["worst_case"] is not None)
    cell["worst_case"] = {"output": 2.0, "state": 0.1}
    assert any("figures say refuted" in fault for fault in recheck({**result, "cells": cells}))
    stated = result["gradient_worst_case"]
    assert (stated["derived"], stated["met"]) == (True, True)
    assert 1e-4 < stated["worst_ratio"] < 0.3
    wrong = {**result, "gradient_worst_case": {**stated, "worst_ratio": 1e-5}}
    assert "gradient_worst_case: worst_ratio" in recheck(wrong)[0]
    gradients = [dict(cell) for cell in result["gradients"]]
    gradients[0]["worst_case"] = {**gradients[0]["worst_case"], "k": 2.0}
    assert any("figures say refuted" in fault for fault in recheck({**result, "gradients": gradients}))

"""Figures and verdicts of one cell."""

import json

import numpy as np
import pytest

from verify.audit.case import Case, Outcome, Problem
from verify.audit.convention.convention import Convention
from verify.audit.diagnosis.variants import VARIANTS, recurrence
from verify.audit.inputs.probes import probe
from verify.audit.judge import Judgement, Yardstick, judge
from verify.audit.mechanism import MECHANISMS
from verify.audit.reference.results import float64_reference

CONVENTION = Convention.load("ours", "kda", "recurrent_kda")
CASE = probe(CONVENTION, "float32", 5, seed=7, grouped=True)
OUTPUT, STATE = recurrence(CASE)


def judged(
    output: np.ndarray, state: np.ndarray, tolerance: float = 1e-3, problem: Problem | None = None
) -> Judgement:
    rows, heads = np.full(OUTPUT.shape[:3], tolerance), np.full(STATE.shape[:2], tolerance)
    yardstick = Yardstick("float64", OUTPUT, STATE, rows, heads, rows / 10, heads / 10, 0 * rows)
    return judge(CASE, Outcome(output, state, "float32", "float32", problem, 0.1), yardstick)


def with_error(array: np.ndarray, where: tuple[int, ...], error: float) -> np.ndarray:
    changed = array.copy()
    changed[where] += error
    return changed


def test_no_error_holds() -> None:
    cell = judged(OUTPUT, STATE).cell()
    assert cell["verdict"] == "sampled"
    assert cell["output"]["worst_ratio"] == 0
    assert len(cell["output"]["per_token"]["error"]) == CASE.shape.T


@pytest.mark.parametrize(("error", "verdict"), [(0.9e-3, "sampled"), (1.1e-3, "refuted")])
def test_the_tolerance_decides(error: float, verdict: str) -> None:
    cell = judged(with_error(OUTPUT, (0, 3, 2, 1), error), STATE).cell()
    assert cell["verdict"] == verdict
    assert cell["output"]["worst_at"] == {"b": 0, "t": 3, "h": 2}
    assert cell["output"]["worst_ratio"] == pytest.approx(error / 1e-3)
    assert cell["output"]["worst_over_deviation"] == pytest.approx(error / 1e-4)


def test_the_norm_runs_over_the_values_of_a_row() -> None:
    moved = OUTPUT.copy()
    moved[0, 2, 1] += 0.6e-3
    assert judged(moved, STATE).verdict == "refuted"


def test_a_wrong_state_alone_refutes() -> None:
    assert judged(OUTPUT, with_error(STATE, (0, 1, 2, 3), 2e-3)).verdict == "refuted"


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_refute_and_stay_json(value: float) -> None:
    broken = OUTPUT.copy()
    broken[0, 1, 0, 0] = value
    cell = judged(broken, STATE, tolerance=1e300).cell()
    assert cell["verdict"] == "refuted"
    assert cell["output"]["nonfinite"] == 1
    assert cell["output"]["max_abs_error"] == "inf"
    json.dumps(cell, allow_nan=False)


def test_any_difference_beats_a_tolerance_of_zero() -> None:
    assert judged(OUTPUT, STATE, tolerance=0).verdict == "sampled"
    assert judged(np.nextafter(OUTPUT, 9), STATE, tolerance=0).cell()["output"]["worst_ratio"] == "inf"


def test_a_problem_refutes_right_numbers() -> None:
    assert judged(OUTPUT, STATE, problem=Problem("inputs-mutated", "it wrote")).verdict == "refuted"


SHARED = {"missing scale", "scale applied twice", "head grouping tiled instead of interleaved"}
BEFORE = {"read before the write", "read before the decay and the write"}
STATEFUL = SHARED | BEFORE | {"initial state ignored", "state transposed"}
OF_SOFTMAX = {"no causal mask", "mask one token too wide", "mask one token too narrow", "no normaliser"}
TOLD_APART = {
    "linear": STATEFUL,
    "delta": STATEFUL
    | {
        "β missing",
        "no erase",
        "neither erase nor write strength",
        "β rounded to bfloat16",
        "β rounded to float16",
    },
    "softmax": SHARED | OF_SOFTMAX,
}


@pytest.mark.parametrize("mechanism", list(TOLD_APART))
def test_the_variants_of_a_mechanism_are_those_it_can_have(mechanism: str) -> None:
    convention = Convention.load("ours", mechanism, f"{MECHANISMS[mechanism].forms[0]}_{mechanism}")
    case: Case = probe(convention, "float32", 9, seed=1, grouped=True, initial_state=True)
    right = float64_reference(case)
    results = [(variant.reason, variant.run(case)) for variant in VARIANTS]
    apart = {
        reason
        for reason, result in results
        if result is not None
        and not (np.allclose(result[0], right.output) and np.allclose(result[1], right.final_state))
    }
    assert apart == TOLD_APART[mechanism]


@pytest.mark.parametrize("mechanism", ["gdn", "kda"])
def test_every_variant_differs_from_the_definition(mechanism: str) -> None:
    convention = Convention.load("ours", mechanism, f"recurrent_{mechanism}")
    case: Case = probe(convention, "float32", 9, seed=1, grouped=True, initial_state=True)
    output, state = recurrence(case)
    bound = float64_reference(case)
    seen = set()
    own = [variant for variant in VARIANTS if variant.reason not in OF_SOFTMAX]
    for variant in own:
        result = variant.run(case)
        assert result is not None
        # Two float64 evaluations of one thing are at most the sum of their error bounds apart.
        apart = np.linalg.norm(result[0] - output, axis=-1), np.linalg.norm(result[1] - state, axis=(-2, -1))
        same = (apart[0] <= 2 * bound.output_error).all() and (apart[1] <= 2 * bound.state_error).all()
        commutes = mechanism == "gdn" and "before the write" in variant.detail
        assert same == commutes, variant.detail
        if not same:
            seen.add(np.concatenate([result[0].ravel(), result[1].ravel()]).tobytes())
    assert len(seen) == len(own) - (mechanism == "gdn")


@pytest.mark.parametrize("mechanism", ["gdn", "kda"])
def test_the_recurrence_is_the_definition(mechanism: str) -> None:
    convention = Convention.load("ours", mechanism, f"recurrent_{mechanism}")
    case = probe(convention, "float32", 9, seed=2, grouped=True, initial_state=True)
    reference = float64_reference(case)
    output, state = recurrence(case)
    assert (np.linalg.norm(output - reference.output, axis=-1) <= 4 * reference.output_error).all()
    assert (np.linalg.norm(state - reference.final_state, axis=(-1, -2)) <= 4 * reference.state_error).all()

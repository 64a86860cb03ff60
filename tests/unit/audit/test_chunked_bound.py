"""The bound of chunked forms: no way of computing a chunk and no direction of its errors exceeds it."""

import dataclasses
import itertools
from importlib import import_module

import numpy as np
import pytest
import torch
from sloppy import DECAYS, INVERSE, INVERSES, WRITES, Arithmetic, run

from verify.audit.case import Case, Shape
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.mechanism import MECHANISMS
from verify.audit.reference.results import float64_reference
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.worst_case.chunk_scores import Rounding
from verify.audit.tolerance.worst_case.enclosed import Enclosed
from verify.audit.tolerance.worst_case.rigorous import WorstCase, worst_case
from verify.audit.tolerance.worst_case.triangular import system
from verify.numbers.formats import FLOAT32

KINDS = {kind.name: kind for kind in REAL_CLASSES}
U = float(FLOAT32.unit_roundoff)
USUAL = Algorithm("chunked", 16, "float32", "float32", "float32")


def drawn(mechanism: str, name: str, shape: Shape, dtype: str = "float32") -> Case:
    return draw_case(KINDS[name], mechanism, shape, dtype=dtype, seed=5, with_state=True)


def signs():
    rng = np.random.default_rng(0)
    return (
        np.ones,
        lambda shape: -np.ones(shape),
        lambda shape: rng.choice([-1.0, 1.0], shape),
        lambda shape: (-1.0) ** np.add.reduce(np.indices(shape)[-2:]),
    )


def ratio(output: np.ndarray, state: np.ndarray, case: Case, bound: WorstCase) -> float:
    reference = float64_reference(case)
    off = np.linalg.norm(output - reference.output, axis=-1) / bound.output
    ending = np.linalg.norm(state - reference.final_state, axis=(-1, -2)) / bound.state
    return float(max(off.max(), ending.max()))


STRUCTURED = ("random", "constant-key-1", "constant-key-2", "gate-strong", "gate-mixed", "predicted-value")
# Every way of writing with every inverse, and every decay with either.
WAYS = [
    (name, *way)
    for name in STRUCTURED
    for way in zip(WRITES, itertools.cycle(DECAYS), ("left", "rows", "right", "blockwise"), strict=False)
]


@pytest.mark.parametrize(("name", "writes", "decays", "inverse"), WAYS)
def test_errors_that_conspire_do_not_exceed_it(name: str, writes: str, decays: str, inverse: str) -> None:
    largest = 0.0
    for mechanism, rows in (("kda", 8), ("kda", 40), ("delta", 40)):
        if not KINDS[name].suits(MECHANISMS[mechanism]):
            continue
        case = drawn(mechanism, name, Shape(B=1, T=42, H=1, HV=2, K=3, V=2))
        algorithm = dataclasses.replace(
            USUAL,
            chunk_size=rows,
            gate_sums="running" if decays == "running" else "segment",
            corrections="factored" if writes == "factors" else "solved",
        )
        bound = worst_case(case, float64_reference(case), algorithm)
        for sign in signs():
            found = run(case, rows, Arithmetic(U, sign), inverse if rows > 16 else "rows", writes, decays)
            largest = max(largest, ratio(*found, case, bound))
    assert largest <= 1
    # Nor is it far beyond reach.
    assert largest > 1 / 50


@pytest.mark.parametrize("inverse", INVERSES)
@pytest.mark.parametrize("strength", [0.5, 1.0, 2.0])
def test_the_inverse_errs_by_no_more_than_its_bound(inverse: str, strength: float) -> None:
    c, rng = 40, np.random.default_rng(4)
    keys = rng.standard_normal((2, c, 3)) + 3
    keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
    strict = np.tril(strength * keys @ keys.swapaxes(-1, -2), -1)
    lost = np.abs(strict) * 10 * U
    found = system(Enclosed(strict, 1e-15 * np.abs(strict)), lost, Rounding(U / (1 - U), 1e-37, c, "", 87.0))
    exact = np.linalg.inv(np.eye(c) + strict)
    largest = 0.0
    for sign in signs():
        computed = INVERSE[inverse](Arithmetic(U, sign), strict + lost * sign(strict.shape))
        off = np.abs(computed - exact)
        assert (off <= found.inverse_error + 1e-13).all()
        below = np.tri(c, k=-1) > 0
        largest = max(largest, float((off / np.where(below, found.inverse_error, np.inf)).max()))
    assert largest > 1 / 20


def ours(case: Case, chunk: int) -> tuple[np.ndarray, np.ndarray]:
    kernel = getattr(import_module(f"kernels.{case.mechanism}.chunked"), f"chunked_{case.mechanism}")
    arrays = {n: torch.from_numpy(x).to(getattr(torch, case.dtype_of(n))) for n, x in case.arrays().items()}
    output, state = kernel(**arrays, scale=case.scale, output_final_state=True, chunk_size=chunk)
    return output.double().numpy(), state.double().numpy()


@pytest.mark.parametrize("mechanism", ["delta", "gdn", "kda"])
@pytest.mark.parametrize(("chunk", "most"), [(16, 4e3), (64, 2e4)])
def test_it_stays_near_the_errors_of_our_kernels(mechanism: str, chunk: int, most: float) -> None:
    for name in ("random", "constant-key-0.9", "constant-key-1", "predicted-value"):
        case = drawn(mechanism, name, Shape(B=1, T=2 * chunk, H=1, HV=2, K=64, V=64))
        bound = worst_case(case, float64_reference(case), dataclasses.replace(USUAL, chunk_size=chunk))
        output, state = ours(case, chunk)
        assert 0 < ratio(output, state, case, bound) <= 1
        error = np.linalg.norm(output - float64_reference(case).output, axis=-1)
        assert bound.output.max() < most * error.max()


def test_gates_without_end_leave_it_finite() -> None:
    case = drawn("kda", "random", Shape(B=1, T=20, H=1, HV=1, K=4, V=3))
    gates = case.g.copy()
    gates[:, 3], gates[:, 7, :, 1], gates[:, 11] = -(2.0**120), -(2.0**60), -90.0
    case = case.replace(g=gates)
    reference = float64_reference(case)
    bound = worst_case(case, reference, USUAL)
    assert ratio(*ours(case, 16), case, bound) <= 1
    assert bound.output.max() < 1e-3
    # Differences of running sums lose every digit there, and nothing finite is said.
    assert np.isinf(worst_case(case, reference, dataclasses.replace(USUAL, gate_sums="running")).output).any()


@pytest.mark.parametrize("tokens", [0, 1, 17])
def test_any_number_of_tokens_is_bounded(tokens: int) -> None:
    case = drawn("gdn", "random", Shape(B=2, T=tokens, H=1, HV=2, K=1, V=1))
    bound = worst_case(case, float64_reference(case), USUAL)
    output, state = ours(case, 16)
    assert bound.output.shape == (2, tokens, 2)
    assert (np.linalg.norm(state - float64_reference(case).final_state, axis=(-1, -2)) <= bound.state).all()
    assert np.isfinite(bound.state).all()
    if tokens:
        assert ratio(output, state, case, bound) <= 1


def test_what_is_declared_matters() -> None:
    """Stored factors cancel where the state predicts the value; running sums lose what follows a reset."""
    shape = Shape(B=1, T=32, H=1, HV=1, K=8, V=4)

    def bound(name: str, **changes: str) -> float:
        case, algorithm = drawn("kda", name, shape), dataclasses.replace(USUAL, **changes)
        return float(worst_case(case, float64_reference(case), algorithm).output.max())

    assert bound("predicted-value", corrections="factored") > 1.5 * bound("predicted-value")
    assert bound("gate-reset", gate_sums="running") > 20 * bound("gate-reset")
    assert bound("random", storage_dtype="bfloat16") > 1000 * bound("random")

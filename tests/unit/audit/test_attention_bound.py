"""The bounds of attention and of token-by-token linear attention against errors that work together."""

import numpy as np
import pytest

from verify.audit.case import Case, Shape
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.reference.results import float64_reference
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.worst_case.rigorous import worst_case

KINDS = {kind.name: kind for kind in REAL_CLASSES}
U = 2.0**-24


def drawn(mechanism: str, name: str) -> Case:
    shape = Shape(B=1, T=24, H=1, HV=1, K=4, V=1)
    return draw_case(KINDS[name], mechanism, shape, dtype="float32", seed=9, with_state=True)


def bounded(case: Case, form: str, size: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    reference = float64_reference(case)
    found = worst_case(case, reference, Algorithm(form, size, "float32", "float32", "float32"))
    return reference.output[0, :, 0, 0], found.output[0, :, 0], found.state


@pytest.mark.parametrize("mechanism", ["softmax", "softmax_window", "softmax_sink"])
@pytest.mark.parametrize("name", ["random", "logits-rising", "logits-equal", "logits-large"])
def test_weights_that_conspire_do_not_exceed_it(mechanism: str, name: str) -> None:
    case = drawn(mechanism, name)
    output, bound, _ = bounded(case, "tiled", 8)
    q, k, v = case.q[0, :, 0] * case.scale, case.k[0, :, 0], case.v[0, :, 0, 0]
    seen, sizes = case.visible, np.abs(q) @ np.abs(k).T
    logits = np.where(seen, q @ k.T, -np.inf)
    sink = -np.inf if case.kind.sink is None else case.kind.sink
    # What lies above the result weighs more, what lies below it less.
    toward = np.where(v > output[:, None], 1.0, -1.0)
    off = ((1 + U) ** (case.shape.K + 1) - 1) * sizes
    highest = np.maximum(logits.max(-1, keepdims=True), sink)
    distance = np.where(seen, highest - logits, 0.0)
    relative = (4 + 3 * distance + case.shape.T) * U
    terms = np.where(seen, np.exp(np.where(seen, logits - highest + toward * off, 0.0)), 0.0)
    terms = terms * (1 + toward * relative)
    of_sink = np.exp(sink - highest[:, 0]) * (1 - 5 * U * np.sign(output))
    error = np.abs((terms @ v) / (terms.sum(-1) + of_sink) - output)
    assert (error <= bound).all()
    assert (error / bound).max() > 1 / 40


@pytest.mark.parametrize("form", ["recurrent", "chunked"])
def test_normalised_sums_that_conspire_do_not_exceed_it(form: str) -> None:
    case = drawn("linear_normalised", "random")
    case = case.replace(q=np.abs(case.q), k=np.abs(case.k))
    output, bound, _ = bounded(case, form, None if form == "recurrent" else 8)
    q, k, v = case.q[0, :, 0], case.k[0, :, 0], case.v[0, :, 0, 0]
    toward = np.where(v > output[:, None], 1.0, -1.0)
    terms = (q @ k.T) * case.visible * (1 + toward * (case.shape.K + case.shape.T) * U)
    error = np.abs((terms @ v) / terms.sum(-1) - output)
    assert (error <= bound).all()
    assert (error / bound).max() > 1 / 10


@pytest.mark.parametrize("name", ["random", "gate-strong", "gate-mixed", "gate-zero"])
def test_tokens_that_all_err_one_way_do_not_exceed_it(name: str) -> None:
    case = drawn("simple_gla", name)
    case = case.replace(
        q=np.abs(case.q), k=np.abs(case.k), v=np.abs(case.v), initial_state=np.abs(case.initial_state)
    )
    output, bound, of_state = bounded(case, "recurrent", None)
    state, error = case.initial_state[0, 0], np.zeros(case.shape.T)
    for t in range(case.shape.T):
        gate = case.g[0, t, 0]
        decay = np.exp(gate) * (1 + (4 + 2 * abs(gate)) * U * (gate != 0))
        written = np.outer(case.k[0, t, 0], case.v[0, t, 0]) * (1 + U)
        state = (decay * state * (1 + U) + written) * (1 + U)
        read = case.q[0, t, 0] * case.scale @ state * (1 + U) ** (case.shape.K + 1)
        error[t] = abs(read.item() - output[t])
    final = np.linalg.norm(state - float64_reference(case).final_state[0, 0])
    assert (error <= bound).all()
    assert final <= of_state[0, 0]
    assert (error / bound).max() > 1 / 4
    assert final / of_state[0, 0] > 1 / 8


@pytest.mark.parametrize("name", ["random", "gate-strong", "gate-mixed"])
def test_writes_that_all_err_one_way_do_not_exceed_it(name: str) -> None:
    case = drawn("simple_gla", name)
    case = case.replace(k=np.abs(case.k), v=np.abs(case.v), initial_state=None)
    _, _, of_state = bounded(case, "chunked", 24)
    after = case.g[0, ::-1, 0].cumsum()[::-1] - case.g[0, :, 0]
    decays = np.exp(after) * (1 + (4 + 2 * np.abs(after)) * U * (after != 0))
    keys = decays[:, None] * case.k[0, :, 0] * (1 + U)
    state = keys.T @ case.v[0, :, 0] * (1 + U) ** case.shape.T
    final = np.linalg.norm(state - float64_reference(case).final_state[0, 0])
    assert of_state[0, 0] / 4 < final <= of_state[0, 0]

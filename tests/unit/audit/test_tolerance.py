"""Derived tolerances: the false-alarm probability holds, correct kernels pass, wrong ones do not."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from verify.audit.case import Outcome, Shape
from verify.audit.convention.convention import Convention
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.inputs.integers import draw_integer_case
from verify.audit.mechanism import MECHANISMS as TABLE
from verify.audit.mechanism import kernel
from verify.audit.reference.results import float64_reference
from verify.audit.tolerance.predicted import model as model_module
from verify.audit.tolerance.predicted import prediction as prediction_module
from verify.audit.tolerance.predicted.bounds import quantile, row_errors, tolerance
from verify.audit.tolerance.predicted.deviations import round_randomly
from verify.audit.tolerance.predicted.prediction import Algorithm, predict
from verify.audit.tolerance.predicted.rounding import StochasticRounding
from verify.model.errors import RequestError
from verify.numbers.formats import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, is_representable_array

BLOCK = {"chunked": "chunk_size", "tiled": "tile_size"}
KINDS = {kind.name: kind for kind in REAL_CLASSES}
SHAPE = Shape(B=1, T=40, H=1, HV=2, K=8, V=6)
MECHANISMS = pytest.mark.parametrize("mechanism", ["gdn", "kda"])
FORMS = [(m, form) for m, kind in TABLE.items() for form in kind.forms]


def algorithm(form, dtype="float32", compute="float32"):
    return Algorithm(form, None if form == "recurrent" else 16, compute, dtype, compute)


def drawn(name, mechanism="kda", dtype="float32", shape=SHAPE):
    return draw_case(KINDS[name], mechanism, shape, dtype=dtype, seed=2, with_state=True)


def run(function, case, **options):
    types = {n: case.dtype if n in "qkv" else case.gate_dtype for n in case.arrays()}
    inputs = {n: torch.from_numpy(x).to(getattr(torch, types[n])) for n, x in case.arrays().items()}
    if case.kind.stateful:
        options["output_final_state"] = True
    output, state = function(**inputs, scale=case.scale, **options)
    final = state.double().numpy() if case.kind.stateful else np.zeros((case.shape.B, case.shape.HV, 0, 0))
    return Outcome(output.double().numpy(), final, "", "", None, 0.0)


def excess(case, outcome, model, runs=24):
    """Largest deviation over tolerance, output and state; NaN counts as infinite."""
    reference = float64_reference(case)
    allowed = tolerance(case, predict(case, reference, model, runs=runs), reference, model, cells=1)
    pairs = zip(row_errors(outcome, reference), (allowed.output, allowed.state), strict=True)
    worst = [np.nan_to_num(error / bound, nan=np.inf).max() for error, bound in pairs if bound.any()]
    return max(worst)


@pytest.mark.parametrize("rank", [1, 2, 20])
@pytest.mark.parametrize("probability", [0.1, 1e-3])
def test_false_alarm_probability_holds(rank, probability):
    """Gaussian errors of rank 1, 2 and 20: alarms stay below the stated rate, and near it for rank 1."""
    rng, runs, trials = np.random.default_rng(rank), 12, 200_000
    error = rng.standard_normal((trials, rank)) ** 2 @ np.full(rank, 1 / rank)
    mean = rng.chisquare(rank * runs, trials) / (rank * runs)
    alarms = (error > quantile(probability, runs) ** 2 * mean).mean()
    slack = 6 * (probability / trials) ** 0.5
    assert alarms <= probability + slack
    if rank == 1 and probability < 0.01:
        assert alarms >= probability / 2 - slack


def test_quantile_is_students():
    """Two-sided 0.001 at 24 degrees of freedom is 3.745 in tables; the second term only adds."""
    assert 3.745 < quantile(0.001, 24) < 3.85
    assert quantile(1e-13, 24) > quantile(1e-9, 24) > quantile(1e-9, 200)


def test_unreachable_probabilities_are_refused():
    case = drawn("random")
    reference = float64_reference(case)
    prediction = predict(case, reference, algorithm("recurrent"), runs=2)
    for wrong in ({"cells": 0}, {"cells": 1, "false_alarm": 0.0}, {"cells": 1, "false_alarm": 1.0}):
        with pytest.raises(RequestError, match="must be in"):
            tolerance(case, prediction, reference, algorithm("recurrent"), **wrong)


@pytest.mark.parametrize(("mechanism", "form"), FORMS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize(
    "name",
    ["random", "constant-key-0.97", "gate-strong", "predicted-value", "logits-rising", "logits-offset"],
)
def test_correct_kernels_pass(mechanism, form, dtype, name):
    if not KINDS[name].suits(TABLE[mechanism]):
        return
    case = drawn(name, mechanism, dtype)
    compute = "float64" if dtype == "float64" else "float32"
    options = {BLOCK[form]: 16} if form in BLOCK else {}
    outcome = run(kernel(mechanism, form), case, **options)
    assert 1e-3 < excess(case, outcome, algorithm(form, dtype, compute)) < 1


def decay_after_erase(q, k, v, g, beta, *, scale, initial_state, output_final_state):
    state, outputs = initial_state, []
    k, q = (x.repeat_interleave(v.shape[2] // x.shape[2], 2) for x in (k, q))
    for t in range(v.shape[1]):
        key, gate = k[:, t].unsqueeze(-1), g[:, t].reshape(*g.shape[:1], v.shape[2], -1, 1)
        error = v[:, t].unsqueeze(-2) - key.mT @ state
        state = gate.exp() * state + key @ (beta[:, t, :, None, None] * error)
        outputs.append(scale * (q[:, t].unsqueeze(-2) @ state))
    return torch.cat(outputs, 2).transpose(1, 2), state


@MECHANISMS
def test_wrong_kernels_fail(mechanism):
    case, chunked = drawn("random", mechanism), kernel(mechanism, "chunked")
    model = algorithm("chunked")
    assert excess(case, run(decay_after_erase, case), algorithm("recurrent")) > 1

    def unscaled(scale, **inputs):
        return chunked(scale=1.0, **inputs)

    assert excess(case, run(unscaled, case), model) > 1

    def rounded_beta(beta, **inputs):
        return chunked(beta=beta.bfloat16().float(), **inputs)

    assert excess(case, run(rounded_beta, case), model) > 1


def test_not_finite_fails():
    case = drawn("random")
    outcome = run(kernel("kda", "recurrent"), case)
    outcome.output[0, 3, 0, 0] = np.nan
    assert excess(case, outcome, algorithm("recurrent")) == np.inf
    output, state = row_errors(Outcome(None, None, "", "", None, 0.0), float64_reference(case))
    assert output is None
    assert state is None


def doubling(matrix, right, *, upper, unitriangular):
    """The inverse by repeated squaring, exact in real arithmetic, in float32."""
    power = matrix.tril(-1)
    right = right - power @ right
    for _ in range((matrix.shape[-1] - 1).bit_length() - 1):
        power = power @ power
        right = right + power @ right
    return right


def test_inverse_by_doubling_fails_on_repeated_keys(monkeypatch):
    case = drawn("constant-key-0.97")
    model, right = algorithm("chunked"), run(kernel("kda", "chunked"), case, chunk_size=16)
    assert excess(case, right, model) < 1
    with monkeypatch.context() as patch:
        patch.setattr(torch.linalg, "solve_triangular", doubling)
        wrong = run(kernel("kda", "chunked"), case, chunk_size=16)
    assert excess(case, wrong, model) > 1


@MECHANISMS
@pytest.mark.parametrize("form", ["recurrent", "chunked"])
def test_integers_predict_no_deviation(mechanism, form):
    shape = Shape(B=1, T=40, H=1, HV=2, K=16, V=6)
    case = draw_integer_case(mechanism, shape, dtype="bfloat16", seed=0, with_state=True, resets=True)
    prediction = predict(case, float64_reference(case), algorithm(form, "bfloat16"), runs=3)
    assert not prediction.output.any()
    assert not prediction.state.any()


def test_predictions_are_found_again(tmp_path, monkeypatch):
    case = drawn("random")
    reference, model = float64_reference(case), algorithm("recurrent")
    first = predict(case, reference, model, runs=2, cache=tmp_path)
    other = predict(case, reference, model, runs=2, seed=1, cache=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    assert (first.output != other.output).any()

    def forbidden(*arguments, **options):
        raise AssertionError("computed again")

    monkeypatch.setattr(prediction_module, "deviations", forbidden)
    again = predict(case, reference, model, runs=2, cache=tmp_path)
    assert (again.output == first.output).all()
    assert (again.state == first.state).all()
    for changed in (case.replace(beta=case.beta / 2), case.replace(scale=1.0)):
        with pytest.raises(AssertionError, match="computed again"):
            predict(changed, reference, model, runs=2, cache=tmp_path)


def test_output_rounding_knows_subnormals_and_range():
    rng = np.random.default_rng(0)
    x = np.array([3.3e-8, -1.7e-6, 0.0, 1.1, -65000.0])
    for _ in range(50):
        rounded = round_randomly(x, FLOAT16, rng)
        assert is_representable_array(FLOAT16, rounded).all()
        assert (np.abs(rounded - x) < np.maximum(2.0**-24, np.abs(x) * 2.0**-10)).all()
    assert (round_randomly(np.array([1.5, -0.25]), BFLOAT16, rng) == [1.5, -0.25]).all()
    with pytest.raises(RequestError, match="float16"):
        round_randomly(np.array([7e4]), FLOAT16, rng)


def test_algorithm_is_read_from_the_convention():
    chunked = Convention.load("ours", "kda", "chunked_kda")
    assert Algorithm.of(chunked, "bfloat16") == Algorithm("chunked", 32, "float32", "bfloat16", "float32")
    assert Algorithm.of(chunked, FLOAT64.name).compute_dtype == "float64"


def subtracting(mechanism, factor=1.0):
    """Our chunked kernel with the exponents of one that subtracts running sums, rounded to float32.

    They are multiplied by ``factor`` first, and exponents in base e^(1 / factor) taken of their differences.
    """

    def function(q, k, v, g, beta, **options):
        chunks = [(chunk.cumsum(1) * factor).double() for chunk in g.split(16, dim=1)]
        seen = [sums.diff(dim=1, prepend=torch.zeros_like(sums[:, :1])) / factor for sums in chunks]
        wide = (x.double() for x in (q, k, v, torch.cat(seen, dim=1), beta))
        options["initial_state"] = options.get("initial_state", torch.zeros(0)).double()
        output, state = kernel(mechanism, "chunked")(*wide, chunk_size=16, **options)
        return output.float(), state.float()

    return function


@MECHANISMS
def test_running_gate_sums_are_part_of_the_model(mechanism):
    """After a reset they lose digits: that fits the model that declares them, and no other."""
    case = drawn("gate-reset", mechanism)
    outcome = run(subtracting(mechanism), case)
    segment = algorithm("chunked")
    running = dataclasses.replace(segment, gate_sums="running")
    assert excess(case, outcome, running) < 1
    assert excess(case, outcome, segment) > 1


@MECHANISMS
def test_running_sums_in_base_two_lose_more_digits(mechanism):
    """Those of the chunked kernels of flash-linear-attention 0.6.0: their grid is coarser by log2 e."""
    case = drawn("gate-reset", mechanism)
    reference, natural = (
        float64_reference(case),
        dataclasses.replace(algorithm("chunked"), gate_sums="running"),
    )
    base_two = dataclasses.replace(natural, gate_sums="running-log2")
    assert excess(case, run(subtracting(mechanism, math.log2(math.e)), case), base_two) < 1
    spread = [predict(case, reference, x, runs=48).output for x in (natural, base_two)]
    lost = spread[0] > 100 * np.median(predict(case, reference, algorithm("chunked"), runs=48).output)
    assert 1.1 < np.median(spread[1][lost] / spread[0][lost]) < 2


@pytest.mark.parametrize("factor", [1.0, math.log2(math.e)])
def test_running_gate_sums_stay_gates(factor):
    """No gate becomes positive, and chunks start afresh."""
    gates = torch.tensor([0.0, -1000.0, -1e-3, 0.0, -0.125, -1000.0, -1e-5], dtype=torch.float64)
    tiled = gates.repeat(64, 1)[..., None]
    with torch.no_grad(), StochasticRounding(FLOAT32, 64, 32, 0):
        seen = model_module._as_subtracted(tiled, 4, factor)
    assert (seen <= 0).all()
    assert np.allclose(seen[:, 4], -0.125, rtol=2**-22, atol=0)
    assert (seen[:, 2] != -1e-3).all()
    assert np.isclose(seen[:, 2].mean(), -1e-3, rtol=0.1, atol=0)

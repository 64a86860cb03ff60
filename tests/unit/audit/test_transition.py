"""The bounds of DPLR and GDN-2: cases in which one term of a bound carries nearly all of the error."""

import dataclasses

import numpy as np
import pytest

from verify.audit.case import Case, Shape
from verify.audit.convention.convention import Convention
from verify.audit.gradient.confirm import confirm as confirm_gradients
from verify.audit.gradient.functional import Cotangent
from verify.audit.gradient.reference import float64_gradients
from verify.audit.gradient.running import with_running_sums
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.inputs.integers import draw_integer_case, is_integer_case
from verify.audit.reference.confirm import confirm
from verify.audit.reference.results import float64_reference
from verify.audit.reference.transition import Setting, growth
from verify.audit.tolerance.predicted.bounds import underflow
from verify.audit.tolerance.predicted.prediction import Algorithm, GradientPrediction


def made(sequences, tokens, keys, **changes):
    """V = 1 and nothing read, removed or written unless ``changes`` say so."""
    zeros = np.zeros((sequences, tokens, 1, keys))
    arrays = dict.fromkeys(("q", "k", "a", "b", "g"), zeros)
    values = np.zeros((sequences, tokens, 1, 1))
    state = np.random.default_rng(0).standard_normal((sequences, 1, keys, 1))
    case = Case("dplr", "made", 0, "float64", zeros, zeros, values, zeros, None, state, 1.0, a=zeros, b=zeros)
    return case.replace(**(arrays | changes))


def test_what_is_read_is_needed_in_the_bound():
    """What is read cancels, and is added with a factor of a thousand."""
    rng = np.random.default_rng(1)
    a, along = (rng.standard_normal((20, 1, 1, 64)) for _ in range(2))
    case = made(20, 1, 64, a=a, b=1000 * along)
    state, read = case.initial_state, a[:, 0, :, :, None]
    held = (read * state).sum(2, keepdims=True) / np.square(read).sum(2, keepdims=True)
    case = case.replace(initial_state=state - read * held)
    outcome = confirm(case, float64_reference(case))
    assert outcome.holds
    assert outcome.worst > 5e-3


@pytest.mark.parametrize("field", ["a", "b"])
def test_carried_errors_are_needed_in_the_bounds_of_gradients(field):
    """A state that only decays, through 127 tokens: its error is that of 127 products."""
    tokens = (3, 127, 1, 1)
    rng = np.random.default_rng(2)
    ones = np.ones(tokens)
    gate = -1e-3 * rng.random(tokens)
    changes = {"q": ones, "g": gate, field: np.zeros(tokens), ("a" if field == "b" else "b"): 0 * ones}
    changes["a" if field == "b" else "b"][:, -1] = 1 + rng.random((3, 1, 1))
    case = made(3, 127, 1, **changes)
    output = np.zeros((3, 127, 1, 1))
    functional = Cotangent(output, 1 + rng.random((3, 1, 1, 1)))
    gradients = float64_gradients(case, functional)
    outcome = confirm_gradients(case, functional, gradients)
    assert outcome.holds
    last = gradients.errors[field][:, -1] / np.linalg.norm(gradients.values[field][:, -1], axis=-1)
    assert (last > 127 * 2.0**-53).all()


@pytest.mark.parametrize("gate", [-1e-3, -5.0, -1000.0])
def test_the_norm_of_a_transition_that_is_not_of_a_delta_rule(gate):
    rng = np.random.default_rng(3)
    shape = (1, 50, 1, 6)
    along = rng.standard_normal(shape)
    along /= np.linalg.norm(along, axis=-1, keepdims=True)
    case = made(1, 50, 6, a=-along, b=rng.random(shape) * along, g=gate * rng.random(shape))
    decays = np.exp(case.g)[..., None] * np.eye(6)
    norms = np.linalg.norm(decays + case.b[..., None] * case.a[..., None, :], ord=2, axis=(-2, -1))
    bound = Setting.of(case).norm
    assert (bound >= norms).all()
    assert (bound <= 4 * norms).all()


def drawn(name, tokens=60):
    kind = next(kind for kind in REAL_CLASSES if kind.name == name)
    shape = Shape(B=1, T=tokens, H=1, HV=1, K=4, V=3)
    return draw_case(kind, "dplr", shape, dtype="float32", seed=1, with_state=True)


def test_what_underflows_grows_with_the_state():
    algorithm = Algorithm.of(Convention.load("ours", "dplr", "recurrent_dplr"), "float32")
    case = drawn("directions-apart")
    growing = case.replace(b=-case.b)
    small, large = (underflow(x, algorithm)[1].max() for x in (case, growing))
    assert growth(growing) > 100 * growth(case)
    assert large / small == pytest.approx(growth(growing) / growth(case))


def test_running_sums_of_gates_hold_the_terms_of_every_direction():
    convention = Convention.load("ours", "dplr", "chunked_dplr")
    algorithm = Algorithm.of(dataclasses.replace(convention, gate_sums="running"), "float32")
    case = drawn("gate-strong", 8)
    functional = Cotangent(np.ones((1, 8, 1, 3)), np.ones((1, 1, 4, 3)))
    gradients = float64_gradients(case, functional)
    nothing = {field: np.zeros(errors.shape) for field, errors in gradients.errors.items()}
    found = {}
    for field in ("", "q", "k", "a", "b"):
        rows = nothing if not field else nothing | {field: np.ones_like(nothing[field])}
        found[field] = with_running_sums(case, gradients, GradientPrediction(rows, 1), algorithm).rows["g"]
    for field in ("q", "k", "a", "b"):
        # The gradient's deviation of 1 times the vector, from the last token on.
        last = np.square(found[field][:, -1]) - np.square(found[""][:, -1])
        assert last > 0.5 * np.square(np.linalg.norm(getattr(case, field)[:, -1], axis=-1))
    # The sizes of q dq, of a da, of b db and of k dk, which cancel, are all in it.
    terms = {field: np.abs(getattr(case, field) * gradients.values[field]) for field in ("q", "k", "a", "b")}
    assert gradients.terms["subtracted"] == pytest.approx(sum(terms.values()), rel=1e-9)


def test_queries_always_see_a_power_of_two_of_the_tokens_of_a_window():
    shape = Shape(B=1, T=70, H=1, HV=2, K=4, V=3)
    for seed in range(40):
        case = draw_integer_case(
            "softmax_window", shape, dtype="float32", seed=seed, with_state=False, resets=False
        )
        assert is_integer_case(case)

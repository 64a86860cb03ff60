"""References: bounds confirmed by balls in both directions, and exact rationals."""

import dataclasses

import numpy as np
import pytest

from verify.audit.case import Case, Shape
from verify.audit.inputs.cells import classes
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.inputs.integers import draw_integer_case
from verify.audit.mechanism import MECHANISMS
from verify.audit.reference import enclosed_exp as exp_module
from verify.audit.reference.confirm import confirm
from verify.audit.reference.enclosed_exp import enclosed_exp
from verify.audit.reference.results import ball_reference, exact_reference, float64_reference
from verify.model.errors import RequestError

SHAPE = Shape(B=1, T=18, H=1, HV=2, K=6, V=4)
KINDS = {kind.name: kind for kind in REAL_CLASSES}


def drawn(name, mechanism="kda", shape=SHAPE, **options):
    return draw_case(KINDS[name], mechanism, shape, dtype="float32", seed=1, with_state=True, **options)


PAIRS = [(m, name) for m, kind in MECHANISMS.items() for name in classes(kind) if name in KINDS]


@pytest.mark.parametrize(("mechanism", "name"), PAIRS)
def test_balls_confirm_every_class(mechanism, name):
    case = drawn(name, mechanism)
    outcome = confirm(case, float64_reference(case), heads=[(0, 1)])
    assert outcome.holds
    assert outcome.confirmed == SHAPE.T + 1
    # A bound ten thousand times the error would confirm nothing worth knowing.
    assert 1e-4 < outcome.worst <= 1


@pytest.mark.parametrize("mechanism", ["softmax", "linear", "kda"])
def test_balls_contradict_a_wrong_value(mechanism):
    case = drawn("random", mechanism)
    reference = float64_reference(case)
    reference.output[0, 3, 1, 2] += 4 * reference.output_error[0, 3, 1]
    outcome = confirm(case, reference)
    assert (outcome.contradicted, outcome.holds) == (1, False)
    assert outcome.worst > 3


def test_the_bound_of_a_softmax_row_knows_the_errors_of_logits():
    """Large logits have large errors, of which the weights have a part."""
    large, small = (float64_reference(drawn(f"logits-{name}", "softmax")) for name in ("offset", "equal"))
    assert large.output_error.max() > 20 * small.output_error.max()


def test_balls_contradict_a_wrong_state():
    case = drawn("random")
    reference = float64_reference(case)
    reference.final_state[0, 0] *= 1 + 1e-9
    assert confirm(case, reference).contradicted == 1


def test_balls_contradict_a_bound_too_small():
    case = drawn("random")
    reference = float64_reference(case)
    scale = confirm(case, reference).worst * 0.99
    tight = dataclasses.replace(
        reference, output_error=reference.output_error * scale, state_error=reference.state_error * scale
    )
    assert confirm(case, tight).contradicted > 0


def test_balls_of_low_precision_decide_nothing():
    case = drawn("random")
    outcome = confirm(case, float64_reference(case), precision=40)
    assert outcome.undecided > 0
    assert not outcome.holds


def one_entry(sequences, tokens, **changes):
    """K = V = 1 and no write unless ``changes`` say so: the state decays, the output reads it."""
    rng = np.random.default_rng(0)
    per_token = rng.random((sequences, tokens, 1, 1))
    case = Case(
        mechanism="gdn",
        name="one-entry",
        seed=0,
        dtype="float64",
        q=1 + per_token,
        k=1 + per_token,
        v=per_token,
        g=-per_token[..., 0],
        beta=np.zeros((sequences, tokens, 1)),
        initial_state=1 + rng.random((sequences, 1, 1, 1)),
        scale=1.0,
    )
    return case.replace(**changes)


def test_the_decays_and_carried_errors_are_needed_in_the_bound():
    """Cases in which that term of the bound carries nearly all of the error."""
    decay = one_entry(400, 1)
    carried = one_entry(3, 127, g=np.full((3, 127, 1), -1e-3))
    for case in (decay, carried):
        outcome = confirm(case, float64_reference(case))
        assert outcome.holds
        assert outcome.worst > 0.02


def test_bound_contracts():
    """Through strong decay, errors are forgotten; the bound must not add up over tokens."""
    long = Shape(B=1, T=127, H=1, HV=1, K=6, V=4)
    strong, none = (float64_reference(drawn(name, shape=long)) for name in ("gate-strong", "gate-zero"))
    assert strong.output_error[0, 100:].max() < 2 * strong.output_error[0, 2:20].max()
    assert none.state_error.max() < 127 * 1e-14 * np.abs(none.final_state).max()


def test_exp_is_enclosed_whatever_the_library_returns(monkeypatch):
    from flint import arb, ctx

    g = np.array([0.0, -1e-3, -5.0, -700.0, -740.0, -1000.0])
    true = np.exp
    for library in (true, lambda x: true(x) * (1 + 1e-10)):
        monkeypatch.setattr(exp_module.np, "exp", library)
        values, errors = enclosed_exp(g)
        for gate, value, error in zip(g.tolist(), values.tolist(), errors.tolist(), strict=True):
            with ctx.workprec(200):
                assert abs(arb(gate).exp() - arb(value)) <= error
    assert errors[2] > 1e-10 * values[2]
    monkeypatch.setattr(exp_module.np, "exp", true)
    assert enclosed_exp(g)[1][2] <= 2.0**-51 * values[2]


def test_gates_without_an_exact_decay_are_refused():
    with pytest.raises(RequestError, match="-inf"):
        enclosed_exp(np.array([0.0, -np.inf]))


@pytest.mark.parametrize("mechanism", list(MECHANISMS))
def test_exact_reference_agrees_with_balls_and_float64(mechanism):
    case = draw_integer_case(
        mechanism, Shape(1, 30, 1, 2, 4, 3), dtype="float32", seed=0, with_state=True, resets=True
    )
    exact, rounded = exact_reference(case), float64_reference(case)
    assert (exact.output == rounded.output).all()
    assert (exact.final_state == rounded.final_state).all()
    output, _ = ball_reference(case)
    # A decay of e^-1000 stands for 0: the balls are that close to the integers.
    assert all(
        abs(x - y) < 1e-400 or abs(x - y) < 2.0**-100
        for x, y in zip(output.flat, exact.output.flat, strict=True)
    )
    assert not exact.output_error.any()


def test_exact_reference_refuses_other_gates():
    with pytest.raises(RequestError, match=r"gate -5\.0"):
        exact_reference(drawn("gate-strong"))

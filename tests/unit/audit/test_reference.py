"""References: bounds confirmed by balls in both directions, and exact rationals."""

import dataclasses

import numpy as np
import pytest

from verify.audit.case import Case, Shape
from verify.audit.gradient.confirm import confirm as confirm_gradients
from verify.audit.gradient.functional import cotangent
from verify.audit.gradient.reference import float64_gradients
from verify.audit.inputs.cells import classes
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.inputs.integers import draw_integer_case
from verify.audit.mechanism import MECHANISMS
from verify.audit.reference import enclosed_exp as exp_module
from verify.audit.reference.ball import balls
from verify.audit.reference.confirm import confirm
from verify.audit.reference.enclosed_exp import RELATIVE_ERROR, enclosed_exp
from verify.audit.reference.exact import exact_reference
from verify.audit.reference.results import float64_reference
from verify.audit.reference.transition import Setting
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
    # The rounding errors of logits of size 6e4 are largely the same for all keys, which no bound knows, and a
    # weight near 1 has almost none of those of logits of thousands.
    least = {"logits-lowest": 1e-8, "scale-huge": 1e-6}.get(name, 1e-4)
    # A sink leaves such logits no weight.
    assert (0 if mechanism == "softmax_sink" and name == "logits-lowest" else least) <= outcome.worst <= 1


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


@pytest.mark.parametrize("size", [2.0**-520, 2.0**-560, 2.0**-1000])
@pytest.mark.parametrize("mechanism", list(MECHANISMS))
def test_bounds_hold_where_squares_underflow(mechanism, size):
    """The norm of such a row comes out too small, or 0."""
    case = draw_case(KINDS["random"], mechanism, SHAPE, dtype="float64", seed=1, with_state=True)
    small = {name: size * getattr(case, name) for name in ("v", "initial_state") if name in case.arrays()}
    case = case.replace(**small)
    assert confirm(case, float64_reference(case), heads=[(0, 1)]).holds


@pytest.mark.parametrize("mechanism", ["delta", "gdn", "kda"])
def test_bounds_hold_for_strengths_below_0(mechanism):
    """Nobody's gate gives them; a bound that has the sign of one is none."""
    case = drawn("beta-above-one", mechanism)
    case = case.replace(beta=-np.abs(case.beta))
    reference = float64_reference(case)
    assert confirm(case, reference, heads=[(0, 1)]).holds
    assert (reference.output_error > 0).all()
    functional = cotangent(case, with_state=True)
    assert confirm_gradients(case, functional, float64_gradients(case, functional)).holds


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


def test_the_errors_of_reading_are_needed_in_the_bound():
    """Nothing is written and nothing decays: all of the error is that of the last product."""
    rng = np.random.default_rng(0)
    inputs = {"q": np.ones((200, 1, 1, 16)), "k": np.zeros((200, 1, 1, 16)), "v": np.zeros((200, 1, 1, 1))}
    state = 1 + rng.random((200, 1, 16, 1))
    rest = {"g": None, "beta": None, "initial_state": state, "scale": 1.0}
    outcome = confirm(case := Case("linear", "read", 0, "float64", **inputs, **rest), float64_reference(case))
    assert outcome.holds
    assert outcome.worst > 0.07


def test_the_norm_of_a_transition_that_forgets_all_is_that_of_what_it_adds():
    case = drawn("random", "dplr")
    case = case.replace(g=np.full(case.g.shape, -np.inf))
    outer = case.b[..., :, None] * case.a[..., None, :]
    exact = np.linalg.norm(outer, ord=2, axis=(-2, -1))
    assert Setting.of(case).norm == pytest.approx(exact, rel=1e-12)


def test_bound_contracts():
    """Through strong decay, errors are forgotten; the bound must not add up over tokens."""
    long = Shape(B=1, T=127, H=1, HV=1, K=6, V=4)
    strong, none = (float64_reference(drawn(name, shape=long)) for name in ("gate-strong", "gate-zero"))
    assert strong.output_error[0, 100:].max() < 2 * strong.output_error[0, 2:20].max()
    assert none.state_error.max() < 127 * 1e-14 * np.abs(none.final_state).max()


def exponents():
    """Gates of every size, near the halves of ln 2 where the reduced argument is largest, and at the ends."""
    rng = np.random.default_rng(0)
    halves = np.log(2) * (np.arange(-1080, 1020) + 0.5)
    near = [np.nextafter(halves, 1e9), np.nextafter(halves, -1e9)]
    small = -(10.0 ** -rng.uniform(0, 320, 500))
    ends = [0.0, -0.0, 709.0, -700.0, -740.0, -745.13, -745.2, -746.0, -1000.0, -1e5]
    return np.concatenate([-20 * rng.random(3000), -800 * rng.random(2000), small, halves, *near, ends])


def test_exponentials_are_within_the_error_derived_for_them():
    from flint import arb, ctx

    g = exponents()
    values, errors = enclosed_exp(g)
    largest = 0.0
    with ctx.workprec(200):
        for gate, value, error in zip(g.tolist(), values.tolist(), errors.tolist(), strict=True):
            apart = abs(arb(gate).exp() - arb(value))
            assert apart <= error
            if value > 2.0**-1000:
                largest = max(largest, float(apart / arb(value)))
    # The derivation adds up worst cases; a bound of many times the error would be that of something else.
    assert RELATIVE_ERROR / 3 < largest <= RELATIVE_ERROR


def test_a_wrong_coefficient_is_outside_that_error(monkeypatch):
    from flint import arb

    digits = exp_module._COEFFICIENTS
    monkeypatch.setattr(exp_module, "_COEFFICIENTS", (*digits[:5], digits[5] * (1 + 1e-9), *digits[6:]))
    values, errors = enclosed_exp(exponents())
    pairs = zip(exponents().tolist(), values.tolist(), errors.tolist(), strict=True)
    assert any(abs(arb(gate).exp() - arb(value)) > error for gate, value, error in pairs)


def test_decays_of_one_and_zero_are_exact():
    values, errors = enclosed_exp(np.array([0.0, -np.inf]))
    assert values.tolist() == [1.0, 0.0]
    assert errors.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("gate", [np.nan, np.inf, 710.0])
def test_gates_without_a_decay_are_refused(gate):
    with pytest.raises(RequestError, match=f"the gate {gate}"):
        enclosed_exp(np.array([0.0, gate]))


@pytest.mark.parametrize("mechanism", list(MECHANISMS))
def test_exact_reference_agrees_with_balls_and_float64(mechanism):
    case = draw_integer_case(
        mechanism, Shape(1, 30, 1, 2, 4, 3), dtype="float32", seed=0, with_state=True, resets=True
    )
    exact, rounded = exact_reference(case), float64_reference(case)
    assert (exact.output == rounded.output).all()
    assert (exact.final_state == rounded.final_state).all()
    output, _ = balls(case)
    # A decay of e^-1000 stands for 0: the balls are that close to the integers.
    assert all(
        abs(x - y) < 1e-400 or abs(x - y) < 2.0**-100
        for x, y in zip(output.flat, exact.output.flat, strict=True)
    )
    assert not exact.output_error.any()


def test_exact_reference_refuses_other_gates():
    with pytest.raises(RequestError, match=r"gate -5\.0"):
        exact_reference(drawn("gate-strong"))

"""Every mechanism has a definition, kernels, and its name where mechanisms are listed."""

import inspect

import numpy as np
import pytest

from verify.audit import mechanism as mechanisms
from verify.audit.bench import Bench
from verify.audit.case import FIELDS, Shape
from verify.audit.convention.convention import Convention
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.inputs.integers import draw_integer_case
from verify.audit.mechanism import MECHANISMS
from verify.audit.reference.recurrence import float64 as plain
from verify.audit.reference.transition import Setting, growth
from verify.audit.reference.transition import float64 as directed
from verify.cli import certify as command
from verify.model import certificate
from verify.model.errors import RequestError

KINDS = {kind.name: kind for kind in REAL_CLASSES}
SHAPE = Shape(B=2, T=12, H=1, HV=2, K=6, V=4)


def drawn(name, mechanism, dtype="float64"):
    return draw_case(KINDS[name], mechanism, SHAPE, dtype=dtype, seed=3, with_state=True)


@pytest.mark.parametrize("name", list(MECHANISMS))
def test_the_kernels_take_what_the_row_says(name):
    kind = MECHANISMS[name]
    assert set(kind.fields) <= set(FIELDS)
    for form in kind.forms:
        taken = set(inspect.signature(mechanisms.kernel(name, form)).parameters)
        assert {*kind.fields, "scale"} - {"initial_state"} <= taken
    definition = mechanisms.definition(name)
    entry = definition.recurrence if kind.stateful else definition.causal
    others = {"numbers", "scale", "state", "window", "sink"}
    wanted = ["alpha" if field == "g" else field for field in kind.tokens]
    assert [x for x in inspect.signature(entry).parameters if x not in others] == wanted


def test_lists_of_mechanisms_are_whole():
    schema = certificate.schema(certificate.KERNEL_FORMAT)["properties"]
    samples = schema["samples"]["items"]["properties"]["mechanism"]["enum"]
    assert schema["mechanism"]["enum"] == samples
    assert set(samples) == set(MECHANISMS)
    help_text = command.Mechanism.__metadata__[0].help
    assert all(name in help_text for name in MECHANISMS)


@pytest.mark.parametrize("name", list(MECHANISMS))
def test_a_case_needs_every_entry_in_its_shape(name):
    case = drawn("random", name)
    for field, per in MECHANISMS[name].entries:
        with pytest.raises(RequestError, match=f"needs {field}"):
            case.replace(**{field: None})
        array = getattr(case, field)
        assert array.shape[3:] == {"head": (), "channel": (6,), "value": (4,)}[per]
        with pytest.raises(RequestError, match=f"{field} has shape"):
            case.replace(**{field: np.zeros((*array.shape, 2))})
    for field in {"g", "beta", "a", "b", "w"} - {field for field, _ in MECHANISMS[name].entries}:
        with pytest.raises(RequestError, match=f"takes no {field}"):
            case.replace(**{field: np.zeros((2, 12, 2))})


def test_one_strength_in_all_channels_is_kda():
    kda = drawn("random", "kda")
    b, w = (np.repeat(kda.beta[..., None], n, axis=-1) for n in (6, 4))
    gdn2 = kda.replace(mechanism="gdn2", beta=None, b=b, w=w)
    assert growth(gdn2) < 1 + 1e-6
    k = kda.spread("k")
    a = -kda.beta[..., None] * np.exp(kda.g) * k
    dplr = kda.replace(mechanism="dplr", beta=None, a=a, b=k, v=kda.beta[..., None] * kda.v)
    assert growth(dplr) < 1 + 1e-6
    exact = plain(kda)
    sizes = [np.linalg.norm(x, axis=-1).max() for x in (kda.scale * kda.q, kda.v)]
    largest = 1 + sum(np.linalg.norm(x, axis=(-1, -2)).max() for x in (kda.initial_state, exact[1]))
    for same in (gdn2, dplr):
        found = directed(same)
        # DPLR's vectors are rounded products: per token five units of what is read or written, which the
        # transitions, that contract, carry on.
        moved = 5 * kda.shape.T * 2.0**-53 * (largest + kda.shape.T * sizes[1]) * (same is dplr)
        for i, axes, size in ((0, -1, sizes[0]), (1, (-1, -2), 1.0)):
            apart = np.linalg.norm(found[i] - exact[i], axis=axes)
            assert (apart <= found[i + 2] + exact[i + 2] + moved * size).all()


@pytest.mark.parametrize("name", ["random", "beta-above-one", "constant-key-2", "gate-mixed", "gate-reset"])
@pytest.mark.parametrize("mechanism", ["dplr", "gdn2"])
def test_the_norm_of_a_transition_is_bounded_and_not_by_much(mechanism, name):
    case = drawn(name, mechanism, "bfloat16")
    c, way, alpha = Setting.of(case), case.directions, np.exp(case.log_decay)
    source = 1.0 if way.before_decay else alpha[..., None, :]
    transition = alpha[..., None] * np.eye(6) + way.out[..., None] * (way.read[..., None, :] * source)
    norms = np.linalg.norm(transition, ord=2, axis=(-2, -1))
    assert (c.norm >= norms).all()
    # Exact but for decays that differ by channel.
    mild = alpha.min(-1) > 0.5
    assert (c.norm[mild] <= 1.0001 * norms[mild] / alpha.min(-1)[mild]).all()


def test_values_times_steps_that_are_too_large_to_be_exact_are_judged_within_a_tolerance():
    convention = Convention.load("transformers", "mamba2", "mamba2_chunk_scan")
    shape = Shape(B=1, T=20, H=1, HV=1, K=4, V=3)
    for resets, kind in ((False, "exact"), (True, "float64")):
        case = draw_integer_case("mamba2", shape, dtype="float32", seed=0, with_state=True, resets=resets)
        assert Bench(convention, 1, runs=3).yardstick(case).kind == kind


@pytest.mark.parametrize(
    ("convention", "mechanism", "function"),
    [
        ("ours", "softmax_window", "tiled_softmax"),
        ("ours", "linear_normalised", "chunked_linear"),
        ("fla", "linear_normalised", "naive_recurrent_linear_attn"),
    ],
)
def test_one_function_of_two_mechanisms_has_an_entry_for_each(convention, mechanism, function):
    own = Convention.load(convention, mechanism, function)
    plain = Convention.load(convention, MECHANISMS[mechanism].room, function)
    assert (own.mechanism, plain.mechanism) == (mechanism, MECHANISMS[mechanism].room)
    assert own.extra != plain.extra
    with pytest.raises(RequestError, match="not kda"):
        Convention.load(convention, "kda", function)

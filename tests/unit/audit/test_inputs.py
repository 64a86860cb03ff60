"""Input classes: what they promise, and integer cases exact in every form of a correct kernel."""

from collections import Counter, defaultdict
from importlib import import_module

import numpy as np
import pytest
import torch

from verify.audit.case import Shape
from verify.audit.convention import Convention
from verify.audit.inputs.cells import cells, classes, lengths
from verify.audit.inputs.classes import REAL_CLASSES, correlated_keys, draw_case
from verify.audit.inputs.counted import attended
from verify.audit.inputs.integers import check_exact, draw_integer_case, is_integer_case
from verify.audit.mechanism import MECHANISMS as TABLE
from verify.audit.reference.results import exact_reference
from verify.model.errors import RequestError
from verify.numbers.formats import BFLOAT16, FLOAT16, FLOAT32, format_named

MECHANISMS = pytest.mark.parametrize("mechanism", list(TABLE))


def accepting(mechanism):
    """A convention that takes everything the mechanism has."""
    kind = TABLE[mechanism]
    sizes = {"form": kind.forms[0], "chunk_size": None if kind.forms[0] == "recurrent" else 64}
    return Convention(name="any", mechanism=mechanism, returns="output-first", **sizes)


def called(mechanism, form, case):
    """Output, and final state where there is one, of our own kernel on a case in its own dtypes."""
    types = {name: case.dtype if name in "qkv" else case.gate_dtype for name in case.arrays()}
    inputs = {n: torch.from_numpy(x).to(getattr(torch, types[n])) for n, x in case.arrays().items()}
    options = {"output_final_state": True} if case.kind.stateful else {}
    kernel = getattr(import_module(f"kernels.{mechanism}.{form}"), f"{form}_{mechanism}")
    output, state = kernel(**inputs, scale=case.scale, **options)
    return output.double().numpy(), None if state is None else state.double().numpy()


@MECHANISMS
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64"])
def test_fast_covers_classes_lengths_and_shapes(mechanism, dtype):
    met, shapes, states = defaultdict(set), set(), set()
    kind = TABLE[mechanism]
    for case in cells(mechanism, dtype, accepting(mechanism)):
        met[case.shape.T].add(case.name)
        shapes.add(case.shape)
        states.add(case.initial_state is not None)
        assert (case.log_decay <= 0).all()
        assert case.scale == case.shape.K**-0.5
    assert set.union(*met.values()) == set(classes(kind))
    assert set(met) == {1, 15, 16, 17, 63, 64, 65, 127}
    assert min(len(names) for names in met.values()) >= len(classes(kind)) // 4
    assert states == ({True, False} if kind.stateful else {False})
    assert all(s.K != s.V for s in shapes)
    assert any(s.HV > s.H for s in shapes)
    assert any(s.B > 1 for s in shapes)
    assert any(s.H > 1 for s in shapes)
    assert {s.K for s in shapes} >= {4, 16, 24, 32, 64}


def test_standard_is_the_full_product():
    seen = {
        (case.name, case.shape.T, case.initial_state is not None, case.shape.K)
        for case in cells("gdn", "float32", Convention(name="any", mechanism="gdn"), "standard")
    }
    # On 2 shapes, integers on 3, with and without a state; predicted-value always has one.
    real = len(classes(TABLE["gdn"])) - 2
    assert len(seen) == 8 * ((real - 1) * 2 * 2 + 2 + 2 * 3 * 2)


def test_cells_keep_to_the_convention():
    arguments = {name: name for name in ("q", "k", "v", "g", "beta", "scale")}
    narrow = Convention(
        name="narrow", mechanism="kda", arguments=arguments, grouped_heads=False, length_multiple=64
    )
    drawn = list(cells("kda", "float32", narrow))
    assert lengths(narrow) == (64, 128)
    assert {case.shape.T for case in drawn} == {64, 128}
    assert all(case.shape.H == case.shape.HV and case.initial_state is None for case in drawn)
    counts = Counter(case.name for case in drawn)
    assert set(counts) == set(classes(TABLE["kda"])) - {"predicted-value"}
    assert set(counts.values()) == {4}


def test_cells_repeat_and_depend_on_the_seed():
    convention = Convention(name="any", mechanism="gdn")
    first, second, other = (list(cells("gdn", "float32", convention, seed=seed)) for seed in (0, 0, 1))
    assert all((a.v == b.v).all() for a, b in zip(first, second, strict=True))
    assert all((a.v != b.v).any() for a, b in zip(first, other, strict=True) if a.v.size > 64)
    with pytest.raises(RequestError, match="did you mean fast"):
        next(iter(cells("gdn", "float32", convention, "fst")))


def test_classes_are_what_their_names_say():
    shape = Shape(B=2, T=40, H=2, HV=4, K=16, V=12)
    drawn = {
        kind.name: draw_case(kind, "kda", shape, dtype="float64", seed=3, with_state=True)
        for kind in REAL_CLASSES
        if kind.suits(TABLE["kda"])
    }
    assert {kind.name for kind in REAL_CLASSES} - set(drawn) == {
        f"logits-{word}" for word in ("large", "equal", "rising", "falling", "offset")
    }
    cosines = drawn["positive"].k[0, :, 0] @ drawn["positive"].k[0, :, 0].T
    assert (drawn["positive"].k > 0).all()
    assert 0.6 < cosines[np.triu_indices(40, 1)].mean() < 0.9
    assert (drawn["constant-key-0.97"].k == drawn["constant-key-0.97"].k[:, :1]).all()
    assert (drawn["constant-key-0.97"].beta == 0.97).all()
    assert (drawn["gate-strong"].g == -5).all()
    assert set(np.unique(drawn["gate-mixed"].g)) == {-5.0, 0.0}
    assert (drawn["gate-reset"].g == -1000).mean() == pytest.approx(1 / 8, abs=0.05)
    assert drawn["beta-above-one"].beta.min() > 1
    assert np.linalg.norm(drawn["small"].q, axis=-1) == pytest.approx(2.0**-10)
    for case in drawn.values():
        assert not np.array_equal(case.v[0], case.v[1])
        assert not np.array_equal(case.v[:, :, 0], case.v[:, :, 1])
        assert not np.array_equal(case.k[0], case.k[1])


def test_correlated_keys_have_cosine_four_fifths():
    keys = correlated_keys(np.random.default_rng(0), Shape(B=1, T=400, H=1, HV=1, K=64, V=8))[0, :, 0]
    cosines = (keys @ keys.T)[np.triu_indices(400, 1)]
    assert np.linalg.norm(keys, axis=-1) == pytest.approx(1)
    assert cosines.mean() == pytest.approx(0.8, abs=0.01)


def test_predicted_values_cancel():
    kind = next(kind for kind in REAL_CLASSES if kind.predicted)
    case = draw_case(kind, "gdn", Shape(1, 30, 1, 2, 16, 8), dtype="float64", seed=0, with_state=False)
    state, errors = case.initial_state, []
    for t in range(30):
        decayed = np.exp(case.g[:, t])[..., None, None] * state
        error = case.v[:, t] - np.einsum("bhk,bhkv->bhv", case.k[:, t].repeat(2, 1), decayed)
        errors.append(np.abs(error).mean())
        write = np.einsum("bh,bhk,bhv->bhkv", case.beta[:, t], case.k[:, t].repeat(2, 1), error)
        state = decayed + write
    assert max(errors) < 0.01 * np.abs(case.v).mean()


def logits(name):
    kind = next(kind for kind in REAL_CLASSES if kind.name == name)
    case = draw_case(kind, "softmax", Shape(1, 40, 2, 4, 16, 5), dtype="float64", seed=0, with_state=False)
    return case.scale * np.einsum("bthk,bjhk->bhtj", case.spread("q"), case.spread("k"))


def test_logit_classes_are_what_their_names_say():
    assert 40 < np.abs(logits("logits-large")).max() <= 80
    assert np.ptp(logits("logits-equal"), axis=-1).max() < 1e-12
    rising = logits("logits-rising")
    assert (np.diff(rising, axis=-1) > 0).all()
    assert rising.min() > 3
    assert rising.max() > 60
    assert (np.diff(logits("logits-falling"), axis=-1) < 0).all()
    assert logits("logits-offset").mean() == pytest.approx(100, abs=10)


@MECHANISMS
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("resets", [False, True])
def test_integer_cases_are_exact_in_every_form(mechanism, dtype, resets):
    for keys, tokens in ((4, 127), (16, 65), (64, 63)):
        shape = Shape(B=1, T=tokens, H=1, HV=2, K=keys, V=5)
        case = draw_integer_case(mechanism, shape, dtype=dtype, seed=keys, with_state=True, resets=resets)
        exact = exact_reference(case)
        check_exact(case, exact.output, exact.final_state, format_named(dtype), FLOAT32)
        assert np.abs(exact.output).max() > 0
        for form in TABLE[mechanism].forms:
            output, state = called(mechanism, form, case)
            assert (output == exact.output).all()
            assert state is None or (state == exact.final_state).all()


def test_counted_cases_tell_masks_apart():
    """Queries have 1, 2 and 4 tokens of their colour, and many have more of it later."""
    case = draw_integer_case(
        "softmax", Shape(2, 64, 1, 2, 16, 3), dtype="bfloat16", seed=1, with_state=False, resets=False
    )
    members = attended(case)
    assert {1, 2, 4} <= set(members.sum(-1).ravel().tolist())
    same = np.einsum("bthk,bjhk->bhtj", case.spread("q"), case.spread("k")) > 0
    assert (same & ~np.tri(64, dtype=bool)).any(axis=-1).mean() > 0.4
    for change in ({"v": case.v + 0.5}, {"k": case.k / 512}, {"scale": 0.3}, {"k": case.k + 1}):
        assert not is_integer_case(case.replace(**change))


def test_integer_checks_refuse_what_need_not_be_exact():
    case = draw_integer_case(
        "gdn", Shape(1, 127, 1, 1, 4, 5), dtype="float16", seed=0, with_state=True, resets=False
    )
    exact = exact_reference(case)
    assert is_integer_case(case)
    for change in (
        {"beta": case.beta / 2},
        {"k": 2 * case.k},
        {"v": case.v + 0.5},
        {"g": case.g - 1},
        {"scale": 0.3},
    ):
        assert not is_integer_case(case.replace(**change))
    large = case.slice(0, 30, 100 * case.initial_state)
    exact = exact_reference(large)
    check_exact(large, exact.output, exact.final_state, FLOAT32, FLOAT32)
    with pytest.raises(RequestError, match="bfloat16 cannot represent"):
        check_exact(large, exact.output, exact.final_state, BFLOAT16, FLOAT32)
    with pytest.raises(RequestError, match="beyond the integers of float16"):
        check_exact(case, exact.output, exact.final_state, FLOAT16, FLOAT16)
    with pytest.raises(RequestError, match="need not be exact"):
        check_exact(case.replace(v=case.v + 0.5), exact.output, exact.final_state, FLOAT16, FLOAT32)
    with pytest.raises(RequestError, match="power of two"):
        draw_integer_case(
            "gdn", Shape(1, 1, 1, 1, 8, 5), dtype="float16", seed=0, with_state=True, resets=False
        )

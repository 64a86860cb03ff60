"""Input classes: what they promise, and integer cases exact in every form of a correct kernel."""

import dataclasses
from collections import Counter, defaultdict

import numpy as np
import pytest
import torch

from verify.audit.case import Shape
from verify.audit.convention.convention import Convention
from verify.audit.inputs.cells import BUDGETS, cells, classes, gradient_cells, lengths
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.inputs.counted import attended
from verify.audit.inputs.draws import correlated_keys
from verify.audit.inputs.integers import draw_integer_case, inexact, is_integer_case
from verify.audit.mechanism import MECHANISMS as TABLE
from verify.audit.mechanism import kernel
from verify.audit.reference.exact import exact_reference
from verify.audit.reference.transition import growth
from verify.model.errors import RequestError
from verify.numbers.formats import BFLOAT16, FLOAT16, FLOAT32, format_named

MECHANISMS = pytest.mark.parametrize("mechanism", list(TABLE))


def accepting(mechanism):
    """A convention that takes everything the mechanism has."""
    kind = TABLE[mechanism]
    sizes = {"form": kind.forms[0], "chunk_size": None if kind.forms[0] == "recurrent" else 64}
    infinite = bool(kind.gate)
    return Convention("any", mechanism, returns="output-first", gate_infinite=infinite, **sizes)


def called(mechanism, form, case):
    """Output, and final state where there is one, of our own kernel on a case in its own dtypes."""
    inputs = {n: torch.from_numpy(x).to(getattr(torch, case.dtype_of(n))) for n, x in case.arrays().items()}
    options = {"output_final_state": True} if case.kind.stateful else {}
    output, state = kernel(mechanism, form)(**inputs, scale=case.scale, **options)
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
        assert case.name.startswith("scale-") or case.scale == kind.scale(case.shape.K)
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
    convention = Convention(name="any", mechanism="gdn", gate_infinite=True)
    seen, fast = (
        {
            (case.name, case.shape, case.initial_state is not None)
            for case in cells("gdn", "float32", convention, budget)
        }
        for budget in ("standard", "fast")
    )
    # On 2 shapes, integers on 3, with and without a state; predicted-value always has one; 2 wide shapes.
    real = len(classes(TABLE["gdn"])) - 2
    assert len(seen - fast) == 8 * ((real - 1) * 2 * 2 + 2 + 2 * 3 * 2) + 2 * real


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
    assert set(counts) == set(classes(TABLE["kda"])) - {"predicted-value", "gate-infinite"}
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
        f"logits-{word}" for word in ("large", "equal", "rising", "falling", "offset", "low", "lowest")
    } | {"scale-negative", "scale-tiny", "scale-huge", "directions-apart", "directions-constant"}
    cosines = drawn["positive"].k[0, :, 0] @ drawn["positive"].k[0, :, 0].T
    assert (drawn["positive"].k > 0).all()
    assert 0.6 < cosines[np.triu_indices(40, 1)].mean() < 0.9
    assert (drawn["constant-key-0.97"].k == drawn["constant-key-0.97"].k[:, :1]).all()
    assert (drawn["constant-key-0.97"].beta == 0.97).all()
    assert (drawn["gate-strong"].g == -5).all()
    assert set(np.unique(drawn["gate-mixed"].g)) == {-5.0, 0.0}
    # Six standard deviations of a share of independent draws.
    apart = 6 * (1 / 8 * 7 / 8 / drawn["gate-reset"].g.size) ** 0.5
    assert (drawn["gate-reset"].g == -1000).mean() == pytest.approx(1 / 8, abs=apart)
    assert np.isneginf(drawn["gate-infinite"].g).mean() == pytest.approx(1 / 8, abs=apart)
    finite = drawn["gate-infinite"].with_finite_gates().g
    assert set(np.unique(finite[np.isneginf(drawn["gate-infinite"].g)])) == {-1000.0}
    assert drawn["random"].with_finite_gates() is drawn["random"]
    assert (drawn["gate-uneven"].g[:, :, 0] == 0).all()
    assert drawn["gate-uneven"].g[:, :, -1, -1] == pytest.approx(-10)
    assert (drawn["gate-block-start"].g[:, 16::16] == -100).all()
    assert (drawn["gate-block-start"].g == -100).mean() == pytest.approx(2 / 40)
    assert set(np.unique(drawn["gate-huge"].g >= -1e-3)) == {True, False}
    assert drawn["gate-huge"].g[drawn["gate-huge"].g < 0].max() <= -1e8
    fading = drawn["fading"]
    assert (fading.g[:, 20] == -1000).all()
    assert np.abs(fading.v[:, :20]).mean() > 500 * np.abs(fading.v[:, 20:]).mean()
    assert drawn["beta-above-one"].beta.min() > 1
    assert np.linalg.norm(drawn["small"].q, axis=-1) == pytest.approx(2.0**-10)
    for case in drawn.values():
        assert not np.array_equal(case.v[0], case.v[1])
        assert not np.array_equal(case.v[:, :, 0], case.v[:, :, 1])
        assert not np.array_equal(case.k[0], case.k[1])


def test_threshold_gates_lie_on_both_sides_of_the_range_of_exp():
    """Constant in time; every span of rows that an anchor rule gives is met just below and just above."""
    kind = next(kind for kind in REAL_CLASSES if kind.name == "gate-threshold")
    case = draw_case(kind, "kda", Shape(2, 9, 2, 4, 64, 3), dtype="float32", seed=1, with_state=False)
    assert (case.g == case.g[:, :1]).all()
    gates = -np.unique(case.g).astype(np.float32)
    for rows in (8, 15, 16, 31, 32, 63, 64):
        with np.errstate(over="ignore"):
            finite = np.isfinite(np.exp(gates * np.float32(rows), dtype=np.float32))
        assert finite.any()
        assert not finite.all()
        assert gates[finite].max() > 0.97 * gates[~finite].min()
    published = (5.915, 11.09)
    assert all(any(below < x < 1.02 * below for below in gates[gates < x]) for x in published)


def test_correlated_keys_have_cosine_four_fifths():
    """0.8 + 0.2 u.w with u, w random in the 63 directions left, so that u.w has mean 0 and variance 1/63."""
    keys = correlated_keys(np.random.default_rng(0), Shape(B=1, T=400, H=1, HV=1, K=64, V=8))[0, :, 0]
    cosines = (keys @ keys.T)[np.triu_indices(400, 1)]
    assert np.linalg.norm(keys, axis=-1) == pytest.approx(1)
    # Products of different pairs are uncorrelated; six standard deviations of their mean.
    assert cosines.mean() == pytest.approx(0.8, abs=6 * 0.2 / (63 * cosines.size) ** 0.5)


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
    # Equal but for what two sums of 16 products, scaled, of size at most 1/4 round.
    assert np.ptp(logits("logits-equal"), axis=-1).max() <= 2 * 18 * 2.0**-53 / 4
    rising = logits("logits-rising")
    assert (np.diff(rising, axis=-1) > 0).all()
    assert rising.min() > 3
    assert rising.max() > 60
    assert (np.diff(logits("logits-falling"), axis=-1) < 0).all()
    assert logits("logits-offset").mean() == pytest.approx(100, abs=10)
    low = logits("logits-low")
    assert np.log(np.exp(low).sum(-1)).max() < -88.8
    assert logits("logits-lowest").max() < -5e4
    assert (logits("scale-zero") == 0).all()


@MECHANISMS
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("resets", [False, True])
def test_integer_cases_are_exact_in_every_form(mechanism, dtype, resets):
    for keys, tokens in ((4, 127), (16, 65), (64, 63)):
        shape = Shape(B=1, T=tokens, H=1, HV=2, K=keys, V=5)
        case = draw_integer_case(mechanism, shape, dtype=dtype, seed=keys, with_state=True, resets=resets)
        exact = exact_reference(case)
        assert inexact(case, exact.output, exact.final_state, format_named(dtype), FLOAT32) is None
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
    results = exact.output, exact.final_state
    assert inexact(large, *results, FLOAT32, FLOAT32) is None
    assert "bfloat16 cannot represent" in inexact(large, *results, BFLOAT16, FLOAT32)
    assert "beyond the integers of float16" in inexact(case, *results, FLOAT16, FLOAT16)
    assert "need not be exact" in inexact(case.replace(v=case.v + 0.5), *results, FLOAT16, FLOAT32)
    with pytest.raises(RequestError, match="power of two"):
        draw_integer_case(
            "gdn", Shape(1, 1, 1, 1, 8, 5), dtype="float16", seed=0, with_state=True, resets=False
        )


def test_directions_are_what_their_names_say():
    shape = Shape(B=1, T=40, H=1, HV=2, K=16, V=8)
    drawn = {
        kind.name: draw_case(kind, "dplr", shape, dtype="float64", seed=3, with_state=True)
        for kind in REAL_CLASSES
        if kind.suits(TABLE["dplr"])
    }
    usual, apart, constant = (drawn[name] for name in ("random", "directions-apart", "directions-constant"))
    strength = -usual.a / (np.exp(usual.g) * usual.b)
    assert strength == pytest.approx(np.broadcast_to(strength[..., :1], strength.shape))
    assert growth(usual) < 1 + 1e-6 < 2 < growth(apart) < 20
    assert np.linalg.norm(apart.a, axis=-1) == pytest.approx(1)
    assert ((-apart.b / apart.a > 0) & (-apart.b / apart.a < 1)).all()
    assert (constant.a == constant.a[:, :1]).all()
    assert (constant.b != constant.b[:, :1])[:, 1:].all()
    predicted = drawn["predicted-value"]
    assert (predicted.b == predicted.spread("k")).all()
    removed = np.einsum("bhk,bhkv->bhv", predicted.a[:, 0], predicted.initial_state)
    rest = predicted.v[:, 0] + removed
    assert np.abs(rest).mean() < 0.02 * np.abs(predicted.v[:, 0]).mean()
    random = next(kind for kind in REAL_CLASSES if kind.name == "random")
    gates = draw_case(random, "gdn2", shape, dtype="float64", seed=3, with_state=True)
    assert np.ptp(gates.b, axis=-1).min() > 0.1
    assert np.ptp(gates.w, axis=-1).min() > 0.1


@pytest.mark.parametrize("narrow", [{}, {"head_size": 64}, {"length_multiple": 64}])
def test_each_budget_has_all_that_the_smaller_one_promises(narrow):
    """The same cells and more, so that what fails on a smaller budget fails on the larger ones.

    Thorough: all of standard, the same again with other numbers, and long sequences; no cell twice.
    """
    convention = Convention(name="any", mechanism="linear", **narrow)
    drawn = {budget: list(cells("linear", "float32", convention, budget)) for budget in BUDGETS}
    told, differentiated = (
        {
            budget: [(c.name, c.shape, c.initial_state is not None, c.seed) for c in found]
            for budget, found in these.items()
        }
        for these in (drawn, {budget: gradient_cells(found, budget) for budget, found in drawn.items()})
    )
    assert all(len(set(found)) == len(found) for found in told.values())
    assert set(told["fast"]) < set(told["standard"]) < set(told["thorough"])
    again = [cell[:3] for cell in told["thorough"] if cell not in set(told["standard"])]
    assert {cell[:3] for cell in told["standard"]} <= set(again)
    assert max(c.shape.T for c in drawn["thorough"]) == (1024 if "length_multiple" in narrow else 1000)
    assert (64, 64) in {(c.shape.K, c.shape.V) for c in drawn["thorough"]}
    assert set(differentiated["fast"]) < set(differentiated["standard"]) < set(differentiated["thorough"])


def test_a_gate_of_minus_infinity_is_for_conventions_that_take_it():
    narrow = Convention("narrow", "gdn")
    case = draw_case(
        next(kind for kind in REAL_CLASSES if kind.name == "gate-infinite"),
        "gdn",
        Shape(B=1, T=40, H=1, HV=2, K=4, V=3),
        dtype="float32",
        seed=1,
        with_state=True,
    )
    assert narrow.refusal(case) == "a gate of -inf is not supported"
    assert dataclasses.replace(narrow, gate_infinite=True).refusal(case) is None
    assert narrow.refusal(case.with_finite_gates()) is None


def test_keys_of_one_channel_are_numbers():
    shape = Shape(B=2, T=40, H=2, HV=2, K=1, V=3)
    for kind in REAL_CLASSES:
        if kind.suits(TABLE["kda"]):
            case = draw_case(kind, "kda", shape, dtype="float32", seed=3, with_state=True)
            assert all(np.isfinite(x).all() for x in (case.q, case.k, case.v))
            assert np.abs(case.k).min() > 0

"""Softmax attention: every form, tiling and option against the definition, forward and backward."""

import math
from functools import partial

import pytest
import torch
from agreement import assert_agrees, bits, gradients

from kernels.softmax.merge import merge_softmax
from kernels.softmax.recurrent import recurrent_softmax
from kernels.softmax.reference import reference_softmax
from kernels.softmax.tiled import tiled_softmax

TILES = [1, 2, 3, 16, 17, 20, 64]
OPTIONS = {
    "plain": {},
    "decay": {"g": True},
    "sinks": {"sink": True},
    "slopes": {"slopes": True},
    "window": {"window": 5},
    "both ways": {"causal": False},
    "both ways, window, slopes": {"causal": False, "window": 4, "slopes": True},
    "everything": {"g": True, "sink": True, "slopes": True, "window": 7},
}


def inputs(tokens, keys, *, batch=2, heads=4, key_heads=2, width=6, values=5, seed=0):
    rng = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, generator=rng, dtype=torch.float64)

    return {
        "q": 2 * normal(batch, tokens, heads, width),
        "k": normal(batch, keys, key_heads, width),
        "v": normal(batch, keys, key_heads, values),
        "g": torch.nn.functional.logsigmoid(2 * normal(batch, keys, heads)),
        "slopes": normal(heads).abs(),
        "sink": normal(heads, 2),
    }


def chosen(tensors, options):
    """The tensors and the other options that an entry of OPTIONS asks for."""
    kept = {name: x for name, x in tensors.items() if name in "qkv" or options.get(name)}
    return kept, {name: option for name, option in options.items() if name not in tensors}


def run(options, form, tensors):
    leaves = {name: x.clone().requires_grad_() for name, x in tensors.items()}
    o, logsumexp = form(**leaves, **options, output_logsumexp=True)
    return {"o": o.detach(), "logsumexp": logsumexp.detach(), **gradients(leaves, o, logsumexp)}


@pytest.mark.parametrize("tile_size", TILES)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize(("tokens", "keys"), [(20, 20), (9, 20), (20, 9)])
def test_tiled_equals_reference(tokens, keys, options, tile_size):
    tensors, options = chosen(inputs(tokens, keys), options)
    form = partial(tiled_softmax, tile_size=tile_size)
    assert_agrees(partial(run, options), form, reference_softmax, tensors)


@pytest.mark.parametrize("options", [o for o in OPTIONS.values() if o.get("causal", True)])
@pytest.mark.parametrize(("tokens", "keys"), [(20, 20), (3, 18), (18, 3)])
def test_recurrent_equals_reference(tokens, keys, options):
    tensors, options = chosen(inputs(tokens, keys), options)
    assert_agrees(partial(run, options), recurrent_softmax, reference_softmax, tensors)


def by_hand(q, k, v, g, slopes, sink, window, causal):
    """One head of attention with Python floats, straight from the formula."""
    outputs, levels = [], []
    offset = len(k) - len(q)
    for i, query in enumerate(q):
        position, exponents = i + offset, {}
        for j, key in enumerate(k):
            if (causal and j > position) or (window is not None and abs(position - j) >= window):
                continue
            decay = sum(g[j + 1 : position + 1])
            exponents[j] = sum(a * b for a, b in zip(query, key, strict=True)) * len(query) ** -0.5
            exponents[j] += decay - slopes * abs(position - j)
        total = sum(map(math.exp, exponents.values())) + sum(map(math.exp, sink))
        weights = {j: math.exp(x) / total for j, x in exponents.items()}
        outputs.append([sum(w * v[j][d] for j, w in weights.items()) for d in range(len(v[0]))])
        levels.append(math.log(total) if total else -math.inf)
    return outputs, levels


@pytest.mark.parametrize(("window", "causal"), [(None, True), (3, True), (3, False), (None, False)])
@pytest.mark.parametrize(("tokens", "keys"), [(7, 7), (4, 9), (9, 4)])
def test_reference_is_the_formula(tokens, keys, window, causal):
    t = inputs(tokens, keys, batch=1)
    if not causal:
        t["g"] = None
    o, logsumexp = reference_softmax(**t, window=window, causal=causal, output_logsumexp=True)
    for head in range(4):
        row = {name: t[name][0, :, head // 2].tolist() for name in ("k", "v")}
        row |= {"q": t["q"][0, :, head].tolist(), "slopes": t["slopes"][head].item()}
        row["g"] = [0.0] * keys if t["g"] is None else t["g"][0, :, head].tolist()
        expected, levels = by_hand(**row, sink=t["sink"][head].tolist(), window=window, causal=causal)
        # The terms are the same and so are their sizes: only the order of a few dozen additions differs.
        torch.testing.assert_close(o[0, :, head], torch.tensor(expected, dtype=torch.float64))
        torch.testing.assert_close(logsumexp[0, :, head], torch.tensor(levels, dtype=torch.float64))


def whole_numbers(tokens, keys, dtype, seed=0):
    """Queries that see some keys at exponent 4096 and all others at 0: weights are exactly 1 or 0."""
    rng = torch.Generator().manual_seed(seed)

    def one_hot(*shape):
        places = torch.randint(0, 3, shape, generator=rng)
        return 64 * torch.nn.functional.one_hot(places, 4).to(dtype)

    v = torch.randint(-9, 10, (2, keys, 2, 3), generator=rng).to(dtype)
    return one_hot(2, tokens, 4), one_hot(2, keys, 2), v


def counted(q, k, v, window):
    """Mean of the values of the best visible keys, numerator and denominator exact, one rounded division."""
    o = torch.zeros(*q.shape[:3], v.shape[3], dtype=q.dtype)
    offset = k.shape[1] - q.shape[1]
    for b, t, h in torch.cartesian_prod(*map(torch.arange, q.shape[:3])).tolist():
        seen = slice(max(0, t + offset + 1 - (window or k.shape[1])), max(0, t + offset + 1))
        scores = k[b, seen, h // 2] @ q[b, t, h]
        if len(scores):
            best = scores == scores.max()
            o[b, t, h] = v[b, seen, h // 2][best].sum(0) / best.sum()
    return o


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("window", [None, 5])
@pytest.mark.parametrize(("tokens", "keys"), [(21, 21), (7, 20), (20, 7)])
def test_exact_weights_give_exact_outputs(tokens, keys, window, dtype):
    q, k, v = whole_numbers(tokens, keys, dtype)
    expected = counted(q, k, v, window)
    options = {"scale": 1.0, "window": window}
    assert torch.equal(reference_softmax(q, k, v, **options)[0].to(dtype), expected)
    assert torch.equal(recurrent_softmax(q, k, v, **options)[0], expected)
    for tile_size in TILES:
        assert torch.equal(tiled_softmax(q, k, v, **options, tile_size=tile_size)[0], expected)
    for cut in (1, tokens // 2, tokens):
        # The first queries see the keys up to their own; the others resume with the cache of all keys.
        early = slice(0, max(0, keys - tokens + cut))
        first = tiled_softmax(q[:, :cut], k[:, early], v[:, early], **options, tile_size=4)
        second = tiled_softmax(q[:, cut:], k, v, **options, tile_size=4)
        assert torch.equal(torch.cat([first[0], second[0]], dim=1), expected)


def one_by_one(rows, *, cu_seqlens, cu_seqlens_k, **given):
    """The reference on each sequence by itself; ``rows`` says which bounds cut which tensor."""
    parts = []
    for n in range(len(cu_seqlens) - 1):
        cut = {key: given[key][:, bounds[n] : bounds[n + 1]] for key, bounds in rows.items() if key in given}
        parts.append(reference_softmax(**{**given, **cut}))
    return tuple(torch.cat(tensors, dim=1) for tensors in zip(*parts, strict=True))


@pytest.mark.parametrize("name", ["plain", "decay", "everything"])
def test_packed_sequences_equal_separate_calls(name):
    tensors, options = chosen(inputs(15, 20, batch=1), OPTIONS[name])
    queries, keys = [0, 3, 3, 10, 15], [0, 9, 11, 15, 20]
    packing = {"cu_seqlens": torch.tensor(queries), "cu_seqlens_k": torch.tensor(keys, dtype=torch.int32)}
    rows = {"q": queries, "k": keys, "v": keys, "g": keys}

    def both(form, tensors):
        return run({**options, **packing}, form, tensors)

    separate = partial(one_by_one, rows)
    for form in (
        reference_softmax,
        recurrent_softmax,
        *(partial(tiled_softmax, tile_size=tile) for tile in (1, 4, 100)),
    ):
        assert_agrees(both, form, separate, tensors)


def test_merging_prefix_and_suffix_is_the_whole():
    tensors, _ = chosen(inputs(9, 30), {"sink": True})

    def merged(q, k, v, sink, output_logsumexp):
        parts = []
        for keys, own in ((slice(0, 11), sink), (slice(11, 30), None)):
            parts += tiled_softmax(
                q, k[:, keys], v[:, keys], sink=own, causal=False, output_logsumexp=True, tile_size=4
            )
        return merge_softmax(*parts)

    def whole(**given):
        return reference_softmax(**given, causal=False)

    assert_agrees(partial(run, {}), merged, whole, tensors)


def test_merging_with_nothing_changes_nothing():
    o, logsumexp = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3)
    nothing = torch.zeros_like(o), torch.full_like(logsumexp, -torch.inf)
    for merged in (merge_softmax(o, logsumexp, *nothing), merge_softmax(*nothing, o, logsumexp)):
        assert torch.equal(merged[0], o)
        assert torch.equal(merged[1], logsumexp)
    assert torch.equal(merge_softmax(*nothing, *nothing)[1], nothing[1])
    with pytest.raises(ValueError, match=r"other_o must have shape \[1, 2, 3, 4\]"):
        merge_softmax(o, logsumexp, o[..., :3], logsumexp)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("boundary", [1, 16, 17, 34])
def test_outputs_do_not_depend_on_later_tokens(boundary, dtype):
    before = {name: x.to(dtype) for name, x in inputs(35, 35).items()}
    after = {name: x.clone() for name, x in before.items()}
    later = slice(boundary, None)
    after["q"][:, later] *= -1e3
    after["k"][:, later] = after["k"][:, later].flip(-1)
    after["v"][:, later] = 1e20
    after["g"][:, later] = -torch.inf
    for form in (
        recurrent_softmax,
        *(partial(tiled_softmax, tile_size=tile) for tile in (1, 16, 17, 64)),
    ):
        first, second = (form(**x, output_logsumexp=True) for x in (before, after))
        for x, y in zip(first, second, strict=True):
            assert torch.equal(bits(x[:, :boundary]), bits(y[:, :boundary]))
            assert not torch.equal(x[:, boundary:], y[:, boundary:])


def test_a_poisoned_later_tile_reaches_no_earlier_one():
    t = inputs(20, 20)
    poisoned = {name: x.clone() for name, x in t.items()}
    for name in ("k", "v", "g"):
        poisoned[name][:, 12:] = torch.nan
    for form in (recurrent_softmax, partial(tiled_softmax, tile_size=4)):
        assert torch.equal(form(**poisoned)[0][:, :12], form(**t)[0][:, :12])
        assert form(**poisoned)[0][:, 12:].isnan().all()


@pytest.mark.parametrize("gate", [0.0, -1.5, -5.0, -100.0, -1e30, -torch.inf])
def test_gradients_are_finite_and_right_at_any_gate(gate):
    tensors, _ = chosen(inputs(24, 24), {"g": True})
    tensors["g"][:, 7::5] = gate
    for tile_size in (4, 16, 64):
        form = partial(tiled_softmax, tile_size=tile_size)
        assert_agrees(partial(run, {}), form, reference_softmax, tensors)
        found = run({}, form, tensors)
        assert all(x.isfinite().all() for x in found.values())


def test_a_gate_of_minus_infinity_forgets_everything_before():
    t, _ = chosen(inputs(40, 40), {"g": True})
    t["g"][:, 23] = -torch.inf
    other = {name: x.clone() for name, x in t.items()}
    for name in ("k", "v"):
        other[name][:, :23] = other[name][:, :23].flip(1)
    for form in (reference_softmax, recurrent_softmax, *(partial(tiled_softmax, tile_size=n) for n in TILES)):
        assert torch.equal(form(**t)[0][:, 23:], form(**other)[0][:, 23:])


def test_small_gates_keep_their_digits_behind_a_large_one():
    """A difference of running sums near 2^24 could not see a gate below 1; a sum of gates can."""
    t, _ = chosen(inputs(12, 12), {"g": True})
    t["g"][:] = -(2.0**-10)
    t["g"][:, 0] = -(2.0**24)
    assert_agrees(partial(run, {}), partial(tiled_softmax, tile_size=4), reference_softmax, t)


@pytest.mark.parametrize("level", [-1e4, -200.0, 1e4])
def test_logits_far_from_zero_neither_overflow_nor_vanish(level):
    t, _ = chosen(inputs(20, 20), {})
    t["q"][..., 0], t["k"][..., 0] = 1.0, level * 6**0.5
    for tile_size in (3, 16):
        form = partial(tiled_softmax, tile_size=tile_size)
        assert_agrees(partial(run, {}), form, reference_softmax, t)


@pytest.mark.parametrize("sink", [None, -torch.inf, 0.5])
def test_rows_that_see_nothing_give_zero(sink):
    t, _ = chosen(inputs(9, 4), {})
    t["sink"] = None if sink is None else torch.full((4,), sink, dtype=torch.float64)
    for form in (reference_softmax, recurrent_softmax, partial(tiled_softmax, tile_size=2)):
        o, logsumexp = form(**t, output_logsumexp=True)
        assert (o[:, :5] == 0).all()
        assert (logsumexp[:, :5] == (-torch.inf if sink is None else sink)).all()
        assert (o[:, 5:] != 0).all()


@pytest.mark.parametrize(("tokens", "keys"), [(0, 0), (0, 5), (5, 0)])
def test_nothing_to_attend_from_or_to(tokens, keys):
    for form in (reference_softmax, recurrent_softmax, tiled_softmax):
        o, logsumexp = form(**inputs(tokens, keys), output_logsumexp=True)
        assert o.shape == (2, tokens, 4, 5)
        assert logsumexp.shape == (2, tokens, 4)
        assert (o == 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_inputs_are_computed_in_float32(dtype):
    t, _ = chosen(inputs(20, 20), {})
    half = {name: x.to(dtype) for name, x in t.items()}
    single = {name: x.float() for name, x in half.items()}
    for form in (recurrent_softmax, tiled_softmax):
        o, logsumexp = form(**half, output_logsumexp=True)
        expected, level = form(**single, output_logsumexp=True)
        assert torch.equal(o, expected.to(dtype))
        assert torch.equal(logsumexp, level)

"""Pooled attention: its forms against the definition, over strides, overlaps, windows and packings."""

from functools import partial
from itertools import pairwise

import pytest
import torch
from agreement import assert_agrees, bits, gradients

from kernels.pooled.blocked import blocked_pooled
from kernels.pooled.pool import pool
from kernels.pooled.recurrent import Cache, recurrent_pooled
from kernels.pooled.reference import reference_pooled

OPTIONS = {
    "plain": {"stride": 4},
    "overlap": {"stride": 3, "overlap": True},
    "gate": {"stride": 4, "gate": True, "window": 2},
    "everything": {"stride": 3, "overlap": True, "gate": True, "sink": True, "window": 6},
    "slots alone": {"stride": 2, "window": 0},
    "slots and sink": {"stride": 2, "window": 0, "sink": True},
    "every token": {"stride": 1, "window": 1},
    "stride beyond T": {"stride": 64, "overlap": True, "window": 3},
}


def inputs(tokens, keys, *, batch=2):
    rng = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(shape, generator=rng, dtype=torch.float64)

    return {
        "q": 2 * normal(batch, tokens, 4, 5),
        "k": normal(batch, keys, 2, 5),
        "v": normal(batch, keys, 2, 3),
        "gate": normal(batch, keys, 2),
        "sink": normal(4),
    }


def chosen(tensors, options):
    kept = {name: x for name, x in tensors.items() if name in "qkv" or options.get(name)}
    return kept, {name: option for name, option in options.items() if name not in tensors}


def run(options, form, tensors):
    leaves = {name: x.clone().requires_grad_() for name, x in tensors.items()}
    o = form(**leaves, **options)
    return {"o": o.detach(), **gradients(leaves, o)}


@pytest.mark.parametrize("tile_size", [1, 3, 256])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize(("tokens", "keys"), [(21, 21), (1, 12), (5, 18), (0, 7), (0, 0)])
def test_blocked_equals_reference(tokens, keys, options, tile_size):
    tensors, options = chosen(inputs(tokens, keys), options)
    form = partial(blocked_pooled, tile_size=tile_size)
    assert_agrees(partial(run, options), form, reference_pooled, tensors)


def recurrent(cuts=(), **given):
    """The recurrent form, its state handed on at each cut."""
    rows = {name: given.pop(name) for name in ("q", "k", "v", "gate") if name in given}
    outputs, state = [], None
    for start, stop in pairwise([0, *cuts, rows["q"].shape[1]]):
        part = {name: x[:, start:stop] for name, x in rows.items()}
        o, state = recurrent_pooled(**part, **given, initial_state=state, output_final_state=True)
        outputs.append(o)
    return torch.cat(outputs, dim=1)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("tokens", [0, 1, 13])
def test_recurrent_equals_reference(tokens, options):
    tensors, options = chosen(inputs(tokens, tokens), options)
    assert_agrees(partial(run, options), recurrent, reference_pooled, tensors)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_recurrent_resumed_at_every_cut_is_the_whole_bit_for_bit(options):
    tensors, options = chosen(inputs(13, 13), options)
    whole = recurrent(**tensors, **options)
    for cuts in [(cut,) for cut in range(14)] + [(4, 4, 9), tuple(range(1, 13))]:
        assert torch.equal(bits(recurrent(cuts, **tensors, **options)), bits(whole))


def test_recurrent_state_does_not_grow_with_every_token():
    tensors, options = chosen(inputs(23, 23), OPTIONS["everything"])
    _, (state,) = recurrent_pooled(**tensors, **options, output_final_state=True)
    assert state.tokens == 23
    assert state.slots.gate is None
    assert state.slots.k.shape == (2, 23 // 3, 2, 5)
    assert state.recent.gate.shape == (2, 6, 2)


def test_recurrent_packed_sequences_keep_a_state_each():
    tensors, options = chosen(inputs(20, 20, batch=1), OPTIONS["everything"])
    offsets = [0, 9, 9, 13, 20]
    given = {"cu_seqlens": torch.tensor(offsets), "output_final_state": True}
    o, states = recurrent_pooled(**tensors, **options, **given)
    assert [state.tokens for state in states] == [9, 0, 4, 7]
    again, final = recurrent_pooled(**tensors, **options, **given, initial_state=states)
    for n, (start, stop) in enumerate(pairwise(offsets)):
        part = {name: x if name == "sink" else x[:, start:stop] for name, x in tensors.items()}
        alone, state = recurrent_pooled(**part, **options, output_final_state=True)
        assert torch.equal(o[:, start:stop], alone)
        twice, state = recurrent_pooled(**part, **options, initial_state=state, output_final_state=True)
        assert torch.equal(again[:, start:stop], twice)
        assert all(torch.equal(x, y) for x, y in zip(final[n].recent, state[0].recent, strict=True))


@pytest.mark.parametrize("options", [OPTIONS["everything"], OPTIONS["slots alone"]], ids=["tokens", "slots"])
def test_recurrent_outputs_do_not_see_later_tokens_that_are_not_finite(options):
    tensors, options = chosen(inputs(13, 13), options)
    whole = recurrent(**tensors, **options)
    for name in ("q", "k", "v"):
        poisoned = {**tensors, name: tensors[name].clone()}
        poisoned[name][:, 7:] = torch.nan
        o = recurrent(**poisoned, **options)
        assert torch.equal(bits(o[:, :7]), bits(whole[:, :7]))
        assert o[:, 8:].isnan().any()


def test_recurrent_wrong_states_are_named():
    tensors, options = chosen(inputs(9, 9), OPTIONS["gate"])
    _, states = recurrent_pooled(**tensors, **options, output_final_state=True)
    single = tuple(x._replace(slots=Cache(x.slots.k.float(), x.slots.v)) for x in states)
    wrong = {
        r"initial_state must hold 1 states, one per sequence, but it holds 2\.": (states * 2, {}),
        r"initial_state\[0\]\.slots must hold .*\[2, 3, 2, 5\].* after 9 tokens": (states, {"stride": 3}),
        r"initial_state\[0\]\.recent must hold .*\[2, 9, 2, 5\].* after 9 tokens": (states, {"window": 20}),
        r"initial_state\[0\]\.recent must hold None .* but it holds \(\[2, 4, 2\]": (states, {"gate": None}),
        r"initial_state\[0\]\.slots must hold .*float64.* but it holds .*float32": (single, {}),
    }
    for message, (given, other) in wrong.items():
        with pytest.raises(ValueError, match=message):
            recurrent_pooled(**{**tensors, **options, **other}, initial_state=given)
    with pytest.raises(ValueError, match=r"q must have k's 9 tokens, but it has 8\."):
        recurrent_pooled(**{**tensors, "q": tensors["q"][:, :8]}, **options)


def test_slots_are_means_over_their_windows():
    x = torch.arange(14.0).view(1, 14, 1, 1)
    assert pool(x, None, 4, False).flatten().tolist() == [1.5, 5.5, 9.5]
    assert pool(x, None, 4, True).flatten().tolist() == [1.5, 3.5, 7.5]
    only = torch.full((1, 14, 1), -torch.inf)
    only[:, [1, 6, 8]] = 0.0
    assert pool(x, only, 4, False).flatten().tolist() == [1.0, 6.0, 8.0]
    assert pool(x, only, 4, True).flatten().tolist() == [1.0, 3.5, 7.0]


def visible(tokens, options):
    """Which tokens can reach which outputs, by changing one value at a time."""
    given, options = chosen(inputs(tokens, tokens, batch=1), options)
    before = reference_pooled(**given, **options)[0, :, 0]
    table = torch.zeros(tokens, tokens, dtype=torch.bool)
    for j in range(tokens):
        other = {name: x.clone() for name, x in given.items()}
        other["v"][:, j] += 1
        table[:, j] = (reference_pooled(**other, **options)[0, :, 0] != before).any(-1)
    return table


@pytest.mark.parametrize(
    ("stride", "overlap", "window"), [(4, False, 0), (3, True, 0), (4, False, None), (3, True, 2)]
)
def test_reference_sees_complete_windows_and_its_own(stride, overlap, window):
    own = stride if window is None else window
    expected = torch.zeros(13, 13, dtype=torch.bool)
    for position in range(13):
        expected[position, max(0, position + 1 - own) : position + 1] = True
        expected[position, : (position + 1) // stride * stride] = True
    table = visible(13, {"stride": stride, "overlap": overlap, "window": window})
    assert torch.equal(table, expected)


def test_stride_one_without_own_window_is_softmax_attention():
    from kernels.softmax.reference import reference_softmax

    t, _ = chosen(inputs(9, 14), {})
    torch.testing.assert_close(reference_pooled(**t, stride=1, window=0), reference_softmax(**t)[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("boundary", [1, 4, 11, 12, 13, 20])
def test_outputs_do_not_depend_on_later_tokens(boundary, dtype):
    tensors, options = chosen(inputs(21, 21), {"stride": 4, "overlap": True, "gate": True})
    before = {name: x.to(dtype) for name, x in tensors.items()}
    after = {name: x.clone() for name, x in before.items()}
    for x in after.values():
        x[:, boundary:] = -1e3 * x[:, boundary:]
    for tile_size in (1, 3, 256):
        first, second = (blocked_pooled(**x, **options, tile_size=tile_size) for x in (before, after))
        assert torch.equal(bits(first[:, :boundary]), bits(second[:, :boundary]))
        assert not torch.equal(first[:, boundary:], second[:, boundary:])


def test_packed_sequences_equal_separate_calls():
    tensors, options = chosen(inputs(12, 20, batch=1), OPTIONS["everything"])
    queries, keys = [0, 5, 5, 11, 12], [0, 9, 10, 16, 20]
    packing = {"cu_seqlens": torch.tensor(queries), "cu_seqlens_k": torch.tensor(keys)}
    rows = {"q": queries, "k": keys, "v": keys, "gate": keys}

    def one_by_one(*, cu_seqlens, cu_seqlens_k, **given):
        parts = []
        for n in range(4):
            cut = {key: given[key][:, bounds[n] : bounds[n + 1]] for key, bounds in rows.items()}
            parts.append(reference_pooled(**{**given, **cut}))
        return torch.cat(parts, dim=1)

    for form in (reference_pooled, partial(blocked_pooled, tile_size=2), blocked_pooled):
        assert_agrees(partial(run, {**options, **packing}), form, one_by_one, tensors)


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 12])
def test_resuming_with_the_cache_is_the_whole(cut):
    tensors, options = chosen(inputs(12, 12), OPTIONS["everything"])

    def resumed(q, **given):
        early = {name: x[:, :cut] if name in ("k", "v", "gate") else x for name, x in given.items()}
        first = blocked_pooled(q[:, :cut], **early, tile_size=2)
        return torch.cat([first, blocked_pooled(q[:, cut:], **given, tile_size=2)], dim=1)

    assert_agrees(partial(run, options), resumed, reference_pooled, tensors)


def test_half_inputs_are_computed_in_float32():
    t, options = chosen(inputs(9, 9), OPTIONS["gate"])
    half = {name: x.bfloat16() for name, x in t.items()}
    single = {name: x.float() for name, x in half.items()}
    assert torch.equal(blocked_pooled(**half, **options), blocked_pooled(**single, **options).bfloat16())


WRONG = {
    "stride must be at least 1, but it is 0.": {"stride": 0},
    "window must be at least 0, but it is -1.": {"window": -1},
    "q must have at most k's 5 tokens, but it has 6.": {"q": torch.zeros(1, 6, 4, 2)},
    "gate must have shape [1, 5, 2], but its shape is [1, 5, 4].": {"gate": torch.zeros(1, 5, 4)},
    "gate must be torch.float32 when k is, but its dtype is torch.float64.": {
        "gate": torch.zeros(1, 5, 2, dtype=torch.float64)
    },
    "q must have a multiple of k's 2 heads, but it has 3.": {"q": torch.zeros(1, 3, 3, 2)},
    "sink must have shape [4] or [4, n], n >= 1, but its shape is [2].": {"sink": torch.zeros(2)},
    "k must be finite, but it contains inf.": {"k": torch.full((1, 5, 2, 2), torch.inf), "check": True},
}


@pytest.mark.parametrize("form", [reference_pooled, blocked_pooled])
@pytest.mark.parametrize("message", WRONG)
def test_wrong_arguments_are_named(form, message):
    right = {
        "q": torch.zeros(1, 3, 4, 2),
        "k": torch.zeros(1, 5, 2, 2),
        "v": torch.zeros(1, 5, 2, 3),
        "stride": 2,
    }
    form(**right)
    with pytest.raises(ValueError, match="must") as raised:
        form(**{**right, **WRONG[message]})
    assert str(raised.value) == message

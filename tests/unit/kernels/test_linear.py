"""Linear attention: every form, chunk size, feature map and packing against the definition."""

from functools import partial

import pytest
import torch
from agreement import assert_agrees, bits, gradients

from kernels.linear.chunked import chunked_linear
from kernels.linear.operator import operator, operator_backward
from kernels.linear.recurrent import recurrent_linear
from kernels.linear.reference import reference_linear

CHUNKS = [1, 2, 3, 16, 17, 20, 64]
FORMS = [recurrent_linear, *(partial(chunked_linear, chunk_size=size) for size in CHUNKS)]
FORM = pytest.mark.parametrize("form", FORMS, ids=["recurrent", *map(str, CHUNKS)])


def with_squares(x):
    """A feature map that widens: all features are positive, so that no normaliser comes near 0."""
    return torch.cat([x.abs() + 1, x * x], dim=-1)


MAPS = {"identity": False, "elu+1": True, "relu": False, with_squares: True}
"""Feature maps, and whether their products stay clear of 0, as a normaliser should."""


def inputs(tokens, *, runs=2, batch=2, keys=4, features=4, seed=0):
    rng = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, generator=rng, dtype=torch.float64)

    return {
        "q": normal(batch, tokens, 2, keys),
        "k": normal(batch, tokens, 2, keys),
        "v": normal(batch, tokens, 4, 3),
        "state": normal(runs, 4, features, 3),
        "total": normal(runs, 2, features).abs(),
    }


def run(options, form, tensors):
    leaves = {name: x.clone().requires_grad_() for name, x in tensors.items()}
    q, k, v, state, total = leaves.values()
    initial = (state, total) if options.get("normalise") else state
    o, final = form(q, k, v, initial_state=initial, output_final_state=True, **options)
    finals = final if isinstance(final, tuple) else (final,)
    found = {f"state {n}": x.detach() for n, x in enumerate(finals)}
    return {"o": o.detach(), **found, **gradients(leaves, o, *finals)}


@FORM
@pytest.mark.parametrize("tokens", [0, 1, 20])
@pytest.mark.parametrize("feature_map", MAPS)
def test_forms_equal_reference(form, feature_map, tokens):
    tensors = inputs(tokens, features=8 if feature_map is with_squares else 4)
    for normalise in (False, True) if MAPS[feature_map] else (False,):
        options = {"feature_map": feature_map, "normalise": normalise}
        assert_agrees(partial(run, options), form, reference_linear, tensors)


def integers(tokens, dtype, seed=0):
    rng = torch.Generator().manual_seed(seed)
    shapes = {name: x.shape for name, x in inputs(tokens).items() if name != "total"}
    return {name: torch.randint(-3, 4, shape, generator=rng).to(dtype) for name, shape in shapes.items()}


def summed(q, k, v, state):
    """Integer arithmetic, token by token."""
    q, k, v, state = (x.long() for x in (q, k, v, state))
    outputs = []
    for t in range(q.shape[1]):
        key, query = (x[:, t].repeat_interleave(2, dim=1) for x in (k, q))
        state = state + key[..., None] * v[:, t, :, None, :]
        outputs.append((query[..., None] * state).sum(-2))
    return torch.stack(outputs, dim=1), state


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("cut", [0, 1, 16, 20])
def test_integers_are_exact_whole_and_resumed(cut, dtype):
    t = integers(20, dtype)
    expected, final = (x.to(dtype) for x in summed(**t))
    for form in (reference_linear, *FORMS):
        o, state = t["state"].new_zeros(0), t["state"]
        parts = []
        for rows in (slice(0, cut), slice(cut, 20)):
            own = (t[name][:, rows] for name in ("q", "k", "v"))
            o, state = form(*own, scale=1.0, initial_state=state.to(dtype), output_final_state=True)
            parts.append(o.to(dtype))
        assert torch.equal(torch.cat(parts, dim=1), expected)
        assert torch.equal(state.to(dtype), final)


@FORM
def test_normaliser_is_exact_on_integers(form):
    t = integers(20, torch.float64)
    weights, _ = summed(t["q"].abs(), t["k"].abs(), t["v"], torch.zeros_like(t["state"]))
    ones, _ = summed(t["q"].abs(), t["k"].abs(), torch.ones_like(t["v"]), torch.zeros_like(t["state"]))
    o, _ = form(t["q"], t["k"], t["v"], scale=0.5, feature_map=torch.abs, normalise=True)
    nothing = ones == 0
    assert torch.equal(o, (weights.double() / ones.double()).masked_fill(nothing, 0.0))


@pytest.mark.parametrize("normalise", [False, True])
def test_packed_sequences_equal_separate_calls(normalise):
    tensors = inputs(20, runs=4, batch=1)
    offsets = [0, 3, 3, 19, 20]

    def one_by_one(q, k, v, initial_state, cu_seqlens, **options):
        parts = []
        for n in range(4):
            rows = slice(offsets[n], offsets[n + 1])
            if isinstance(initial_state, tuple):
                own = tuple(x[n : n + 1] for x in initial_state)
            else:
                own = initial_state[n : n + 1]
            parts.append(reference_linear(q[:, rows], k[:, rows], v[:, rows], initial_state=own, **options))
        o = torch.cat([o for o, _ in parts], dim=1)
        states = [state if isinstance(state, tuple) else (state,) for _, state in parts]
        joined = tuple(torch.cat(x) for x in zip(*states, strict=True))
        return o, joined if normalise else joined[0]

    options = {"feature_map": "elu+1", "normalise": normalise, "cu_seqlens": torch.tensor(offsets)}
    for form in (reference_linear, *FORMS):
        assert_agrees(partial(run, options), form, one_by_one, tensors)


@FORM
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_outputs_do_not_depend_on_later_tokens(form, dtype):
    t = {name: x.to(dtype) for name, x in inputs(35).items()}
    for boundary in (1, 16, 17, 34):
        other = {name: x.clone() for name, x in t.items()}
        for name in ("q", "k", "v"):
            other[name][:, boundary:] *= -1e10
        first, second = (form(x["q"], x["k"], x["v"], initial_state=x["state"])[0] for x in (t, other))
        assert torch.equal(bits(first[:, :boundary]), bits(second[:, :boundary]))
        assert not torch.equal(first[:, boundary:], second[:, boundary:])


@FORM
def test_a_normaliser_of_zero_gives_zero(form):
    one = torch.ones(1, 2, 1, 1, dtype=torch.float64)
    k = one.clone()
    k[:, 1] = -1
    o, _ = form(one, k, one.cumsum(1), normalise=True)
    assert o.flatten().tolist() == [1.0, 0.0]


def test_feature_maps():
    x = torch.tensor([-200.0, -20.0, -1e-3, 0.0, 1e-3, 3.0], dtype=torch.float64).view(1, 1, 1, 6)
    one = torch.ones(1, 1, 1, 1, dtype=torch.float64)

    def mapped(feature_map):
        # One query feature at a time reads phi(k); phi(q) of the identity on a one-hot query is itself.
        state = reference_linear(x, x, one, feature_map=feature_map, output_final_state=True)[1]
        return state.flatten()

    assert torch.equal(mapped("relu"), x.flatten().clamp(min=0))
    positive = mapped("elu+1")
    assert torch.equal(positive[:3], x.flatten()[:3].exp())
    assert torch.equal(positive[3:], x.flatten()[3:] + 1)


def test_half_inputs_are_computed_in_float32():
    t = {name: x.bfloat16() for name, x in inputs(20).items()}
    for form in FORMS:
        o, state = form(t["q"], t["k"], t["v"], output_final_state=True)
        expected, final = form(t["q"].float(), t["k"].float(), t["v"].float(), output_final_state=True)
        assert torch.equal(o, expected.bfloat16())
        assert torch.equal(state, final)


def test_the_initial_state_is_left_alone():
    t = inputs(0)
    for form in (reference_linear, *FORMS):
        final = form(t["q"], t["k"], t["v"], initial_state=t["state"], output_final_state=True)[1]
        assert torch.equal(final, t["state"].to(final.dtype))
        assert final.data_ptr() != t["state"].data_ptr()


@pytest.mark.parametrize("offsets", [None, torch.tensor([0, 2, 2, 7])], ids=["plain", "packed"])
def test_operator_passes_the_checks_of_torch_library(offsets):
    rng = torch.Generator().manual_seed(0)
    runs = 1 if offsets is None else 3
    shapes = [(1, 2, 7, 3), (1, 2, 7, 3), (1, 2, 7, 4), (runs, 2, 3, 4)]
    arguments = [torch.randn(shape, generator=rng, requires_grad=True) for shape in shapes]
    torch.library.opcheck(operator, (*arguments, offsets, 3))
    detached = [x.detach() for x in arguments]
    upstream = torch.randn(shapes[2], generator=rng), torch.randn(shapes[3], generator=rng)
    torch.library.opcheck(operator_backward, (*upstream, *detached, offsets, 3))


def test_gradients_are_those_of_finite_differences_and_compilation_keeps_them():
    t = [x.requires_grad_() for x in inputs(5, batch=1, runs=1).values()]

    def attention(q, k, v, state, total):
        options = {"feature_map": with_squares, "normalise": True, "output_final_state": True}
        wide = torch.cat([state, state], dim=2), torch.cat([total, total], dim=2)
        o, final = chunked_linear(q, k, v, initial_state=wide, chunk_size=2, **options)
        return o, *final

    assert torch.autograd.gradcheck(attention, t)
    compiled = torch.compile(attention, backend="aot_eager", fullgraph=True)
    plain = torch.autograd.grad(sum(x.sum() for x in attention(*t)), t)
    traced = torch.autograd.grad(sum(x.sum() for x in compiled(*t)), t)
    assert all(torch.equal(x, y) for x, y in zip(plain, traced, strict=True))


WRONG = {
    "q must have the 4 dimensions [B, T, H, K], but its shape is [3].": {"q": torch.zeros(3)},
    "v must have a multiple of q's 2 heads, but it has 3.": {"v": torch.zeros(1, 3, 3, 5)},
    "k must have shape [1, 3, 2, 4], but its shape is [1, 3, 2, 5].": {"k": torch.zeros(1, 3, 2, 5)},
    "v must have shape [1, 3, 4, 5], but its shape is [1, 2, 4, 5].": {"v": torch.zeros(1, 2, 4, 5)},
    "k must be torch.float32 when q is, but its dtype is torch.float64.": {
        "k": torch.zeros(1, 3, 2, 4, dtype=torch.float64)
    },
    "v must be on q's device cpu, but it is on meta.": {"v": torch.zeros(1, 3, 4, 5, device="meta")},
    "scale must be a finite number, but it is nan.": {"scale": float("nan")},
    "feature_map must be a function or one of identity, elu+1, relu, but it is 'gelu'.": {
        "feature_map": "gelu"
    },
    "initial_state must have shape [1, 4, 4, 5], but its shape is [1, 2, 4, 5].": {
        "initial_state": torch.zeros(1, 2, 4, 5)
    },
    "initial_state must be torch.float32, but its dtype is torch.float16.": {
        "initial_state": torch.zeros(1, 4, 4, 5, dtype=torch.float16)
    },
    "initial_state must be a pair (S, z) with normalise=True, but it is a Tensor.": {
        "initial_state": torch.zeros(1, 4, 4, 5),
        "normalise": True,
    },
    "initial_state must be one tensor with normalise=False, but it is a tuple.": {
        "initial_state": (torch.zeros(1, 4, 4, 5), torch.zeros(1, 2, 4))
    },
    "initial_state[1] must have shape [1, 2, 4], but its shape is [1, 4, 4].": {
        "initial_state": (torch.zeros(1, 4, 4, 5), torch.zeros(1, 4, 4)),
        "normalise": True,
    },
    "cu_seqlens must end at the number of tokens 3, but it ends at 2.": {"cu_seqlens": torch.tensor([0, 2])},
    "k must be finite, but it contains inf.": {"k": torch.full((1, 3, 2, 4), torch.inf), "check": True},
}


@pytest.mark.parametrize("form", [reference_linear, recurrent_linear, chunked_linear])
@pytest.mark.parametrize("message", WRONG)
def test_wrong_arguments_are_named(form, message):
    right = {"q": torch.zeros(1, 3, 2, 4), "k": torch.zeros(1, 3, 2, 4), "v": torch.zeros(1, 3, 4, 5)}
    form(**right)
    with pytest.raises(ValueError, match="must") as raised:
        form(**{**right, **WRONG[message]})
    assert str(raised.value) == message


def test_a_chunk_has_at_least_one_token():
    with pytest.raises(ValueError, match="chunk_size must be at least 1, but it is 0"):
        chunked_linear(*(torch.zeros(1, 3, 2, 4) for _ in range(3)), chunk_size=0)


def test_a_feature_map_keeps_the_tokens_and_one_width():
    q = torch.zeros(1, 3, 2, 4)
    wanted = r"to \[1, 3, 2, 'features'\] of torch.float32, but it gave \[24\] of torch.float32"
    with pytest.raises(ValueError, match=r"feature_map must take q \[1, 3, 2, 4\] " + wanted):
        chunked_linear(q, q, q, feature_map=torch.flatten)
    widths = iter((4, 3))
    with pytest.raises(ValueError, match="feature_map must give q and k the same width, but it gave 4 and 3"):
        chunked_linear(q, q, q, feature_map=lambda x: x[..., : next(widths)])

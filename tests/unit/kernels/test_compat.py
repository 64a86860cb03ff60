"""The compatible functions among themselves: layouts, options, packing, direction, gradients, bad input."""

import re

import pytest
import torch
from dplr_family import family

from kernels.compat import fla, transformers
from kernels.kda.chunked import chunked_kda
from kernels.kda.reference import reference_kda

OFFSETS = torch.tensor([0, 0, 3, 12])


def recurrent_gdn(q, k, v, g, beta, **options):
    """beta comes after gk and gv there."""
    return fla.fused_recurrent_gated_delta_rule(q, k, v, g, beta=beta, **options)


FUNCTIONS = {
    "kda": (fla.chunk_kda, fla.fused_recurrent_kda, ("gk", "beta")),
    "gdn": (fla.chunk_gated_delta_rule, recurrent_gdn, ("g", "beta")),
    "delta": (fla.chunk_delta_rule, fla.fused_recurrent_delta_rule, ("beta",)),
    "dplr": (fla.chunk_dplr_delta_rule, fla.fused_recurrent_dplr_delta_rule, ("a", "b", "gk")),
    "gdn2": (fla.chunk_gdn2, fla.fused_recurrent_gdn2, ("gk", "b", "w")),
    "simple_gla": (fla.chunk_simple_gla, fla.fused_recurrent_simple_gla, ("g",)),
    "linear": (fla.chunk_linear_attn, fla.fused_recurrent_linear_attn, ()),
}


def arguments(name, *, sequences=1, tokens=12, heads=2, keys=4, values=3):
    """Positional tensors of the functions of that name and an initial state: integers, exact in float32."""
    rng = torch.Generator().manual_seed(1)

    def integer(low, high, *shape):
        return torch.randint(low, high + 1, shape, generator=rng).float()

    def one_hot():
        chosen = torch.randint(0, keys, (1, tokens, heads), generator=rng)
        return torch.nn.functional.one_hot(chosen, keys).float()

    q, v = integer(-2, 2, 1, tokens, heads, keys), integer(-3, 3, 1, tokens, heads, values)
    tensors = {"a": -one_hot(), "beta": integer(0, 1, 1, tokens, heads), "w": integer(0, 1, *v.shape)}
    tensors["b"] = -tensors["a"] if name == "dplr" else integer(0, 1, *q.shape)
    tensors |= {"g": torch.zeros(1, tokens, heads), "gk": torch.zeros(q.shape)}
    tensors["g"][:, 5], tensors["gk"][:, 5] = -torch.inf, -torch.inf
    state = integer(-3, 3, sequences, heads, keys, values)
    return (q, one_hot(), v, *(tensors[x] for x in FUNCTIONS[name][2])), state


def options(name):
    return {"normalize": False} if name == "linear" else {}


@pytest.fixture(params=FUNCTIONS)
def name(request):
    return request.param


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)


def test_chunks_equal_tokens_and_sequences_stay_apart(name):
    chunk, recurrent, _ = FUNCTIONS[name]
    tensors, state = arguments(name, sequences=3)
    keywords = {"initial_state": state, "output_final_state": True, "cu_seqlens": OFFSETS} | options(name)
    o, final = chunk(*tensors, **keywords)
    assert_same((o, final), recurrent(*tensors, **keywords))
    keywords.pop("cu_seqlens")
    for n, (start, end) in enumerate(((0, 0), (0, 3), (3, 12))):
        part = [x[:, start:end] for x in tensors]
        alone = chunk(*part, **(keywords | {"initial_state": state[n : n + 1]}))
        assert_same((o[:, start:end], final[n : n + 1]), alone)
    assert chunk(*tensors, **options(name))[1] is None


@pytest.mark.parametrize("name", ["kda", "gdn", "gdn2", "simple_gla"])
def test_states_with_values_first(name):
    tensors, state = arguments(name)
    for function in FUNCTIONS[name][:2]:
        o, final = function(*tensors, initial_state=state, output_final_state=True)
        keywords = {"initial_state": state.mT, "output_final_state": True}
        o_first, final_first = function(*tensors, state_v_first=True, **keywords)
        assert_same((o_first, final_first), (o, final.mT))
        assert final_first.is_contiguous()
        if name != "simple_gla":
            assert_same(function(*tensors, transpose_state_layout=True, **keywords), (o, final.mT))


@pytest.mark.parametrize("name", ["dplr", "simple_gla", "linear"])
@pytest.mark.parametrize("packed", [False, True])
def test_reverse_is_time_turned_around(name, packed):
    recurrent = FUNCTIONS[name][1]
    tensors, state = arguments(name, sequences=3 if packed else 1)
    keywords = {"output_final_state": True} | options(name)
    offsets = OFFSETS.tolist() if packed else [0, 12]
    given = {"cu_seqlens": OFFSETS} if packed else {}
    o, final = recurrent(*tensors, reverse=True, initial_state=state, **keywords, **given)
    for n in range(len(offsets) - 1):
        start, end = offsets[n], offsets[n + 1]
        part = [x[:, start:end].flip(1) for x in tensors]
        alone, last = recurrent(*part, initial_state=state[n : n + 1], **keywords)
        assert_same((o[:, start:end], final[n : n + 1]), (alone.flip(1), last))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_normalised_linear_attention(packed, reverse):
    """Weights q_t . k_s over the tokens seen, plus what the state stands for: integers, divided once."""
    tensors, state = arguments("linear", sequences=3 if packed else 1)
    q, k, v = (x.abs() + 1 for x in tensors)
    seen = state.shape[0], 1, 2, 4
    start = state.abs(), torch.ones(seen)
    keywords = {"normalize": True, "initial_state": start, "output_final_state": True}
    if packed:
        keywords["cu_seqlens"] = OFFSETS
    if reverse:
        o, (final, keys) = fla.fused_recurrent_linear_attn(q, k, v, reverse=True, **keywords)
    else:
        o, (final, keys) = fla.chunk_linear_attn(q, k, v, **keywords)
        assert_same((o, final, keys), _flat(fla.fused_recurrent_linear_attn(q, k, v, **keywords)))
        if not packed:
            assert_same((o, final, keys), _flat(fla.naive_recurrent_linear_attn(q, k, v, **keywords)))
    offsets = OFFSETS.tolist() if packed else [0, 12]
    order = torch.ones(12, 12).triu() if reverse else torch.ones(12, 12).tril()
    for n in range(len(offsets) - 1):
        rows = slice(offsets[n], offsets[n + 1])
        weights = torch.einsum(
            "tsh,ts->tsh", torch.einsum("thk,shk->tsh", q[0, rows], k[0, rows]), order[rows, rows]
        )
        above = torch.einsum("tsh,shv->thv", weights, v[0, rows])
        above += torch.einsum("thk,hkv->thv", q[0, rows], start[0][n])
        below = weights.sum(1) + torch.einsum("thk,hk->th", q[0, rows], start[1][n, 0])
        expected = (above.double() / below.double().unsqueeze(-1)).float()
        assert torch.equal(o[0, rows], expected)
        assert torch.equal(keys[n, 0], start[1][n, 0] + k[0, rows].sum(0))
        assert torch.equal(final[n], start[0][n] + torch.einsum("shk,shv->hkv", k[0, rows], v[0, rows]))


def _flat(result):
    o, (final, keys) = result
    return o, final, keys


def test_naive_normalised_chunks_equal_tokens():
    q, k, v = (x.abs() + 1 for x in arguments("linear", tokens=64)[0])
    o, none = fla.naive_recurrent_linear_attn(q, k, v, normalize=True)
    assert none is None
    assert torch.equal(fla.naive_chunk_linear_attn(q, k, v, normalize=True), o)


def test_options_of_the_delta_rule_mean_what_they_say():
    inputs = {name: x.float() for name, x in family("dplr").random(20).items() if name not in ("a", "b")}
    state = {"initial_state": inputs.pop("initial_state"), "output_final_state": True}
    logits = torch.randn(2, 20, 2, generator=torch.Generator().manual_seed(2))
    raw = {"use_gate_in_kernel": True, "lower_bound": -5.0}
    found = fla.chunk_kda(
        **inputs, beta=logits, use_beta_sigmoid_in_kernel=True, allow_neg_eigval=True, **state
    )
    assert_same(found, chunked_kda(**inputs, beta=2 * logits.sigmoid(), **state))
    found = fla.chunk_kda(**inputs, beta=logits.sigmoid(), **raw, **state)
    gates = inputs | {"g": -5 * torch.sigmoid(inputs["g"])}
    assert_same(found, chunked_kda(**gates, beta=logits.sigmoid(), **state))
    both = {"g": inputs["g"][..., 0], "gk": inputs["g"]}
    together = inputs | {"g": inputs["g"] + inputs["g"][..., :1]}
    found = fla.fused_recurrent_gated_delta_rule(**(inputs | both), **state)
    expected = fla.fused_recurrent_kda(**together, beta=torch.ones(2, 20, 2), **state)
    assert_same(found, expected)
    ungated = {name: x for name, x in inputs.items() if name != "g"}
    gamma = torch.tensor([-0.5, -1.0])
    decays = gamma.expand(2, 20, 2)
    heads = {name: inputs[name].repeat_interleave(2, dim=2) for name in ("q", "k")} | {"v": inputs["v"]}
    found = fla.chunk_simple_gla(**heads, g_gamma=gamma, **state)
    assert_same(found, fla.chunk_simple_gla(**heads, g=decays, **state))
    assert_same(
        fla.fused_recurrent_delta_rule(**ungated, **state),
        fla.fused_recurrent_gated_delta_rule(**ungated, **state),
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_everything_is_computed_in_float32(dtype):
    """Also what comes in float64, as in the original: output in the input's dtype, state in float32."""
    tensors, state = arguments("kda")
    cast = [x.to(dtype) for x in tensors]
    o, final = fla.naive_recurrent_kda(*tensors, initial_state=state, output_final_state=True)
    found = fla.naive_recurrent_kda(*cast, initial_state=state.to(dtype), output_final_state=True)
    assert_same(found, (o.to(dtype), final))
    q, k, v, g, beta = cast
    o, final = transformers.chunk_kimi_delta_attention(q, k, v, g, beta, output_final_state=True)
    assert (o.dtype, final.dtype) == (dtype, torch.float32)


def test_packed_sequences_stay_apart_in_transformers_functions():
    tensors, _ = arguments("kda")
    expected = fla.chunk_kda(*tensors, cu_seqlens=OFFSETS)[0]
    for function in (transformers.chunk_kimi_delta_attention, transformers.recurrent_kimi_delta_attention):
        found, _ = function(*tensors, initial_state=None, output_final_state=False, cu_seqlens=OFFSETS)
        assert torch.equal(found, expected)
        assert not torch.equal(found, function(*tensors, initial_state=None, output_final_state=False)[0])


def test_gradients_pass_through():
    inputs = {name: x.float() for name, x in family("dplr").random(20).items() if name not in ("a", "b")}
    inputs["beta"] = torch.rand(2, 20, 2, generator=torch.Generator().manual_seed(3))
    gradients = []
    for kernel in (reference_kda, fla.chunk_kda):
        leaves = {name: x.clone().requires_grad_() for name, x in inputs.items()}
        if kernel is reference_kda:
            o, state = kernel(**leaves, output_final_state=True)
        else:
            leaves["initial_state"] = leaves["initial_state"].mT.detach().clone().requires_grad_()
            o, state = kernel(**leaves, output_final_state=True, state_v_first=True)
        (o.sum() + state.square().sum()).backward()
        gradients.append({name: leaf.grad for name, leaf in leaves.items()})
    gradients[1]["initial_state"] = gradients[1]["initial_state"].mT
    for name, exact in gradients[0].items():
        assert (gradients[1][name] - exact).abs().max() <= 2.0**-12 * exact.abs().max()


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"head_first": False}, "head_first is no option here, but it was given as False."),
        ({"cp_context": 3}, "cp_context is not supported here, but it was given as 3."),
        (
            {"return_intermediate_states": True},
            "return_intermediate_states is not supported here, but it was given as True.",
        ),
        (
            {"use_gate_in_kernel": True},
            "A_log must be given with use_gate_in_kernel and without lower_bound, but is None.",
        ),
        (
            {"allow_neg_eigval": True},
            "allow_neg_eigval must come with use_beta_sigmoid_in_kernel, but that is False.",
        ),
        ({"chunk_size": 0}, "chunk_size must be at least 1, but it is 0."),
    ],
)
def test_what_is_not_provided_is_refused(keywords, sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        fla.chunk_kda(*arguments("kda")[0], **keywords)


def test_bad_values_are_refused():
    q, k, v, g, beta = arguments("gdn")[0]
    with pytest.raises(ValueError, match=r"^g must be a natural-log decay of at most 0, but"):
        transformers.torch_chunk_gated_delta_rule(q, k, v, g + 1, beta)
    with pytest.raises(ValueError, match=r"^beta must lie in \[0, 2\], but it contains 3\.0\.$"):
        fla.naive_recurrent_gated_delta_rule(q, k, v, beta + 3 - beta, g)
    with pytest.raises(
        ValueError, match=r"^gv is not supported here, but it was given as a tensor of shape \["
    ):
        fla.fused_recurrent_gated_delta_rule(q, k, v, g, gv=v, beta=beta)
    with pytest.raises(
        ValueError, match=r"^gk must have shape \[1, 12, 2, 4\], but its shape is \[1, 12, 2\]\.$"
    ):
        fla.fused_recurrent_gated_delta_rule(q, k, v, g, gk=g, beta=beta)
    with pytest.raises(ValueError, match=r"^g_gamma must have shape \[2\], but its shape is \[3\]\.$"):
        fla.chunk_simple_gla(q, k, v, g_gamma=torch.zeros(3))
    with pytest.raises(ValueError, match=r"^use_gate_in_kernel needs the raw gate g, and gk must be None\.$"):
        fla.fused_recurrent_gated_delta_rule(
            q, k, v, beta=beta, use_gate_in_kernel=True, A_log=torch.zeros(2)
        )

"""The chunked forms of DPLR, GDN-2 and Mamba-2 as an operator, under compilers, export and dispatch modes."""

import pytest
import torch
from dplr_family import family
from torch.utils.flop_counter import FlopCounterMode

from kernels.dplr import operator

OPERATOR = torch.ops.attnproof.chunked_dplr.default
assert operator


@pytest.fixture(params=["dplr", "gdn2", "mamba2"])
def mechanism(request):
    return family(request.param)


def leaves(inputs):
    return {name: x.clone().requires_grad_() for name, x in inputs.items()}


@pytest.mark.parametrize(("kinds", "gates"), [("ab", 4), ("a", 4), ("", 1)])
@pytest.mark.parametrize("offsets", [None, [0, 4, 4, 11]])
def test_operator_passes_opcheck(kinds, gates, offsets):
    rng = torch.Generator().manual_seed(0)
    batch, sequences = (2, 2) if offsets is None else (1, 3)

    def normal(*shape):
        return (torch.randn(*shape, generator=rng, dtype=torch.float64) / 2).requires_grad_()

    q, k, v, a, b = (normal(batch, 11, 2, width) for width in (4, 4, 3, 4, 4))
    g = -normal(batch, 11, 2, gates).detach().abs()
    optional = [x if name in kinds else None for name, x in (("a", a), ("b", b))]
    cu_seqlens = None if offsets is None else torch.tensor(offsets)
    arguments = (q, k, v, g.requires_grad_(), *optional, normal(sequences, 2, 4, 3), cu_seqlens, 4)
    assert set(torch.library.opcheck(OPERATOR, arguments).values()) == {"SUCCESS"}


def run(kernel, inputs):
    o, state = kernel(**inputs, output_final_state=True, chunk_size=8)
    weights = torch.linspace(-1, 1, o.numel(), dtype=o.dtype).reshape(o.shape)
    return o, state, (weights * o).sum() + state.square().sum()


def test_compiled_equals_eager(mechanism):
    """One graph without breaks, forward and backward; the compiled call has the eager one's chunks."""
    inputs = mechanism.random(16)
    eager, compiled = leaves(inputs), leaves(inputs)
    expected = run(mechanism.chunked, eager)
    function = torch.compile(lambda x: run(mechanism.chunked, x), backend="aot_eager", fullgraph=True)
    found = function(compiled)
    expected[-1].backward()
    found[-1].backward()
    for a, b in zip(found, expected, strict=True):
        assert torch.equal(a, b)
    for name in inputs:
        assert torch.equal(compiled[name].grad, eager[name].grad), name


def test_exported_with_any_length(mechanism):
    class Layer(torch.nn.Module):
        def forward(self, inputs):
            return mechanism.chunked(**inputs, chunk_size=8)[0]

    tokens = torch.export.Dim("tokens", min=2, max=1000)
    shapes = {name: None if name == "initial_state" else {1: tokens} for name in mechanism.random(1)}
    exported = torch.export.export(Layer(), (mechanism.random(16),), dynamic_shapes=(shapes,))
    assert any(node.target is OPERATOR for node in exported.graph.nodes)
    for length in (5, 33):
        inputs = mechanism.random(length)
        o = exported.module()(inputs)
        expected = mechanism.reference(**inputs)[0]
        assert o.shape == expected.shape
        assert (o - expected).abs().max() <= 2**-29 * expected.abs().max()


def test_compiled_call_still_refuses_growing_gates(mechanism):
    function = torch.compile(mechanism.chunked, backend="aot_eager", fullgraph=True)
    inputs = mechanism.random(16)
    inputs["g"] = inputs["g"] + 100
    with pytest.raises(ValueError, match=r"^g must be a natural-log decay of at most 0, but its largest"):
        function(**inputs)


def test_dispatch_modes_see_the_operations_of_both_passes(mechanism):
    inputs = leaves(mechanism.random(16))
    with FlopCounterMode(display=False) as forward:
        _, _, loss = run(mechanism.chunked, inputs)
    with FlopCounterMode(display=False) as backward:
        loss.backward()
    assert forward.get_total_flops() > 0
    assert backward.get_total_flops() > forward.get_total_flops()


def kept_for_backward(kernel, inputs, chunk_size):
    """Bytes that autograd holds between the passes, every storage counted once."""
    sizes = {}

    def pack(x):
        sizes[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        o, _ = kernel(**leaves(inputs), chunk_size=chunk_size)
    assert o.requires_grad
    return sum(sizes.values())


def test_one_state_per_chunk_is_kept_for_the_backward_pass(mechanism):
    """Besides rows of K or V numbers per token, less in all than one state per token."""
    inputs = mechanism.random(128, keys=64)
    for name in {"v", "w", "initial_state"} & inputs.keys():
        inputs[name] = torch.cat([inputs[name]] * 16, -1)
    one_state_per_run = inputs["initial_state"].nbytes
    wide, narrow = (kept_for_backward(mechanism.chunked, inputs, chunk_size) for chunk_size in (64, 16))
    assert narrow - wide == (128 // 16 - 128 // 64) * one_state_per_run
    assert wide < 128 * one_state_per_run


def test_second_derivatives_are_refused(mechanism):
    inputs = leaves(mechanism.random(5))
    o, _ = mechanism.chunked(**inputs)
    (gradient,) = torch.autograd.grad(o.square().sum(), inputs["v"], create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        gradient.sum().backward()

"""The chunked forms under compilers, export and dispatch modes, and as operators of torch.library."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from kernels import operators

OPERATOR = torch.ops.attnproof.chunked_delta_rule.default
assert operators


def leaves(inputs):
    return {name: x.clone().requires_grad_() for name, x in inputs.items()}


@pytest.mark.parametrize("gates", [0, 1, 4])
@pytest.mark.parametrize("offsets", [None, [0, 4, 4, 11]])
def test_operator_passes_opcheck(gates, offsets):
    rng = torch.Generator().manual_seed(0)
    batch, sequences = (2, 2) if offsets is None else (1, 3)

    def normal(*shape):
        return torch.randn(*shape, generator=rng, dtype=torch.float64).requires_grad_()

    q, k, v = (normal(batch, 11, 2, width) for width in (4, 4, 3))
    g = -normal(batch, 11, 2, gates).detach().abs() if gates else None
    beta = normal(batch, 11, 2).detach().sigmoid().requires_grad_()
    cu_seqlens = None if offsets is None else torch.tensor(offsets)
    arguments = (q, k, v, g, beta, normal(sequences, 2, 4, 3), cu_seqlens, 0.3, 4)
    assert set(torch.library.opcheck(OPERATOR, arguments).values()) == {"SUCCESS"}


def run(kernel, inputs):
    o, state = kernel(**inputs, output_final_state=True, chunk_size=8, qk_l2norm=True)
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


def test_strides_of_the_inputs_do_not_matter(mechanism):
    """Heads before tokens in memory, as layers that transpose hand them over; eager and compiled."""
    inputs = mechanism.random(16)
    strided = {
        name: x if name == "initial_state" else x.transpose(1, 2).contiguous().transpose(1, 2)
        for name, x in inputs.items()
    }
    assert not strided["v"].is_contiguous()
    expected, eager, compiled = leaves(inputs), leaves(strided), leaves(strided)
    function = torch.compile(lambda x: run(mechanism.chunked, x), backend="aot_eager", fullgraph=True)
    results = [run(mechanism.chunked, expected), run(mechanism.chunked, eager), function(compiled)]
    for _, _, loss in results:
        loss.backward()
    for found, tensors in zip(results[1:], (eager, compiled), strict=True):
        assert torch.equal(found[0], results[0][0])
        for name in inputs:
            assert torch.equal(tensors[name].grad, expected[name].grad), name


def test_exported_with_any_length(mechanism):
    class Layer(torch.nn.Module):
        def forward(self, inputs):
            return mechanism.chunked(**inputs, chunk_size=8)[0]

    tokens = torch.export.Dim("tokens", min=2, max=1000)
    shapes = {name: None if name == "initial_state" else {1: tokens} for name in mechanism.random(1)}
    exported = torch.export.export(Layer(), (mechanism.random(16),), dynamic_shapes=(shapes,))
    assert any(node.target is OPERATOR for node in exported.graph.nodes)
    for length in (5, 16, 33):
        inputs = mechanism.random(length)
        o = exported.module()(inputs)
        expected = mechanism.reference(**inputs)[0]
        assert o.shape == expected.shape
        assert (o - expected).abs().max() <= 2**-29 * expected.abs().max()


def test_compiled_call_still_refuses_bad_values(mechanism):
    function = torch.compile(mechanism.chunked, backend="aot_eager", fullgraph=True)
    inputs = mechanism.random(16)
    inputs["beta"] = inputs["beta"] + 2.5
    with pytest.raises(ValueError, match=r"^beta must lie in \[0, 2\], but it contains"):
        function(**inputs)


def test_dispatch_modes_see_the_operations_of_both_passes(mechanism):
    inputs = leaves(mechanism.random(16))
    with FlopCounterMode(display=False) as forward:
        _, _, loss = run(mechanism.chunked, inputs)
    with FlopCounterMode(display=False) as backward:
        loss.backward()
    assert forward.get_total_flops() > 0
    assert backward.get_total_flops() > forward.get_total_flops()


def test_second_derivatives_are_refused(mechanism):
    inputs = leaves(mechanism.random(5))
    o, _ = mechanism.chunked(**inputs)
    (gradient,) = torch.autograd.grad(o.square().sum(), inputs["v"], create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        gradient.sum().backward()

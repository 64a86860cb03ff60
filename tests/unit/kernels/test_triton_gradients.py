"""The Triton backward passes, run by Triton's interpreter on the CPU, against the definition."""

from functools import partial
from itertools import pairwise

import pytest
import torch
from agreement import assert_agrees, gradients
from conftest import delta_rule
from test_softmax import OPTIONS, chosen, inputs
from triton_forms import buffers_of_nan, cut, packed, triton_forms

from kernels.softmax.reference import reference_softmax
from kernels.softmax.triton_tiled import triton_softmax

_buffers_of_nan = pytest.fixture(autouse=True)(buffers_of_nan)


@pytest.fixture
def forms(mechanism):
    return triton_forms(mechanism)


def run(form, inputs):
    leaves = {name: x.clone().requires_grad_() for name, x in cut(inputs, heads=1).items()}
    o, state = form(**leaves, output_final_state=True, qk_l2norm=True)
    return {"o": o.detach(), "state": state.detach(), **gradients(leaves, o, state)}


@pytest.mark.parametrize(("tokens", "chunk_size"), [(7, 3), (65, 64)])
def test_gradients_are_those_of_the_reference(forms, tokens, chunk_size):
    form = partial(forms.chunked, chunk_size=chunk_size)
    assert_agrees(run, form, forms.mechanism.reference, forms.mechanism.random(tokens))


def test_gradients_of_the_recurrent_form_are_those_of_the_reference(forms):
    assert_agrees(run, forms.recurrent, forms.mechanism.reference, forms.mechanism.random(5))


@pytest.mark.parametrize("width", [1, 17])
def test_gradients_of_odd_widths(width):
    """Channels that fill no part, one part and a bit; one gate per channel where there is one channel."""
    forms = triton_forms(delta_rule("kda"))
    form = partial(forms.chunked, chunk_size=8)
    assert_agrees(run, form, forms.mechanism.reference, forms.mechanism.random(6, keys=width))


def test_gradients_of_packed_integers_are_exact(forms):
    """Gates are 0 or minus infinity and all else is a small integer or a half of one: no entry is rounded,
    so that every product of the adjoint must be there, once, for two heads and five sequences."""
    inputs = packed(forms.mechanism.integers(25, reset=True))
    cu_seqlens = inputs.pop("cu_seqlens")
    inputs["q"], inputs["k"] = (inputs[name] + torch.tensor([0.0, 1, 0, 0]) for name in ("q", "k"))
    inputs["k"][:, 1::2] = 0
    inputs["beta"] = inputs["beta"] / 2

    def found(form, dtype):
        leaves = {name: x.to(dtype).requires_grad_() for name, x in inputs.items()}
        o, state = form(**leaves, cu_seqlens=cu_seqlens, scale=1.0, output_final_state=True)
        weights = torch.arange(o.numel(), dtype=dtype).reshape(o.shape) % 5 - 2
        ((weights * o).sum() + 3 * state.sum()).backward()
        return {name: leaf.grad.double() for name, leaf in leaves.items()}

    expected = found(forms.mechanism.reference, torch.float64)
    gradient = found(partial(forms.chunked, chunk_size=16), torch.float64)
    for name, x in expected.items():
        assert torch.equal(gradient[name], x), name
        assert x.count_nonzero() > 0, name


def test_a_gate_that_forgets_gets_no_gradient(gated):
    """A decay of 0 stays 0 to first order, and terms of other gates leave no rounding errors behind."""
    inputs = cut(gated.random(70), heads=1)
    inputs["g"][:, 37] = -torch.inf
    inputs["g"][:, 50] = -2000.0
    leaves = {name: x.float().requires_grad_() for name, x in inputs.items()}
    o, state = triton_forms(gated).chunked(**leaves, output_final_state=True, chunk_size=64)
    (o[:, 37:].square().sum() + state.square().sum()).backward()
    gradient = leaves["g"].grad
    assert gradient.isfinite().all()
    assert gradient[:, [37, 50]].count_nonzero() == 0
    assert gradient[:, 38].count_nonzero() > 0
    assert leaves["initial_state"].grad.count_nonzero() == 0


def of_softmax(options, form, tensors):
    leaves = {name: x.clone().requires_grad_() for name, x in tensors.items()}
    return gradients(leaves, *form(**leaves, **options, output_logsumexp=True))


@pytest.mark.parametrize(("tokens", "keys"), [(50, 50), (3, 70)])
def test_decays_across_whole_tiles(tokens, keys):
    """Tiles that lie between those of a query and a key, in a window that is wider than a tile."""
    tensors, options = chosen(inputs(tokens, keys, batch=1, heads=2, key_heads=1), OPTIONS["everything"])
    form = partial(triton_softmax, tile_size=16)
    assert_agrees(partial(of_softmax, options | {"window": 40}), form, reference_softmax, tensors)


@pytest.mark.parametrize("name", ["everything", "both ways, window, slopes"])
def test_gradients_of_packed_sequences_do_not_meet(name):
    """Bit for bit those of each sequence alone, sequences without queries or keys among them."""
    tensors, options = chosen(inputs(40, 60, batch=1, heads=2, key_heads=1), OPTIONS[name])
    bounds = {"q": [0, 3, 3, 21, 40, 40], "k": [0, 5, 9, 58, 58, 60]}
    options |= {"window": 40}
    shared = [x for x in ("slopes", "sink") if x in tensors]

    def found(tensors, weights, **packing):
        leaves = {name: x.clone().requires_grad_() for name, x in tensors.items()}
        o, logsumexp = triton_softmax(**leaves, **packing, **options, tile_size=16, output_logsumexp=True)
        ((weights * o).sum() + logsumexp.where(logsumexp.isfinite(), 0.0).sum()).backward()
        return {name: leaf.grad for name, leaf in leaves.items()}

    weights = torch.linspace(-1, 2, 40 * 2 * 5, dtype=torch.float64).reshape(1, 40, 2, 5)
    packing = {f"cu_seqlens{end}": torch.tensor(bounds[name]) for name, end in (("q", ""), ("k", "_k"))}
    together = found(tensors, weights, **packing)
    totals = {name: torch.zeros_like(tensors[name]) for name in shared}
    for queries, keys in zip(*(pairwise(bounds[name]) for name in "qk"), strict=True):
        rows, columns = slice(*queries), slice(*keys)
        cut = {name: x[:, rows if name == "q" else columns] for name, x in tensors.items() if x.ndim > 2}
        cut["q"] = tensors["q"][:, rows]
        alone = found(cut | {name: tensors[name] for name in shared}, weights[:, rows])
        for part, gradient in alone.items():
            if part in shared:
                totals[part] += gradient
            else:
                assert torch.equal(together[part][:, rows if part == "q" else columns], gradient), part
    for part, total in totals.items():
        torch.testing.assert_close(together[part], total)

"""On small integers the forms agree bit for bit, forward and backward, at every length and chunk size."""

import pytest
import torch

from kernels import chunkwise

LENGTHS = [0, 1, 15, 16, 17, 63, 64, 65]
CHUNKS = [1, 2, 3, 16, 17, 64, 200]


def cast(inputs, dtype):
    state_dtype = torch.float64 if dtype == torch.float64 else torch.float32
    return {name: x.to(state_dtype if name == "initial_state" else dtype) for name, x in inputs.items()}


def assert_same(outcome, expected, dtype):
    for result, exact in zip(outcome, expected, strict=True):
        assert torch.equal(result.double(), exact)
    assert outcome[0].dtype == dtype
    assert outcome[1].dtype == (torch.float64 if dtype == torch.float64 else torch.float32)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("tokens", LENGTHS)
@pytest.mark.parametrize(("keys", "reset"), [(16, False), (4, True)], ids=["gates-0", "gates-0-or-minus-inf"])
def test_forms_agree_bit_for_bit(mechanism, tokens, keys, reset, dtype):
    inputs = cast(mechanism.integers(tokens, keys=keys, reset=reset), dtype)
    expected = mechanism.reference(**inputs, output_final_state=True)
    assert expected[0].dtype == expected[1].dtype == torch.float64
    assert_same(mechanism.recurrent(**inputs, output_final_state=True), expected, dtype)
    for chunk_size in CHUNKS:
        chunked = mechanism.chunked(**inputs, output_final_state=True, chunk_size=chunk_size)
        assert_same(chunked, expected, dtype)


@pytest.mark.parametrize("elements", [1, 1024, chunkwise._GROUP_ELEMENTS])
@pytest.mark.parametrize("chunk_size", [1, 3, 16, 64])
def test_gradients_agree_bit_for_bit(mechanism, chunk_size, elements, monkeypatch):
    # Chunks are worked on in groups that stay in a cache; inputs this small would all lie in one.
    monkeypatch.setattr(chunkwise, "_GROUP_ELEMENTS", elements)
    inputs = mechanism.integers(21)

    def gradients(kernel, **options):
        leaves = {name: x.clone().requires_grad_() for name, x in inputs.items()}
        o, state = kernel(**leaves, output_final_state=True, **options)
        weights = torch.arange(o.numel(), dtype=torch.float64).reshape(o.shape) % 5 - 2
        ((weights * o).sum() + 3 * state.sum()).backward()
        return {"o": o.detach(), "state": state.detach()} | {name: leaf.grad for name, leaf in leaves.items()}

    expected = gradients(mechanism.reference)
    chunked = gradients(mechanism.chunked, chunk_size=chunk_size)
    recurrent = gradients(mechanism.recurrent)
    for name, exact in expected.items():
        assert exact.count_nonzero() > 0
        assert torch.equal(chunked[name], exact), name
        assert torch.equal(recurrent[name], exact), name


def test_grouped_value_heads_read_their_own_query_head(mechanism):
    inputs = mechanism.integers(9)
    together, _ = mechanism.reference(**inputs)
    for value_head in range(4):
        head = value_head // 2
        alone = {name: inputs[name][:, :, head : head + 1] for name in ("q", "k")}
        own = inputs.keys() & {"v", "g", "beta"}
        alone |= {name: inputs[name][:, :, value_head : value_head + 1] for name in own}
        alone["initial_state"] = inputs["initial_state"][:, value_head : value_head + 1]
        o, state = mechanism.reference(**alone)
        assert state is None
        assert torch.equal(o[:, :, 0], together[:, :, value_head])


def test_default_scale_and_state(mechanism):
    inputs = mechanism.integers(9)
    for kernel in (mechanism.reference, mechanism.recurrent, mechanism.chunked):
        assert torch.equal(kernel(**inputs)[0], kernel(**inputs, scale=0.5)[0])
        assert torch.equal(kernel(**inputs)[0], kernel(**inputs, scale=4.0)[0] / 8)
        zero = inputs | {"initial_state": torch.zeros_like(inputs["initial_state"])}
        assert torch.equal(kernel(**(inputs | {"initial_state": None}))[0], kernel(**zero)[0])


@pytest.mark.parametrize("tokens", [0, 5])
def test_inputs_are_neither_changed_nor_shared(mechanism, tokens):
    inputs = mechanism.integers(tokens)
    before = {name: x.clone() for name, x in inputs.items()}
    for kernel in (mechanism.reference, mechanism.recurrent, mechanism.chunked):
        o, state = kernel(**inputs, output_final_state=True)
        o.add_(1)
        state.add_(1)
        assert all(torch.equal(x, before[name]) for name, x in inputs.items())


@pytest.mark.parametrize("empty", ["batch", "values"])
def test_empty_batch_and_empty_values(mechanism, empty):
    inputs = mechanism.integers(5)
    if empty == "batch":
        inputs = {name: x[:0] for name, x in inputs.items()}
    else:
        inputs |= {name: inputs[name][..., :0] for name in ("v", "initial_state")}
    for kernel in (mechanism.reference, mechanism.recurrent, mechanism.chunked):
        o, state = kernel(**inputs, output_final_state=True)
        assert o.shape == inputs["v"].shape
        assert state.shape == inputs["initial_state"].shape

"""Sequences packed along the token axis give what each gives by itself, forward and backward."""

import re
from itertools import pairwise

import pytest
import torch

OFFSETS = [0, 0, 5, 22, 22, 23, 40]
CHUNKS = [1, 3, 16, 17, 64]


def packed(inputs, offsets):
    """The first run of the batch as packed sequences, with an initial state for each."""
    sequences = len(offsets) - 1
    tokens = {name: x[:1] for name, x in inputs.items()}
    states = torch.stack([(n + 1) * inputs["initial_state"][n % 2] for n in range(sequences)])
    return tokens | {"initial_state": states, "cu_seqlens": torch.tensor(offsets)}


def separate(kernel, inputs, **options):
    """Each sequence in a call of its own."""
    offsets = inputs["cu_seqlens"].tolist()
    outputs, states = [], []
    for n, (start, end) in enumerate(pairwise(offsets)):
        part = {
            name: x[:, start:end] for name, x in inputs.items() if name not in ("initial_state", "cu_seqlens")
        }
        part["initial_state"] = inputs["initial_state"][n : n + 1]
        o, state = kernel(**part, output_final_state=True, **options)
        outputs.append(o)
        states.append(state)
    return torch.cat(outputs, 1), torch.cat(states)


def every_form(mechanism):
    yield mechanism.reference, {}
    yield mechanism.recurrent, {}
    for chunk_size in CHUNKS:
        yield mechanism.chunked, {"chunk_size": chunk_size}


def test_packed_equals_separate_calls(mechanism):
    inputs = packed(mechanism.integers(40), OFFSETS)
    for kernel, options in every_form(mechanism):
        o, state = kernel(**inputs, output_final_state=True, **options)
        expected = separate(kernel, inputs, **options)
        assert torch.equal(o, expected[0])
        assert torch.equal(state, expected[1])
        assert not torch.equal(o, kernel(**(inputs | {"cu_seqlens": torch.tensor([0, 40] + [40] * 5)}))[0])


def test_packed_equals_separate_calls_on_random_numbers(mechanism):
    """Token by token, bit for bit; in chunks a short sequence alone has smaller matrices."""
    inputs = packed(mechanism.random(40), OFFSETS)
    for kernel in (mechanism.reference, mechanism.recurrent):
        o, state = kernel(**inputs, output_final_state=True)
        expected = separate(kernel, inputs)
        assert torch.equal(o, expected[0])
        assert torch.equal(state, expected[1])


@pytest.mark.parametrize("chunk_size", CHUNKS)
def test_packed_chunks_err_by_rounding_only(mechanism, chunk_size):
    """A rounding error shrinks with the unit roundoff from float32 to float64, by 2^-29; a wrong formula
    errs alike in both. The line between the two hypotheses is their geometric mean, 2^-14.5."""
    single = packed({name: x.float() for name, x in mechanism.random(40).items()}, OFFSETS)
    double = {name: x.double() if x.is_floating_point() else x for name, x in single.items()}
    exact = mechanism.reference(**double, output_final_state=True)
    found = [mechanism.chunked(**x, output_final_state=True, chunk_size=chunk_size) for x in (single, double)]
    for expected, in_single, in_double in zip(exact, *found, strict=True):
        error = (in_double - expected).abs().max()
        assert error <= 2**-14.5 * (in_single - expected).abs().max()


@pytest.mark.parametrize("chunk_size", CHUNKS)
def test_packed_gradients_equal_separate_ones(mechanism, chunk_size):
    inputs = packed(mechanism.integers(40), OFFSETS)
    cu_seqlens = inputs.pop("cu_seqlens")

    def gradients(run):
        leaves = {name: x.clone().requires_grad_() for name, x in inputs.items()}
        o, state = run(leaves | {"cu_seqlens": cu_seqlens})
        weights = torch.arange(o.numel(), dtype=torch.float64).reshape(o.shape) % 5 - 2
        ((weights * o).sum() + 3 * state.sum()).backward()
        return {name: leaf.grad for name, leaf in leaves.items()}

    def together(leaves):
        return mechanism.chunked(**leaves, chunk_size=chunk_size, output_final_state=True)

    alone = gradients(lambda leaves: separate(mechanism.reference, leaves))
    for name, gradient in gradients(together).items():
        assert gradient.count_nonzero() > 0
        assert torch.equal(gradient, alone[name]), name


def test_nothing_but_empty_sequences(mechanism):
    inputs = packed(mechanism.integers(0), [0, 0, 0])
    for kernel, options in every_form(mechanism):
        o, state = kernel(**inputs, output_final_state=True, **options)
        assert o.shape == inputs["v"].shape
        assert torch.equal(state, inputs["initial_state"])


@pytest.mark.parametrize(
    ("offsets", "sentence"),
    [
        ([1, 40], "cu_seqlens must start at 0, but it starts at 1."),
        ([0, 9, 7, 40], "cu_seqlens must not decrease, but it goes from 9 to 7."),
        ([0, 39], "cu_seqlens must end at the number of tokens 40, but it ends at 39."),
        ([0, 41], "cu_seqlens must end at the number of tokens 40, but it ends at 41."),
        ([0], "cu_seqlens must hold at least 2 offsets, but it holds 1."),
        (
            [[0, 40]],
            "cu_seqlens must be a 1-dimensional tensor of torch.int32 or torch.int64, but it is torch.int64 "
            "of shape [1, 2].",
        ),
        (
            [0.0, 40.0],
            "cu_seqlens must be a 1-dimensional tensor of torch.int32 or torch.int64, but it is "
            "torch.float32 of shape [2].",
        ),
    ],
)
def test_bad_offsets_are_refused(mechanism, offsets, sentence):
    inputs = packed(mechanism.integers(40), [0, 40])
    inputs["cu_seqlens"] = torch.tensor(offsets)
    if len(offsets) != 2:
        del inputs["initial_state"]
    for kernel, options in every_form(mechanism):
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
            kernel(**inputs, **options)


def test_batch_must_be_one(mechanism):
    inputs = mechanism.integers(40) | {"cu_seqlens": torch.tensor([0, 20, 40])}
    sentence = "q must have batch size 1 when cu_seqlens is given, but its batch size is 2."
    for kernel, options in every_form(mechanism):
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
            kernel(**inputs, **options)


def test_one_state_per_sequence(mechanism):
    inputs = packed(mechanism.integers(40), [0, 20, 40])
    inputs["initial_state"] = inputs["initial_state"][:1]
    sentence = "initial_state must have shape [2, 4, 4, 3], but its shape is [1, 4, 4, 3]."
    for kernel, options in every_form(mechanism):
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
            kernel(**inputs, **options)

"""DPLR, GDN-2 and Mamba-2 on small integers: all forms and gradients equal the definition to the last bit."""

from fractions import Fraction
from importlib import import_module
from itertools import pairwise

import pytest
import torch
from dplr_family import family, packed

from kernels import chunkwise
from verify.numbers.exact import Exact

CHUNKS = [1, 2, 3, 16, 17, 64, 200]
OFFSETS = [0, 0, 5, 22, 22, 23, 40]


@pytest.fixture(params=["dplr", "gdn2", "mamba2"])
def mechanism(request):
    return family(request.param)


def every_form(mechanism):
    yield mechanism.reference, {}
    yield mechanism.recurrent, {}
    for chunk_size in CHUNKS:
        yield mechanism.chunked, {"chunk_size": chunk_size}


def defined(mechanism, x, scale):
    """(outputs, final state) of one head by the definition in exact rationals, as lists of Fractions; x holds
    nested lists of numbers per input, with the decay e^g as alpha."""
    numbers = Exact()

    def columns(name):
        return numbers.row_vectors(numbers.matrix([[Fraction(e) for e in row] for row in x[name]]))

    alpha = columns("alpha")
    if mechanism.name == "mamba2":
        alpha = [numbers.entry(column, 0, 0) for column in alpha]
    extra = [columns(name) for name in mechanism.extra]
    tail = [*extra, alpha] if mechanism.name == "dplr" else [alpha, *extra]
    state = numbers.matrix([[Fraction(e) for e in row] for row in x["initial_state"]])
    recurrence = import_module(f"derivations.{mechanism.name}.definition").recurrence
    outputs, final = recurrence(
        numbers, *map(columns, ("q", "k", "v")), *tail, scale=numbers.number(Fraction(scale)), state=state
    )
    return tuple(
        [[Fraction(int(e.p), int(e.q)) for e in row] for row in numbers.to_lists(matrix)]
        for matrix in (numbers.stack_rows(outputs), final)
    )


def one_head(inputs, head):
    """Nested lists of what one value head of the first run reads, with alpha = e^g."""
    x = {name: inputs[name][0, :, head // 2].tolist() for name in ("q", "k")}
    own = inputs.keys() - {"q", "k", "g", "initial_state"}
    x |= {name: inputs[name][0, :, head].tolist() for name in own}
    alpha = inputs["g"][0, :, head].exp()
    x["alpha"] = (alpha if alpha.ndim == 2 else alpha.unsqueeze(-1)).tolist()
    return x | {"initial_state": inputs["initial_state"][0, head].tolist()}


def test_reference_is_the_definition(mechanism):
    inputs = mechanism.integers(12)
    o, state = mechanism.reference(**inputs, scale=0.5, output_final_state=True)
    for head in range(4):
        outputs, final = defined(mechanism, one_head(inputs, head), 0.5)
        assert [[Fraction(e) for e in row] for row in o[0, :, head].tolist()] == outputs
        assert [[Fraction(e) for e in row] for row in state[0, head].tolist()] == final


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("tokens", [0, 1, 15, 16, 17, 64, 65])
def test_forms_agree_bit_for_bit(mechanism, tokens, dtype):
    inputs = mechanism.integers(tokens)
    o, state = mechanism.reference(**inputs, output_final_state=True)
    working = torch.float64 if dtype == torch.float64 else torch.float32
    cast = {name: x.to(working if name == "initial_state" else dtype) for name, x in inputs.items()}
    for kernel, options in every_form(mechanism):
        found, final = kernel(**cast, output_final_state=True, **options)
        own = torch.float64 if kernel is mechanism.reference else dtype
        assert found.dtype == own
        assert torch.equal(found, o.to(own))
        assert final.dtype == (torch.float64 if kernel is mechanism.reference else working)
        assert torch.equal(final.double(), state)


def test_packed_equals_separate_calls(mechanism):
    inputs = packed(mechanism.integers(40), OFFSETS)
    for kernel, options in every_form(mechanism):
        o, state = kernel(**inputs, output_final_state=True, **options)
        for n, (start, end) in enumerate(pairwise(OFFSETS)):
            tokens = inputs.keys() - {"initial_state", "cu_seqlens"}
            part = {name: inputs[name][:, start:end] for name in tokens}
            part["initial_state"] = inputs["initial_state"][n : n + 1]
            alone, final = kernel(**part, output_final_state=True, **options)
            assert torch.equal(o[:, start:end], alone)
            assert torch.equal(state[n : n + 1], final)
        assert not torch.equal(o, kernel(**(inputs | {"cu_seqlens": torch.tensor([0, 40] + [40] * 5)}))[0])


@pytest.mark.parametrize("at", [0, 1, 16, 30])
def test_resuming_anywhere_is_exact(mechanism, at):
    inputs = mechanism.integers(40)
    for kernel, options in every_form(mechanism):
        o, state = kernel(**inputs, output_final_state=True, **options)
        first, second = (
            {name: x if name == "initial_state" else x[:, rows] for name, x in inputs.items()}
            for rows in (slice(at), slice(at, None))
        )
        o_first, between = kernel(**first, output_final_state=True, **options)
        second["initial_state"] = between
        o_second, final = kernel(**second, output_final_state=True, **options)
        assert torch.equal(torch.cat([o_first, o_second], dim=1), o)
        assert torch.equal(final, state)


def gradients(kernel, inputs, **options):
    leaves = {name: x.clone().requires_grad_() for name, x in inputs.items() if x.is_floating_point()}
    o, state = kernel(**(inputs | leaves), output_final_state=True, **options)
    weights = torch.arange(o.numel(), dtype=torch.float64).reshape(o.shape) % 5 - 2
    ((weights * o).sum() + 3 * state.sum()).backward()
    return {"o": o.detach(), "state": state.detach()} | {name: leaf.grad for name, leaf in leaves.items()}


@pytest.mark.parametrize("elements", [1, 1024, chunkwise._GROUP_ELEMENTS])
@pytest.mark.parametrize("offsets", [None, OFFSETS])
def test_gradients_agree_bit_for_bit(mechanism, offsets, elements, monkeypatch):
    # Chunks are worked on in groups that stay in a cache; inputs this small would all lie in one.
    monkeypatch.setattr(chunkwise, "_GROUP_ELEMENTS", elements)
    inputs = mechanism.integers(40, seed=1)
    if offsets is not None:
        inputs = packed(inputs, offsets)
    expected = gradients(mechanism.reference, inputs)
    for kernel, options in every_form(mechanism):
        found = gradients(kernel, inputs, **options)
        for name, exact in expected.items():
            assert exact.count_nonzero() > 0
            assert torch.equal(found[name], exact), (name, options)


@pytest.mark.parametrize("chunk_size", [1, 2, 8])
def test_gradients_are_the_exact_derivative(mechanism, chunk_size):
    """An entry enters outputs and state with degree 2 at most, so that its central difference, in exact
    rationals, is its derivative. A gate's derivative is alpha times that of its decay alpha."""
    inputs = mechanism.integers(4, keys=2, seed=3)
    o, _ = mechanism.reference(**inputs)
    weights = (torch.arange(o.numel(), dtype=torch.float64).reshape(o.shape) % 5 - 2)[0]
    leaves = {name: x.clone().requires_grad_() for name, x in inputs.items()}
    o, state = mechanism.chunked(**leaves, scale=1.0, output_final_state=True, chunk_size=chunk_size)
    # One value head alone, so that the shared queries and keys have gradients from it only.
    ((weights[:, 1] * o[0, :, 1]).sum() + 3 * state[0, 1].sum()).backward()

    def loss(x):
        outputs, final = defined(mechanism, x, 1)
        total = 3 * sum(map(sum, final))
        for row, weight in zip(outputs, weights[:, 1].tolist(), strict=True):
            total += sum(e * Fraction(w) for e, w in zip(row, weight, strict=True))
        return total

    x = one_head(inputs, 1)
    found = {name: leaves[name].grad[0, :, 0] for name in ("q", "k")}
    found |= {name: leaves[name].grad[0, :, 1] for name in ("v", *mechanism.extra)}
    found |= {"alpha": leaves["g"].grad[0, :, 1], "initial_state": leaves["initial_state"].grad[0, 1]}
    for name, gradient in found.items():
        rows = gradient.reshape(len(x[name]), -1).tolist()
        for i, row in enumerate(rows):
            for j, entry in enumerate(row):
                original = x[name][i][j]
                sides = []
                for step in (1, -1):
                    x[name][i][j] = original + step
                    sides.append(loss(x))
                x[name][i][j] = original
                slope = (sides[0] - sides[1]) / 2
                assert Fraction(entry) == (original * slope if name == "alpha" else slope), (name, i, j)


@pytest.mark.parametrize("empty", ["batch", "values"])
def test_empty_batch_and_empty_values(mechanism, empty):
    inputs = mechanism.integers(5)
    if empty == "batch":
        inputs = {name: x[:0] for name, x in inputs.items()}
    else:
        inputs |= {name: inputs[name][..., :0] for name in {"v", "w", "initial_state"} & inputs.keys()}
    for kernel, options in every_form(mechanism):
        o, state = kernel(**inputs, output_final_state=True, **options)
        assert o.shape == inputs["v"].shape
        assert state.shape == inputs["initial_state"].shape


@pytest.mark.parametrize("tokens", [0, 5])
def test_inputs_are_neither_changed_nor_shared(mechanism, tokens):
    inputs = mechanism.integers(tokens)
    before = {name: x.clone() for name, x in inputs.items()}
    for kernel, options in every_form(mechanism):
        o, state = kernel(**inputs, output_final_state=True, **options)
        o.add_(1)
        state.add_(1)
        assert all(torch.equal(x, before[name]) for name, x in inputs.items())

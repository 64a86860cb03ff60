"""The Triton forms of the delta rule, run by Triton's interpreter on the CPU, against the definition.

The interpreter runs a kernel's programs one after another in NumPy arithmetic. What is tested is the
algorithm, its indexing and its precision; compilers and hardware are tested by tests/gpu.
"""

import re
from functools import partial
from itertools import pairwise

import pytest
import torch
from test_delta_rule_bounds import chunked_bound, excess, recurrent_bound, rounded, unit_roundoff
from triton_forms import OFFSETS, buffers_of_nan, cut, packed, triton_forms


@pytest.fixture
def forms(mechanism):
    return triton_forms(mechanism)


_buffers_of_nan = pytest.fixture(autouse=True)(buffers_of_nan)


def judge(forms, inputs, dtype, chunk_size):
    """The larger excess of the two forms over the bounds of the torch forms, whose operations they share."""
    inputs = rounded(inputs, dtype)
    u, exact = unit_roundoff(dtype), unit_roundoff(torch.float64)
    expected = forms.mechanism.reference(**inputs, output_final_state=True)
    chunked = forms.chunked(**inputs, output_final_state=True, chunk_size=chunk_size)
    bounds = [
        a + b
        for a, b in zip(chunked_bound(inputs, u, chunk_size), recurrent_bound(inputs, exact), strict=True)
    ]
    recurrent = forms.recurrent(**inputs, output_final_state=True)
    return max(
        excess(chunked, expected, bounds),
        excess(recurrent, expected, recurrent_bound(inputs, u + exact)),
    )


@pytest.mark.parametrize(
    ("tokens", "chunk_size", "dtype"),
    [
        (1, 64, torch.float32),
        (17, 3, torch.float32),
        (17, 16, torch.float64),
        (63, 64, torch.float32),
        (65, 64, torch.float64),
        (65, 32, torch.float32),
    ],
)
def test_within_the_bounds_of_the_torch_forms(forms, tokens, chunk_size, dtype):
    assert judge(forms, cut(forms.mechanism.random(tokens), heads=1), dtype, chunk_size) <= 1


@pytest.mark.parametrize("gate", [-5.0, -1000.0, -torch.inf])
def test_gates_of_any_size(forms, gate):
    """All gates alike, and one such gate among weak ones, where running sums would lose the weak ones."""
    if not forms.mechanism.gated:
        return
    inputs = cut(forms.mechanism.random(33, gate=-1e-3), heads=1)
    inputs["g"][:, 20:22] = gate
    assert judge(forms, inputs, torch.float32, 32) <= 1
    inputs["g"][:] = gate
    assert judge(forms, inputs, torch.float32, 32) <= 1


@pytest.mark.parametrize("beta", [1.0, 2.0])
def test_repeated_key(forms, beta):
    """Where powers of the triangular matrix grow without bound and its inverse does not."""
    inputs = cut(forms.mechanism.random(64, gate=-1e-4, beta=beta), heads=1)
    inputs["k"] = inputs["k"][:, :1].expand_as(inputs["k"])
    assert judge(forms, inputs, torch.float32, 64) <= 1


def test_packed_integers_are_exact(forms):
    """Every intermediate is a small integer times a power of two; gates are 0 or minus infinity."""
    inputs = {
        name: x.float() if x.is_floating_point() else x
        for name, x in packed(forms.mechanism.integers(25, reset=True)).items()
    }
    o, state = forms.mechanism.reference(**inputs, output_final_state=True)
    for form in (forms.recurrent, partial(forms.chunked, chunk_size=16)):
        found = form(**inputs, output_final_state=True)
        assert torch.equal(found[0], o.float())
        assert torch.equal(found[1], state.float())


def test_packed_sequences_do_not_meet(forms):
    """Token by token bit for bit; in chunks too, as all chunks have as many rows."""
    inputs = packed(forms.mechanism.random(25))
    tokens = {name: x for name, x in inputs.items() if name not in ("initial_state", "cu_seqlens")}
    for form in (forms.recurrent, partial(forms.chunked, chunk_size=16)):
        o, state = form(**inputs, output_final_state=True)
        for n, (start, end) in enumerate(pairwise(OFFSETS)):
            part = {name: x[:, start:end] for name, x in tokens.items()}
            part["initial_state"] = inputs["initial_state"][n : n + 1]
            alone = form(**part, output_final_state=True)
            assert torch.equal(o[:, start:end], alone[0])
            assert torch.equal(state[n : n + 1], alone[1])


def test_outputs_do_not_depend_on_later_tokens(forms):
    inputs = cut(rounded(forms.mechanism.random(24), torch.float32), heads=1)
    o, _ = forms.chunked(**inputs, chunk_size=16)
    for name in inputs.keys() - {"initial_state"}:
        inputs[name] = torch.cat([inputs[name][:, :5], inputs[name][:, 5:].flip(1)], 1)
    changed, _ = forms.chunked(**inputs, chunk_size=16)
    assert torch.equal(o[:, :5], changed[:, :5])
    assert not torch.equal(o[:, 5:], changed[:, 5:])


def test_half_precision_keeps_a_float32_state(forms):
    """Inputs are widened before the kernel, so the outputs are those of the widened inputs, rounded."""
    half = cut(rounded(forms.mechanism.random(17), torch.bfloat16), heads=1)
    half["initial_state"] = half["initial_state"].float()
    wide = rounded(half, torch.float32)
    for form in (forms.recurrent, partial(forms.chunked, chunk_size=16)):
        o, state = form(**half, output_final_state=True)
        expected, expected_state = form(**wide, output_final_state=True)
        assert torch.equal(o, expected.bfloat16())
        assert torch.equal(state, expected_state)


def test_strides_do_not_matter(forms):
    """Every tensor with its last two axes swapped in memory; results are contiguous."""
    inputs = cut(forms.mechanism.random(5), heads=2)
    strided = {name: x.transpose(-1, -2).contiguous().transpose(-1, -2) for name, x in inputs.items()}
    for form in (forms.recurrent, partial(forms.chunked, chunk_size=16)):
        found = form(**strided, output_final_state=True)
        for a, b in zip(found, form(**inputs, output_final_state=True), strict=True):
            assert torch.equal(a, b)
            assert a.is_contiguous()


@pytest.mark.parametrize("tokens", [0, 3])
def test_nothing_to_do(forms, tokens):
    """No tokens, and no values."""
    inputs = forms.mechanism.random(tokens)
    for form in (forms.recurrent, forms.chunked):
        if tokens == 0:
            o, state = form(**inputs, output_final_state=True)
            assert torch.equal(state, inputs["initial_state"])
        else:
            empty = inputs | {name: inputs[name][..., :0] for name in ("v", "initial_state")}
            o, state = form(**empty, output_final_state=True)
            assert state.shape == (2, 2, 8, 0)
        assert o.shape == (2, tokens, 2, 5 if tokens == 0 else 0)


def refuses(sentence, form, inputs, **options):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        form(**inputs, **options)


def test_bad_arguments_are_refused(forms):
    inputs = forms.mechanism.random(3)
    for size in (0, -1, 65):
        sentence = f"chunk_size must be from 1 to 64 in a Triton form, but it is {size}."
        refuses(sentence, forms.chunked, inputs, chunk_size=size)
    refuses("precision must be one of ieee, tf32x3, but it is tf32.", forms.chunked, inputs, precision="tf32")
    wide = forms.mechanism.random(1, keys=129)
    sentence = "q must have at most 128 channels in a Triton form, but it has 129."
    for form in (forms.recurrent, forms.chunked):
        refuses(sentence, form, wide)
    inputs["beta"] = inputs["beta"] + 3
    with pytest.raises(ValueError, match=r"^beta must lie in \[0, 2\], but it contains"):
        forms.chunked(**inputs)

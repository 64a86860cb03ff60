"""Bad arguments are refused in one sentence that names the argument and its value."""

import re

import pytest
import torch

SHAPES = [
    ("q", lambda x: x[0], "q must have the 4 dimensions [B, T, H, K], but its shape is [5, 2, 4]."),
    ("v", lambda x: x[0], "v must have the 4 dimensions [B, T, HV, V], but its shape is [5, 4, 3]."),
    (
        "q",
        lambda x: x[..., :0],
        "q must have at least one head and one key channel, but its shape is [2, 5, 2, 0].",
    ),
    ("v", lambda x: x[:, :, :3], "v must have a multiple of q's 2 heads, but it has 3."),
    ("k", lambda x: x[..., :3], "k must have shape [2, 5, 2, 4], but its shape is [2, 5, 2, 3]."),
    ("v", lambda x: x[:, :4], "v must have shape [2, 5, 4, 3], but its shape is [2, 4, 4, 3]."),
    ("beta", lambda x: x[:1], "beta must have shape [2, 5, 4], but its shape is [1, 5, 4]."),
    (
        "initial_state",
        lambda x: x.mT,
        "initial_state must have shape [2, 4, 4, 3], but its shape is [2, 4, 3, 4].",
    ),
]
TYPES = [
    ("q", lambda x: x.long(), "q must have a real floating-point dtype, but its dtype is torch.int64."),
    (
        "k",
        lambda x: x.float(),
        "k must be torch.float64 when q is torch.float64, but its dtype is torch.float32.",
    ),
    (
        "g",
        lambda x: x.half(),
        "g must be torch.float64 when q is torch.float64, but its dtype is torch.float16.",
    ),
    (
        "initial_state",
        lambda x: x.float(),
        "initial_state must be torch.float64 when q is torch.float64, but its dtype is torch.float32.",
    ),
    ("beta", lambda x: x.to("meta"), "beta must be on q's device cpu, but it is on meta."),
]
VALUES = [
    ("g", lambda x: x + 0.25, "g must be a natural-log decay of at most 0, but its largest entry is 0.25."),
    ("beta", lambda x: x + 2.5, "beta must lie in [0, 2], but it contains 2.5."),
    ("beta", lambda x: x * 0 - 0.5, "beta must lie in [0, 2], but it contains -0.5."),
]


def every_form(mechanism):
    return mechanism.reference, mechanism.recurrent, mechanism.chunked


@pytest.mark.parametrize(("name", "spoil", "sentence"), SHAPES + TYPES + VALUES)
def test_bad_tensors_are_refused(mechanism, name, spoil, sentence):
    inputs = mechanism.integers(5)
    if name not in inputs:
        return
    inputs["beta"] = torch.zeros_like(inputs["beta"])
    inputs[name] = spoil(inputs[name])
    for kernel in every_form(mechanism):
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
            kernel(**inputs)


def test_gate_of_the_other_gated_is_refused(gated):
    inputs = gated.integers(5)
    inputs["g"] = inputs["g"][..., 0] if gated.gate_per_channel else inputs["g"].unsqueeze(-1)
    for kernel in every_form(gated):
        with pytest.raises(ValueError, match=r"^g must have shape \[2, 5, 4"):
            kernel(**inputs)


@pytest.mark.parametrize("scale", [float("nan"), float("inf")])
def test_scale_must_be_finite(mechanism, scale):
    for kernel in every_form(mechanism):
        with pytest.raises(ValueError, match=rf"^scale must be a finite number, but it is {scale}\.$"):
            kernel(**mechanism.integers(5), scale=scale)


@pytest.mark.parametrize("chunk_size", [0, -3])
def test_chunk_size_must_be_positive(mechanism, chunk_size):
    with pytest.raises(ValueError, match=rf"^chunk_size must be at least 1, but it is {chunk_size}\.$"):
        mechanism.chunked(**mechanism.integers(5), chunk_size=chunk_size)


def test_half_inputs_take_single_precision_gates_and_strengths(mechanism):
    inputs = mechanism.integers(5)
    mixed = {name: x.bfloat16() if name in ("q", "k", "v") else x.float() for name, x in inputs.items()}
    expected = mechanism.reference(**inputs)[0]
    for kernel in every_form(mechanism):
        assert torch.equal(kernel(**mixed)[0].double(), expected)


def test_nan_propagates_to_its_run_and_no_other(mechanism):
    inputs = mechanism.integers(20)
    inputs["v"][1, 7] = torch.nan
    for kernel in every_form(mechanism):
        o, state = kernel(**inputs, output_final_state=True)
        assert o[1].isnan().any()
        assert o[0].isfinite().all()
        assert state[0].isfinite().all()

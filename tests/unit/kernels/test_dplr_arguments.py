"""Bad arguments of DPLR, GDN-2 and Mamba-2 are refused in one sentence that names argument and value."""

import re

import pytest
import torch
from dplr_family import family

CASES = [
    ("q", lambda x: x[0], "q must have the 4 dimensions [B, T, H, K], but its shape is [5, 2, 4]."),
    ("v", lambda x: x[0, 0], "v must have the 4 dimensions [B, T, HV, V], but its shape is [4, 3]."),
    ("k", lambda x: x[..., :3], "k must have shape [2, 5, 2, 4], but its shape is [2, 5, 2, 3]."),
    ("v", lambda x: x[:, :, :3], "v must have a multiple of q's 2 heads, but it has 3."),
    (
        "k",
        lambda x: x.int(),
        "k must be torch.float64 when q is torch.float64, but its dtype is torch.int32.",
    ),
    ("a", lambda x: x[:, :, :2], "a must have shape [2, 5, 4, 4], but its shape is [2, 5, 2, 4]."),
    ("b", lambda x: x[..., :1], "b must have shape [2, 5, 4, 4], but its shape is [2, 5, 4, 1]."),
    ("w", lambda x: x.mT, "w must have shape [2, 5, 4, 3], but its shape is [2, 5, 3, 4]."),
    (
        "b",
        lambda x: x.half(),
        "b must be torch.float64 when v is torch.float64, but its dtype is torch.float16.",
    ),
    ("b", lambda x: x.to("meta"), "b must be on v's device cpu, but it is on meta."),
    ("g", lambda x: x + 0.5, "g must be a natural-log decay of at most 0, but its largest entry is 0.5."),
    (
        "initial_state",
        lambda x: x.mT,
        "initial_state must have shape [2, 4, 4, 3], but its shape is [2, 4, 3, 4].",
    ),
]
GDN2 = [
    ("b", lambda x: x - 1.5, "b must lie in [0, 2], but it contains -1.5."),
    ("w", lambda x: x + 2.5, "w must lie in [0, 2], but it contains 2.5."),
]


@pytest.fixture(params=["dplr", "gdn2", "mamba2"])
def mechanism(request):
    return family(request.param)


def every_form(mechanism):
    return mechanism.reference, mechanism.recurrent, mechanism.chunked


def assert_refused(mechanism, inputs, sentence, **options):
    for kernel in every_form(mechanism):
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
            kernel(**inputs, **options)


@pytest.mark.parametrize(("name", "spoil", "sentence"), CASES)
def test_bad_tensors_are_refused(mechanism, name, spoil, sentence):
    inputs = mechanism.integers(5)
    if name in inputs:
        inputs[name] = spoil(inputs[name])
        assert_refused(mechanism, inputs, sentence)


@pytest.mark.parametrize(("name", "spoil", "sentence"), GDN2)
def test_gates_of_gdn2_are_in_their_range(name, spoil, sentence):
    mechanism = family("gdn2")
    inputs = mechanism.integers(5)
    inputs["b"], inputs["w"] = torch.zeros_like(inputs["b"]), torch.zeros_like(inputs["w"])
    inputs[name] = spoil(inputs[name])
    assert_refused(mechanism, inputs, sentence)


def test_bad_options_are_refused(mechanism):
    inputs = mechanism.integers(5)
    assert_refused(mechanism, inputs, "scale must be a finite number, but it is nan.", scale=float("nan"))
    with pytest.raises(ValueError, match=r"^chunk_size must be at least 1, but it is 0\.$"):
        mechanism.chunked(**inputs, chunk_size=0)
    one = {name: x[:1] for name, x in inputs.items()}
    for offsets, sentence in (
        ([0, 4], "cu_seqlens must end at the number of tokens 5, but it ends at 4."),
        ([0, 4, 3, 5], "cu_seqlens must not decrease, but it goes from 4 to 3."),
        ([1, 5], "cu_seqlens must start at 0, but it starts at 1."),
    ):
        one["initial_state"] = None
        assert_refused(mechanism, one, sentence, cu_seqlens=torch.tensor(offsets))


def test_check_refuses_what_is_not_finite(mechanism):
    """A gate of -inf is finite in this sense: it forgets."""
    for name in mechanism.integers(5).keys() - {"g"}:
        inputs = mechanism.integers(5)
        for kernel in every_form(mechanism):
            kernel(**inputs, check=True)
        inputs[name].view(-1)[3] = torch.inf
        assert_refused(mechanism, inputs, f"{name} must be finite, but it contains inf.", check=True)


def test_half_inputs_take_single_precision_gates(mechanism):
    inputs = mechanism.integers(5)
    mixed = {name: x.bfloat16() if name in ("q", "k", "v") else x.float() for name, x in inputs.items()}
    expected = mechanism.reference(**inputs)[0]
    for kernel in every_form(mechanism):
        assert torch.equal(kernel(**mixed)[0].double(), expected)

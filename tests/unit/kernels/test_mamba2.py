"""Mamba-2 beside its dual form, and in its own parameters."""

import pytest
import torch
from agreement import assert_agrees
from dplr_family import family

from kernels.linear.reference import reference_linear
from kernels.mamba2.chunked import chunked_mamba2
from kernels.mamba2.recurrent import recurrent_mamba2
from kernels.mamba2.reference import reference_mamba2

MAMBA2 = family("mamba2")
FORMS = [reference_mamba2, recurrent_mamba2, chunked_mamba2]


def dual(q, k, v, g):
    """(Q K^T * L) V with L_ij = e^(g_{j+1} + ... + g_i) for j <= i: the attention form, without a state."""
    tokens, group = q.shape[1], v.shape[2] // q.shape[2]
    q, k = (x.repeat_interleave(group, dim=2) for x in (q, k))
    later = torch.arange(tokens)
    within = (later[:, None, None] >= later) & (later > later[:, None])
    sums = torch.where(within, g.transpose(1, 2)[:, :, None, None], 0.0).sum(-1)
    mask = sums.exp() * torch.ones(tokens, tokens, dtype=sums.dtype).tril()
    return torch.einsum("bihk,bjhk,bhij,bjhv->bihv", q, k, mask, v)


def test_every_form_is_the_dual_form():
    inputs = MAMBA2.integers(20)
    inputs.pop("initial_state")
    expected = dual(**inputs)
    assert expected.count_nonzero() > 0
    for kernel in FORMS:
        assert torch.equal(kernel(**inputs)[0], expected)


def test_without_decay_it_is_linear_attention():
    inputs = MAMBA2.integers(20)
    inputs["g"] = torch.zeros_like(inputs["g"])
    linear = {name: x for name, x in inputs.items() if name != "g"}
    for ours, theirs in zip(
        chunked_mamba2(**inputs, output_final_state=True),
        reference_linear(**linear, scale=1.0, output_final_state=True),
        strict=True,
    ):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("kernel", FORMS)
def test_default_scale_is_one(kernel):
    inputs = MAMBA2.integers(9)
    assert torch.equal(kernel(**inputs)[0], kernel(**inputs, scale=1.0)[0])
    assert torch.equal(2 * kernel(**inputs)[0], kernel(**inputs, scale=2.0)[0])


def test_raw_steps_give_decay_and_value():
    """dt = softplus(raw + bias), A = -e^A_log; the decay is A dt and the value dt x."""
    rng = torch.Generator().manual_seed(0)
    inputs = MAMBA2.random(20) | {"g": torch.randn(2, 20, 2, generator=rng, dtype=torch.float64)}
    inputs |= {name: torch.randn(2, generator=rng, dtype=torch.float64) for name in ("A_log", "dt_bias")}

    def explicit(A_log, dt_bias, g, v, **rest):
        dt = (1 + (g + dt_bias).exp()).log()
        return reference_mamba2(v=dt.unsqueeze(-1) * v, g=-A_log.exp() * dt, **rest)

    def run(kernel, inputs):
        o, state = kernel(**inputs, output_final_state=True)
        return {"o": o, "state": state}

    for kernel in (recurrent_mamba2, chunked_mamba2):
        assert_agrees(run, kernel, explicit, inputs)

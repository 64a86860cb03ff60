"""Performer features estimate the softmax kernel without bias, and every form computes the same from them."""

import math
from functools import partial

import pytest
import torch
from agreement import assert_agrees, gradients

from kernels.performer.chunked import chunked_performer
from kernels.performer.features import positive_features, random_projection, softmax_kernel
from kernels.performer.recurrent import recurrent_performer
from kernels.performer.reference import reference_performer

FORMS = [recurrent_performer, *(partial(chunked_performer, chunk_size=size) for size in (1, 3, 16, 20, 64))]


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("orthogonal", [False, True])
def test_features_are_unbiased(orthogonal):
    """The mean of many independent estimates lies within 6 of its own standard errors of e^(scale q.k)."""
    q, k = 0.5 * normal(1, 3, 1, 4, seed=1), 0.5 * normal(1, 2, 1, 4, seed=2)
    exact = softmax_kernel(q, k, scale=0.7)[0, 0]
    estimates = []
    for seed in range(400):
        w = random_projection(4, 8, seed=seed, orthogonal=orthogonal, dtype=torch.float64)
        phi_q, phi_k = (positive_features(x[0, :, 0], w, scale=0.7) for x in (q, k))
        estimates.append(phi_q @ phi_k.T)
    samples = torch.stack(estimates)
    error = samples.std(0) / math.sqrt(len(estimates))
    assert ((samples.mean(0) - exact).abs() < 6 * error).all()
    # The features could not be off by a factor such as sqrt(M) and pass by a wide error bar.
    assert (error < 0.1 * exact).all()


def test_orthogonal_rows_are_orthogonal_and_seeded():
    w = random_projection(6, 15, seed=3, dtype=torch.float64)
    for block in w.split(6):
        gram = block @ block.T
        lengths = gram.diagonal()
        assert (gram - lengths.diag()).abs().max() <= 64 * torch.finfo(torch.float64).eps * lengths.max()
    assert torch.equal(w, random_projection(6, 15, seed=3, dtype=torch.float64))
    assert not torch.equal(w, random_projection(6, 15, seed=4, dtype=torch.float64))
    # Squared lengths have mean K and variance 2K; within 6 standard errors.
    squares = random_projection(6, 4000, seed=5, dtype=torch.float64).square().sum(1)
    assert abs(squares.mean().item() - 6) < 6 * math.sqrt(12 / 4000)


def test_relative_features_differ_by_a_factor_per_row():
    x, w = normal(5, 4), random_projection(4, 7, dtype=torch.float64)
    plain, relative = positive_features(x, w), positive_features(x, w, relative=True)
    torch.testing.assert_close(relative, plain / plain.amax(-1, keepdim=True) / math.sqrt(7))


def run(form, tensors):
    leaves = {name: x.clone().requires_grad_() for name, x in tensors.items()}
    q, k, v, projection, state, total = leaves.values()
    o, final = form(q, k, v, projection, initial_state=(state, total), output_final_state=True)
    return {
        "o": o.detach(),
        "state": final[0].detach(),
        "total": final[1].detach(),
        **gradients(leaves, o, *final),
    }


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("tokens", [0, 1, 20])
def test_forms_equal_reference(form, tokens):
    tensors = {
        "q": normal(2, tokens, 2, 4, seed=1),
        "k": normal(2, tokens, 2, 4, seed=2),
        "v": normal(2, tokens, 4, 3, seed=3),
        "projection": random_projection(4, 6, dtype=torch.float64),
        "state": normal(2, 4, 6, 3, seed=4),
        "total": 5 + normal(2, 2, 6, seed=5).abs(),
    }
    assert_agrees(run, form, reference_performer, tensors)


def test_the_reference_is_a_normalised_sum_over_the_past():
    q, k, v, w = (
        normal(1, 6, 1, 4),
        normal(1, 6, 1, 4, seed=1),
        normal(1, 6, 1, 3, seed=2),
        normal(9, 4, seed=3),
    )
    phi_q, phi_k = (positive_features(x[0, :, 0], w, scale=0.5) for x in (q, k))
    o, _ = reference_performer(q, k, v, w)
    for t in range(6):
        weights = phi_k[: t + 1] @ phi_q[t]
        torch.testing.assert_close(o[0, t, 0], (weights / weights.sum()) @ v[0, : t + 1, 0])


def test_features_of_huge_queries_do_not_vanish():
    """Their features are e^-1000 and less; the first token attends to itself alone all the same."""
    q, k, v = 40 * normal(1, 9, 1, 4).float(), normal(1, 9, 1, 4).float(), normal(1, 9, 1, 3).float()
    for form in (reference_performer, *FORMS):
        o, _ = form(q, k, v, random_projection(4, 8))
        torch.testing.assert_close(o[:, 0].float(), v[:, 0])
        assert (o != 0).all()


def test_packed_sequences_equal_separate_calls():
    q, k, v = normal(1, 9, 2, 4), normal(1, 9, 2, 4, seed=1), normal(1, 9, 2, 3, seed=2)
    w = random_projection(4, 6, dtype=torch.float64)
    packed, _ = chunked_performer(q, k, v, w, cu_seqlens=torch.tensor([0, 4, 9]), chunk_size=3)
    for rows in (slice(0, 4), slice(4, 9)):
        alone, _ = chunked_performer(q[:, rows], k[:, rows], v[:, rows], w, chunk_size=3)
        assert torch.equal(packed[:, rows], alone)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"projection": torch.zeros(5, 3)},
            "projection must have shape [M, K] with q's K = 4, but its shape is [5, 3].",
        ),
        ({"projection": torch.zeros(0, 4)}, "projection must have at least one row, but it has none."),
        (
            {"projection": torch.zeros(5, 4, dtype=torch.int64)},
            "projection must be real and on q's device cpu, but it is torch.int64 on cpu.",
        ),
        ({"scale": -1.0}, "scale must be a positive finite number, but it is -1.0."),
        (
            {"k": torch.zeros(3)},
            "q and k must have the 4 dimensions [B, T, H, K], but their shapes are [1, 3, 2, 4] and [3].",
        ),
        (
            {"q": torch.zeros(1, 3, 2, 4, dtype=torch.int64)},
            "q must have a real floating-point dtype, but its dtype is torch.int64.",
        ),
        ({"v": torch.zeros(1, 2, 2, 5)}, "v must have shape [1, 3, 2, 5], but its shape is [1, 2, 2, 5]."),
        ({"v": torch.full((1, 3, 2, 5), torch.inf), "check": True}, "v must be finite, but it contains inf."),
    ],
)
def test_wrong_arguments_are_named(change, message):
    right = {name: torch.zeros(1, 3, 2, 4) for name in "qkv"} | {"projection": torch.ones(5, 4)}
    for form in (reference_performer, recurrent_performer, chunked_performer):
        form(**right)
        with pytest.raises(ValueError, match="must") as raised:
            form(**{**right, **change})
        assert str(raised.value) == message


def test_a_projection_has_sizes():
    with pytest.raises(ValueError, match="features must be at least 1, but it is 0"):
        random_projection(4, 0)

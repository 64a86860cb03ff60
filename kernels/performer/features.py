"""Positive random features, whose expected product is the softmax kernel."""

import math

import torch
from torch import Tensor


def random_projection(
    keys: int,
    features: int,
    *,
    seed: int = 0,
    orthogonal: bool = True,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> Tensor:
    """Rows [features, keys], each standard normal in every direction; the same for the same seed.

    ``orthogonal`` makes every ``keys`` consecutive rows orthogonal: directions of a uniformly random
    orthogonal matrix, lengths drawn as those of independent Gaussian rows. Each row keeps its distribution,
    so the estimate stays unbiased, and its variance falls (claim performer.orthogonal; arXiv 2009.14794,
    section 3.2). Drawn in float64 on the CPU, whatever ``dtype`` and ``device``.

    Raises ValueError unless ``keys`` and ``features`` are at least 1.
    """
    for name, size in (("keys", keys), ("features", features)):
        if size < 1:
            raise ValueError(f"{name} must be at least 1, but it is {size}.")
    generator = torch.Generator().manual_seed(seed)

    def gaussian(rows: int) -> Tensor:
        return torch.randn(rows, keys, generator=generator, dtype=torch.float64)

    if not orthogonal:
        return gaussian(features).to(device, dtype)
    blocks = [_directions(gaussian(keys)) for _ in range(-(-features // keys))]
    lengths = gaussian(features).norm(dim=1, keepdim=True)
    return (lengths * torch.cat(blocks)[:features]).to(device, dtype)


def _directions(gaussian: Tensor) -> Tensor:
    """A uniformly random orthogonal matrix: QR, R's diagonal made positive (Mezzadri, math-ph/0609050)."""
    q, r = torch.linalg.qr(gaussian)
    return q * r.diagonal().sign()


def positive_features(x: Tensor, projection: Tensor, *, scale: float = 1.0, relative: bool = False) -> Tensor:
    """phi(x) = e^(w.y - |y|^2 / 2) / sqrt(M) per row w of the projection, y = sqrt(scale) x.

    x [..., K]; projection [M, K]; returns [..., M]. For w standard normal, E[phi(q).phi(k)] = e^(scale q.k)
    (claim performer.unbiased; arXiv 2009.14794, Lemma 1). ``relative`` divides each row by its own largest
    feature (leaving 1 / sqrt(M)), which a normaliser cancels: for queries. Without it a feature can overflow,
    in float32 only where w.y - |y|^2 / 2 > 88, hence |w| > 13.2.
    """
    y = x * math.sqrt(scale)
    exponents = y @ projection.T - 0.5 * y.square().sum(-1, keepdim=True)
    if relative:
        exponents = exponents - exponents.detach().amax(-1, keepdim=True)
    return exponents.exp() * projection.shape[0] ** -0.5


def softmax_kernel(q: Tensor, k: Tensor, *, scale: float | None = None) -> Tensor:
    """e^(scale q.k) [B, H, T, S] in float64: what the features estimate. q [B, T, H, K]; k [B, S, H, K]."""
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    return (factor * (q.double().transpose(1, 2) @ k.double().transpose(1, 2).mT)).exp()

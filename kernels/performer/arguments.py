"""Checks of a Performer's arguments, and its queries and keys as features."""

import math

import torch
from torch import Tensor

from kernels.arguments import working_dtype
from kernels.performer.features import positive_features


def prepare(
    q: Tensor, k: Tensor, projection: Tensor, scale: float | None, dtype: torch.dtype | None = None
) -> tuple[Tensor, Tensor]:
    """The features of q and k [B, T, H, M] in ``dtype`` (default: the working precision).

    Raises ValueError for a projection that does not fit q, and for a scale that is not positive and finite
    (its square root scales q and k alike). The rest is checked by the linear attention that follows.
    """
    if q.ndim != 4 or k.ndim != 4:
        shapes = f"{list(q.shape)} and {list(k.shape)}"
        raise ValueError(f"q and k must have the 4 dimensions [B, T, H, K], but their shapes are {shapes}.")
    for name, tensor in (("q", q), ("k", k)):
        if not tensor.dtype.is_floating_point:
            raise ValueError(
                f"{name} must have a real floating-point dtype, but its dtype is {tensor.dtype}."
            )
        if tensor.shape[-1] < 1 or projection.ndim != 2 or tensor.shape[-1] != projection.shape[1]:
            raise ValueError(
                f"projection must have shape [M, K] with {name}'s K = {tensor.shape[-1]}, but its shape is"
                f" {list(projection.shape)}."
            )
    if projection.shape[0] < 1:
        raise ValueError("projection must have at least one row, but it has none.")
    if not projection.dtype.is_floating_point or projection.device != q.device:
        raise ValueError(
            f"projection must be real and on q's device {q.device}, but it is {projection.dtype} on"
            f" {projection.device}."
        )
    if scale is not None and not (math.isfinite(scale) and scale > 0):
        raise ValueError(f"scale must be a positive finite number, but it is {scale}.")
    dtype = dtype or working_dtype(q.dtype)
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    rows = projection.to(dtype)
    return (
        positive_features(q.to(dtype), rows, scale=factor, relative=True),
        positive_features(k.to(dtype), rows, scale=factor),
    )

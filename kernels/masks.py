"""Which keys a query may see, by distance."""

import torch
from torch import Tensor


def hidden(distance: Tensor, causal: bool, window: int | None) -> Tensor:
    """True where a key is hidden: ``distance`` (query position minus key position, integers) is negative
    and ``causal`` is set, or its size is at least ``window``. Same shape as ``distance``.
    """
    mask = torch.zeros_like(distance, dtype=torch.bool)
    if causal:
        mask |= distance < 0
    if window is not None:
        mask |= distance.abs() >= window
    return mask

"""Attention over two sets of keys, from the attention over each."""

import torch
from torch import Tensor


def merge_softmax(
    o: Tensor, logsumexp: Tensor, other_o: Tensor, other_logsumexp: Tensor
) -> tuple[Tensor, Tensor]:
    """The attention over the union of two disjoint sets of keys (claim flash.online-softmax: associative).

    o and other_o [B, T, H, V]; the logsumexps [B, T, H] in natural log, -inf where nothing was seen. A sink
    belongs to one side only. Returns (o in its dtype, logsumexp). Used to attend to a shared prefix and a
    suffix apart, or to resume over a cache in parts.

    Raises ValueError when the shapes do not belong together.
    """
    for name, tensor, shape in (
        ("logsumexp", logsumexp, o.shape[:-1]),
        ("other_o", other_o, o.shape),
        ("other_logsumexp", other_logsumexp, o.shape[:-1]),
    ):
        if tensor.shape != shape:
            raise ValueError(f"{name} must have shape {list(shape)}, but its shape is {list(tensor.shape)}.")
    largest = torch.maximum(logsumexp, other_logsumexp)
    largest = largest.masked_fill(largest == -torch.inf, 0.0)
    weight, other_weight = (logsumexp - largest).exp(), (other_logsumexp - largest).exp()
    total = weight + other_weight
    mixed = weight.unsqueeze(-1) * o + other_weight.unsqueeze(-1) * other_o
    mixed = mixed / total.masked_fill(total == 0, 1.0).unsqueeze(-1)
    return mixed.to(o.dtype), largest + total.log()

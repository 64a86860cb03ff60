"""Pooling of keys and values over windows of tokens, and the checks of its arguments."""

import torch
from torch import Tensor

from kernels.arguments import working_dtype


def check_pooling(q: Tensor, k: Tensor, gate: Tensor | None, stride: int, window: int | None) -> None:
    """Raise ValueError, in one sentence, for a stride, window, gate or query count that does not fit."""
    if stride < 1:
        raise ValueError(f"stride must be at least 1, but it is {stride}.")
    if window is not None and window < 0:
        raise ValueError(f"window must be at least 0, but it is {window}.")
    if k.ndim == 4 and q.ndim == 4 and q.shape[1] > k.shape[1]:
        raise ValueError(f"q must have at most k's {k.shape[1]} tokens, but it has {q.shape[1]}.")
    if gate is None:
        return
    if gate.shape != k.shape[:3]:
        raise ValueError(f"gate must have shape {list(k.shape[:3])}, but its shape is {list(gate.shape)}.")
    if gate.dtype not in (k.dtype, working_dtype(k.dtype)):
        raise ValueError(f"gate must be {k.dtype} when k is, but its dtype is {gate.dtype}.")
    if gate.device != k.device:
        raise ValueError(f"gate must be on k's device {k.device}, but it is on {gate.device}.")


def pool(x: Tensor, gate: Tensor | None, stride: int, overlap: bool) -> Tensor:
    """The slots [B, S // m, HKV, D] of x [B, S, HKV, D]: weighted means over windows of tokens.

    With m = ``stride``, slot b covers tokens bm ... bm + m - 1, with ``overlap`` from (b - 1)m on (nothing
    precedes slot 0). Weights are equal, or the softmax of ``gate`` [B, S, HKV] over the window. Tokens after
    the last complete stride have no slot. Without overlap two neighbouring tokens across a border share no
    slot; with it every pair shares one, for the same number of slots (claim sparse.overlap). What pooling
    loses is the part of the divergence within a window (claim sparse.kl-chain).
    """
    slots = x.shape[1] // stride
    blocks = x[:, : slots * stride].unflatten(1, (slots, stride))
    if gate is None:
        logits = torch.zeros_like(blocks[..., 0])
    else:
        logits = gate[:, : slots * stride].unflatten(1, (slots, stride))
    if overlap:
        first = torch.full_like(logits[:, :1], -torch.inf)
        logits = torch.cat([torch.cat([first, logits[:, :-1]], dim=1), logits], dim=2)
        blocks = torch.cat(
            [torch.cat([torch.zeros_like(blocks[:, :1]), blocks[:, :-1]], dim=1), blocks], dim=2
        )
    return (logits.softmax(2).unsqueeze(-1) * blocks).sum(2)

"""Pooled attention in float64, slot by slot and query by query: what the blocked form is held against."""

import torch
from torch import Tensor

from kernels.pooled.pool import check_pooling
from kernels.softmax.arguments import Arguments, Packing, finish, prepare, sequences


def reference_pooled(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    gate: Tensor | None = None,
    *,
    stride: int,
    overlap: bool = False,
    window: int | None = None,
    scale: float | None = None,
    sink: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    cu_seqlens_k: Tensor | None = None,
    check: bool = False,
) -> Tensor:
    """Causal attention to pooled windows of the past and to the last tokens, in float64 throughout.

    With m = ``stride``, slot b holds the means of k and of v over tokens bm ... (b + 1)m - 1, with
    ``overlap`` over (b - 1)m ... (b + 1)m - 1 (slot 0 without the part before the start), weighted equally
    or by the softmax of ``gate`` over the window. A query at position p attends, in one softmax, to the
    slots that are complete, (b + 1)m - 1 <= p, and to the tokens p - window + 1 ... p. ``window`` defaults
    to m, which covers every token that has no complete slot yet; 0 attends to slots alone. This is the
    compressed branch beside the sliding window of Native Sparse Attention (arXiv 2502.11089, section 3.3),
    in one softmax.

    q [B, T, H, K], the last T of S positions, T <= S; k [B, S, HKV, K]; v [B, S, HKV, V]; gate [B, S, HKV]
    logits; sink [H] or [H, n] logits. Query head h reads key head h // (H // HKV). ``scale`` defaults to
    K**-0.5; ``cu_seqlens`` and ``cu_seqlens_k`` as in ``kernels.softmax.reference.reference_softmax``.

    Returns o [B, T, H, V], float64; a query that sees nothing gives 0. Raises ValueError as
    ``kernels.softmax.arguments`` and ``kernels.pooled.pool`` do.
    """
    packing = Packing(cu_seqlens, cu_seqlens_k)
    check_pooling(q, k, gate, stride, window)
    arguments = prepare(q, k, v, scale=scale, sink=sink, packing=packing, check=check, dtype=torch.float64)
    logits = torch.zeros(k.shape[:3], dtype=torch.float64, device=k.device) if gate is None else gate.double()
    outputs = [arguments.q.new_zeros(*arguments.q.shape[:3], 0, v.shape[3])]
    for queries, keys in sequences(packing, q.shape[1], k.shape[1]):
        offset = keys.stop - queries.stop
        slots = [
            _slot(arguments, logits, keys.start, keys.start + end, stride * (1 + overlap))
            for end in range(stride, keys.stop - keys.start + 1, stride)
        ]
        for row in range(queries.start, queries.stop):
            position = row + offset
            complete = slots[: (position - keys.start + 1) // stride]
            first = max(keys.start, position + 1 - (stride if window is None else window))
            tokens = [(arguments.k[:, :, j], arguments.v[:, :, j]) for j in range(first, position + 1)]
            outputs.append(_attend(arguments, row, complete + tokens))
    o, _ = finish(torch.cat(outputs, dim=3), torch.cat(outputs, dim=3)[..., 0], torch.float64)
    return o


def _slot(arguments: Arguments, logits: Tensor, start: int, end: int, width: int) -> tuple[Tensor, Tensor]:
    """The pooled key and value [B, HKV, D] of the ``width`` tokens before ``end``, none before ``start``."""
    tokens = slice(max(start, end - width), end)
    weights = logits[:, tokens].softmax(1).transpose(1, 2).unsqueeze(-1)
    return (weights * arguments.k[:, :, tokens]).sum(2), (weights * arguments.v[:, :, tokens]).sum(2)


def _attend(arguments: Arguments, row: int, seen: list[tuple[Tensor, Tensor]]) -> Tensor:
    """o [B, HKV, G, 1, V] of one query over pairs of a key and a value."""
    q = arguments.q[..., row, :]
    if not seen:
        return q.new_zeros(*q.shape[:-1], 1, arguments.v.shape[-1])
    scores = torch.stack([(q * key.unsqueeze(2)).sum(-1) for key, _ in seen], dim=-1)
    values = torch.stack([value.unsqueeze(2) for _, value in seen], dim=-2)
    if arguments.sink is not None:
        sink = arguments.sink[..., None].expand(*scores.shape[:-1], 1)
        return torch.cat([scores, sink], dim=-1).softmax(-1)[..., None, :-1] @ values
    return scores.softmax(-1).unsqueeze(-2) @ values

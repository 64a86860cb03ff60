"""Softmax attention in float64 from the whole score matrix: what the other forms are held against."""

import torch
from torch import Tensor

from kernels.masks import hidden
from kernels.softmax.arguments import Arguments, Packing, check_values, finish, prepare, sequences


def reference_softmax(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None = None,
    *,
    scale: float | None = None,
    causal: bool = True,
    window: int | None = None,
    sink: Tensor | None = None,
    slopes: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    cu_seqlens_k: Tensor | None = None,
    output_logsumexp: bool = False,
    check: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Softmax attention, computed and returned in float64 whatever the input dtype.

    o_i = sum_j e^(x_ij - L_i) v_j over the visible keys j, with exponents
    x_ij = scale q_i.k_j + (g_{j+1} + ... + g_i) - slope |i - j| and L_i = ln(sum_j e^(x_ij) + e^sink).
    Query i of T sits at position i + S - T of the S keys. Key j is visible when j <= i (``causal``) and
    |i - j| < ``window``. A sink takes mass and adds nothing to o (claim softmax.no-null-output). A row that
    sees no key gives o = 0, and L = sink or -inf.

    q [B, T, H, K]; k [B, S, HKV, K]; v [B, S, HKV, V]; g [B, S, H], natural-log decay <= 0 (-inf hides
    everything before), as in Forgetting Transformer (arXiv 2503.02130); slopes [H] >= 0, as in ALiBi (arXiv
    2108.12409); sink [H] or [H, n] logits, as in gpt-oss (arXiv 2508.10925). Query head h reads key head
    h // (H // HKV). ``scale`` defaults to K**-0.5. Packed sequences: B = 1 and bounds ``cu_seqlens`` [N + 1]
    of the queries, and ``cu_seqlens_k`` of the keys where they differ.

    Returns o [B, T, H, V] and L [B, T, H] (natural log), or None unless ``output_logsumexp``; both float64.
    Raises ValueError as ``kernels.softmax.arguments`` does, with ``check`` also for non-finite q, k, v.
    """
    packing = Packing(cu_seqlens, cu_seqlens_k)
    arguments = prepare(
        q,
        k,
        v,
        g,
        scale=scale,
        slopes=slopes,
        sink=sink,
        causal=causal,
        window=window,
        packing=packing,
        check=check,
        dtype=torch.float64,
    )
    check_values(arguments.g, arguments.slopes)
    parts = [
        _attend(arguments, queries, keys, causal, window)
        for queries, keys in sequences(packing, q.shape[1], k.shape[1])
    ]
    o, logsumexp = (torch.cat(tensors, dim=3) for tensors in zip(*parts, strict=True))
    o, logsumexp = finish(o, logsumexp, torch.float64)
    return o, logsumexp if output_logsumexp else None


def _attend(
    arguments: Arguments, queries: slice, keys: slice, causal: bool, window: int | None
) -> tuple[Tensor, Tensor]:
    """o [B, HKV, G, T, V] and L [B, HKV, G, T] of one sequence."""
    q, k, v = arguments.q[..., queries, :], arguments.k[:, :, keys], arguments.v[:, :, keys]
    rows = torch.arange(q.shape[-2], device=q.device)[:, None] + k.shape[-2] - q.shape[-2]
    distance = rows - torch.arange(k.shape[-2], device=q.device)
    exponents = q @ k.unsqueeze(2).mT
    if arguments.g is not None:
        exponents = exponents + _decays(arguments.g[..., keys], rows[:, 0].tolist())
    if arguments.slopes is not None:
        exponents = exponents - arguments.slopes[..., None, None] * distance.abs()
    exponents = exponents.masked_fill(hidden(distance, causal, window), -torch.inf)
    sink = q.new_full((1, 1), -torch.inf) if arguments.sink is None else arguments.sink
    exponents = torch.cat([exponents, sink[..., None, None].expand(*exponents.shape[:-1], 1)], dim=-1)
    largest = exponents.detach().amax(-1, keepdim=True).nan_to_num(nan=torch.nan, neginf=0.0)
    weights = (exponents - largest).exp()
    total = weights.sum(-1, keepdim=True)
    o = (weights[..., :-1] @ v.unsqueeze(2)) / total.masked_fill(total == 0, 1.0)
    return o, (largest + total.log()).squeeze(-1)


def _decays(g: Tensor, rows: list[int]) -> Tensor:
    """[..., S] to [..., T, S] with entry (i, j) = g_{j+1} + ... + g_i, i the row's position; 0 for j >= i."""
    keys = g.shape[-1]
    place = torch.arange(keys, device=g.device)
    after = place > place[:, None]
    zero = torch.zeros((), dtype=g.dtype, device=g.device)
    sums = [torch.where(after & (place <= row), g.unsqueeze(-2), zero).sum(-1) for row in rows]
    return torch.stack(sums, dim=-2) if rows else g.new_empty(*g.shape[:-1], 0, keys)

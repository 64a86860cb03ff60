"""Softmax attention one query at a time against the cache of keys and values: what a decoder runs."""

import torch
from torch import Tensor

from kernels.softmax.arguments import Arguments, Packing, check_values, finish, prepare, sequences
from kernels.softmax.decay import suffix_sums


def recurrent_softmax(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None = None,
    *,
    scale: float | None = None,
    window: int | None = None,
    sink: Tensor | None = None,
    slopes: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    cu_seqlens_k: Tensor | None = None,
    output_logsumexp: bool = False,
    check: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Causal softmax attention in float32, or in float64 for float64 inputs, differentiable by autograd.

    The state of softmax attention is its cache: k, v and g of all S tokens so far, of which the last T are
    the queries' own. A decoding step is a call with T = 1; with a window only the last ``window`` tokens of
    the cache are read. Options, shapes and conventions are those of
    ``kernels.softmax.reference.reference_softmax``. O(S) memory and O(S (K + V)) work per query and head.

    An output depends on no later token, whatever that token holds; non-finite inputs propagate to later
    outputs only. Returns o [B, T, H, V] in v's dtype and the logsumexp [B, T, H] in the working precision
    (natural log), or None unless ``output_logsumexp``. Raises ValueError as ``kernels.softmax.arguments``
    does, with ``check`` also for non-finite q, k, v.
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
        window=window,
        packing=packing,
        check=check,
    )
    check_values(arguments.g, arguments.slopes)
    outputs = []
    for queries, keys in sequences(packing, q.shape[1], k.shape[1]):
        offset = keys.stop - queries.stop
        for t in range(queries.start, queries.stop):
            stop = t + offset + 1
            start = keys.start if window is None else max(keys.start, stop - window)
            outputs.append(_attend_one(arguments, t, slice(start, max(start, stop))))
    if outputs:
        o, logsumexp = (torch.stack(tensors, dim=3) for tensors in zip(*outputs, strict=True))
    else:
        no_queries = arguments.q.shape[:-1]
        o, logsumexp = v.new_zeros(*no_queries, v.shape[-1]), arguments.q.new_zeros(no_queries)
    o, logsumexp = finish(o, logsumexp, v.dtype)
    return o, logsumexp if output_logsumexp else None


def _attend_one(arguments: Arguments, t: int, seen: slice) -> tuple[Tensor, Tensor]:
    """o [B, HKV, G, V] and logsumexp [B, HKV, G] of query t, which sits at the last of the keys ``seen``."""
    q, k, v = arguments.q[..., t, :], arguments.k[:, :, seen], arguments.v[:, :, seen]
    x = q @ k.mT
    if arguments.g is not None:
        x = x + suffix_sums(arguments.g[..., seen])
    if arguments.slopes is not None:
        x = x - arguments.slopes.unsqueeze(-1) * torch.arange(k.shape[-2] - 1, -1, -1, device=x.device)
    first = x.new_full((1, 1, 1), -torch.inf) if arguments.sink is None else arguments.sink
    first = first.expand(x.shape[:-1]).unsqueeze(-1)
    largest = torch.cat([first, x], dim=-1).detach().amax(-1, keepdim=True)
    largest = largest.masked_fill(largest == -torch.inf, 0.0)
    weights = (x - largest).exp()
    total = (first - largest).exp() + weights.sum(-1, keepdim=True)
    o = (weights @ v) / total.masked_fill(total == 0, 1.0)
    return o, (largest + total.log()).squeeze(-1)

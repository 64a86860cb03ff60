"""Attention to the fewest best keys that certainly carry all but epsilon of the softmax mass."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from kernels.finite import check_finite
from kernels.masks import hidden
from kernels.softmax.arguments import Arguments, Packing, finish, prepare, sequences
from kernels.topk.backward import KeptAttention
from kernels.topk.score_bounds import dropped_mass_bounds, largest, score_errors, weight_bounds


class CertifiedTopk(NamedTuple):
    """What certified top-k attention returns.

    o [B, T, H, V] in v's dtype; kept [B, T, H, n], int64 positions of the kept keys, largest score first, -1
    where a query keeps fewer than n; dropped_mass [B, T, H], float64, a proved bound per query on the softmax
    mass of all keys that are visible and not kept.
    """

    o: Tensor
    kept: Tensor
    dropped_mass: Tensor


def certified_topk(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    epsilon: float,
    budget: int | None = None,
    scale: float | None = None,
    causal: bool = True,
    window: int | None = None,
    cu_seqlens: Tensor | None = None,
    cu_seqlens_k: Tensor | None = None,
    tile_size: int = 128,
) -> CertifiedTopk:
    """Softmax attention renormalised over the fewest best keys whose complement has mass <= epsilon.

    The bound (claim kernel.certified-topk) is about the exact softmax of the floats given, whatever their
    dtype: it includes the rounding errors of the scores, of the weights and of the sums, as
    ``kernels.topk.score_bounds`` derives them for float64, in which all of this is computed. It assumes
    IEEE float64 products and sums in any order, and an exponential right to 4 units in the last place. By
    claim sparse.dropped-mass the exact attention over the kept keys then differs from the full one by at most
    dropped_mass * diam(values) <= 2 dropped_mass max |v|, and by sparse.face it is its restriction.
    Differentiable once: the gradient of o is that of attention to the kept keys, explicit, in
    ``kernels.topk.backward``.

    q [B, T, H, K]; k [B, S, HKV, K]; v [B, S, HKV, V]; ``scale``, ``causal``, ``window``, ``cu_seqlens`` and
    ``cu_seqlens_k`` as in ``kernels.softmax.reference.reference_softmax``. Packed positions count along S.
    ``epsilon`` in [0, 1); 0 keeps every visible key. ``budget``: the most keys a query may keep; None allows
    all. ``tile_size``: queries at a time; memory O(B H tile_size S) beside the result. A query that sees no
    key keeps none: o = 0, bound 0.

    Raises ValueError, in one sentence, when a query needs more than ``budget`` keys, for inputs that are not
    finite or whose scores are not, and as ``kernels.softmax.arguments`` does.
    """
    if not 0 <= epsilon < 1:
        raise ValueError(f"epsilon must be at least 0 and below 1, but it is {epsilon}.")
    for name, size in (("budget", budget), ("tile_size", tile_size)):
        if size is not None and size < 1:
            raise ValueError(f"{name} must be at least 1, but it is {size}.")
    packing = Packing(cu_seqlens, cu_seqlens_k)
    arguments = prepare(
        q, k, v, scale=scale, causal=causal, window=window, packing=packing, dtype=torch.float64
    )
    check_finite(q=q, k=k, v=v)
    with torch.no_grad():
        parts = []
        for queries, keys in sequences(packing, q.shape[1], k.shape[1]):
            for start in range(queries.start, queries.stop, tile_size):
                rows = slice(start, min(start + tile_size, queries.stop))
                distance = _distance(rows, queries, keys, q.device)
                parts.append(_select(arguments, rows, keys, ~hidden(distance, causal, window), epsilon))
        o, kept, mass = _collect(parts, arguments.q.new_zeros(arguments.q.shape[:-1]), v, budget, epsilon)
    o = KeptAttention.apply(*arguments[:3], o, kept, tile_size)
    o, mass = finish(o, mass, v.dtype)
    return CertifiedTopk(o, kept.flatten(1, 2).transpose(1, 2), mass)


class _Part(NamedTuple):
    """Of some queries: o [..., T, V], kept keys and then -1 [..., T, S], how many are kept [..., T]."""

    o: Tensor
    kept: Tensor
    size: Tensor
    dropped_mass: Tensor


def _distance(rows: slice, queries: slice, keys: slice, device: torch.device) -> Tensor:
    """Query position minus key position [rows, keys], the last query at the last key."""
    place = torch.arange(rows.start, rows.stop, device=device) + keys.stop - queries.stop
    return place[:, None] - torch.arange(keys.start, keys.stop, device=device)


def _select(arguments: Arguments, rows: slice, keys: slice, visible: Tensor, epsilon: float) -> _Part:
    """Keep the best keys of each query until the bound allows to drop the rest."""
    q = arguments.q[..., rows, :]
    k, v = (x[:, :, keys].unsqueeze(2) for x in (arguments.k, arguments.v))
    scores, errors = q @ k.mT, score_errors(q, k)
    if not (scores.isfinite().all() and errors.isfinite().all()):
        raise ValueError("q and k must have finite scores in float64, but some overflow.")
    order = scores.masked_fill(~visible, -torch.inf).argsort(dim=-1, descending=True, stable=True)
    lower, upper = (x.gather(-1, order) for x in weight_bounds(scores, errors, visible))
    bounds = dropped_mass_bounds(lower, upper)
    # The last entry is 0, as nothing is dropped, so that some entry passes.
    count = (bounds <= epsilon).to(torch.int8).argmax(-1)
    ranks = torch.arange(order.shape[-1], device=order.device)
    kept = (ranks < count.unsqueeze(-1)).expand(order.shape)
    chosen = torch.zeros_like(kept, memory_format=torch.contiguous_format).scatter(-1, order, kept)
    best = largest(scores, chosen)
    weights = (scores - best).masked_fill(~chosen, -torch.inf).exp()
    total = weights.sum(-1, keepdim=True)
    o = (weights @ v) / total.masked_fill(total == 0, 1.0)
    mass = bounds.gather(-1, count.unsqueeze(-1)).squeeze(-1)
    return _Part(o, (order + keys.start).masked_fill(~kept, -1), count, mass)


def _collect(
    parts: list[_Part], like: Tensor, v: Tensor, budget: int | None, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The outputs, kept keys and masses of all parts, [B, HKV, G, T, ...].

    Raises ValueError if a query keeps more than ``budget`` keys.
    """
    most = max((int(part.size.max()) for part in parts if part.size.numel()), default=0)
    if budget is not None and most > budget:
        raise ValueError(
            f"budget must be at least {most} to drop a mass of at most {epsilon}, but it is {budget}."
        )
    width = v.shape[-1]
    outputs = [like.new_zeros(*like.shape[:-1], 0, width), *(part.o for part in parts)]
    kept = [like.new_full((*like.shape[:-1], 0, most), -1, dtype=torch.int64)]
    for part in parts:
        missing = most - part.kept.shape[-1]
        kept.append(pad(part.kept[..., :most], (0, max(0, missing)), value=-1))
    masses = [like[..., :0], *(part.dropped_mass for part in parts)]
    return torch.cat(outputs, dim=3), torch.cat(kept, dim=3), torch.cat(masses, dim=3)

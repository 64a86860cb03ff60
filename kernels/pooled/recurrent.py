"""Pooled attention one token at a time, with a state that grows by one slot a stride: what a decoder runs."""

from typing import NamedTuple

import torch
from torch import Tensor

from kernels.arguments import working_dtype
from kernels.pooled.pool import check_pooling, pool
from kernels.softmax.arguments import Packing, prepare, sequences
from kernels.softmax.recurrent import recurrent_softmax


class Cache(NamedTuple):
    """Keys k [B, n, HKV, K] and values v [B, n, HKV, V] of n slots or tokens, with the tokens' logits."""

    k: Tensor
    v: Tensor
    gate: Tensor | None = None

    def joined(self, other: "Cache") -> "Cache":
        """The entries of both, in order."""
        pairs = zip(self, other, strict=True)
        return Cache(*(None if x is None or y is None else torch.cat([x, y], dim=1) for x, y in pairs))

    def last(self, count: int) -> "Cache":
        """The last ``count`` entries, or all if there are fewer."""
        first = max(0, self.k.shape[1] - count)
        return Cache(*(None if x is None else x[:, first:] for x in self))


class PooledState(NamedTuple):
    """What pooled attention remembers of a sequence, in the working precision.

    slots: one entry per complete stride; recent: the last tokens, as many as a window or a slot covers;
    tokens: how many there were in all.
    """

    slots: Cache
    recent: Cache
    tokens: int


def recurrent_pooled(
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
    initial_state: tuple[PooledState, ...] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    check: bool = False,
) -> tuple[Tensor, tuple[PooledState, ...] | None]:
    """Pooled attention, token by token, in float32, or in float64 for float64 inputs; autograd goes through.

    Options and conventions are those of ``kernels.pooled.reference.reference_pooled``, but every token is a
    query: q [B, T, H, K]; k [B, T, HKV, K]; v [B, T, HKV, V]; gate [B, T, HKV] logits. The state replaces the
    cache of all tokens: after S tokens it holds S // m slots and at most max(window, 2m) tokens, and a token
    costs O((S / m + window) (K + V)) per head. One state per sequence: one for a plain batch, one for each
    of the sequences packed along T (B = 1) between the offsets ``cu_seqlens`` [N + 1].

    An output depends on no later token, whatever that token holds. Returns o [B, T, H, V] in v's dtype, and
    the final states, or None unless ``output_final_state``. Raises ValueError as the reference does, and for
    initial states that are not those of as many sequences of these shapes with these options.
    """
    check_pooling(q, k, gate, stride, window)
    if q.ndim == k.ndim == 4 and q.shape[1] != k.shape[1]:
        raise ValueError(f"q must have k's {k.shape[1]} tokens, but it has {q.shape[1]}.")
    packing = Packing(cu_seqlens)
    prepare(q, k, v, scale=scale, sink=sink, packing=packing, check=check)
    dtype = working_dtype(q.dtype)
    rows = Cache(k.to(dtype), v.to(dtype), None if gate is None else gate.to(dtype))
    spans = [span for span, _ in sequences(packing, q.shape[1], k.shape[1])]
    window = stride if window is None else window
    kept = max(window, (1 + overlap) * stride)
    none = rows.last(0)
    states = [PooledState(none._replace(gate=None), none, 0)] * len(spans)
    if initial_state is not None:
        _check_states(initial_state, states, stride, kept)
        states = list(initial_state)
    queries, outputs = q.to(dtype), [none.v.new_zeros(*q.shape[:1], 0, q.shape[2], v.shape[3])]
    for n, span in enumerate(spans):
        for t in range(span.start, span.stop):
            token = Cache(*(None if x is None else x[:, t : t + 1] for x in rows))
            states[n] = _extended(states[n], token, stride, overlap, kept)
            outputs.append(_attended(queries[:, t : t + 1], states[n], window, scale, sink))
    return torch.cat(outputs, dim=1).to(v.dtype), tuple(states) if output_final_state else None


def _extended(state: PooledState, token: Cache, stride: int, overlap: bool, kept: int) -> PooledState:
    """The state with one more token, and with the slot that it completes."""
    slots, recent, tokens = state.slots, state.recent.joined(token).last(kept), state.tokens + 1
    if tokens % stride == 0:
        covered = recent.last((1 + overlap) * stride)
        slots = slots.joined(Cache(*(pool(x, covered.gate, stride, overlap)[:, -1:] for x in covered[:2])))
    return PooledState(slots, recent, tokens)


def _attended(q: Tensor, state: PooledState, window: int, scale: float | None, sink: Tensor | None) -> Tensor:
    """o [B, 1, H, V] of the query of the state's last token: one softmax over slots and the last tokens."""
    seen = state.slots.joined(state.recent.last(window)._replace(gate=None))
    if not seen.k.shape[1]:
        return q.new_zeros(*q.shape[:3], seen.v.shape[3])
    return recurrent_softmax(q, seen.k, seen.v, scale=scale, sink=sink)[0]


def _check_states(states: tuple[PooledState, ...], empty: list[PooledState], stride: int, kept: int) -> None:
    """Raise ValueError unless the states are those of as many sequences as ``empty`` has, of its shapes."""
    if len(states) != len(empty):
        raise ValueError(
            f"initial_state must hold {len(empty)} states, one per sequence, but it holds {len(states)}."
        )
    for n, (state, like) in enumerate(zip(states, empty, strict=True)):
        for part, count in (("slots", state.tokens // stride), ("recent", min(state.tokens, kept))):
            for x, y in zip(getattr(state, part), getattr(like, part), strict=True):
                expected = None if y is None else ([y.shape[0], count, *y.shape[2:]], y.dtype, y.device)
                given = None if x is None else (list(x.shape), x.dtype, x.device)
                if given != expected:
                    raise ValueError(
                        f"initial_state[{n}].{part} must hold {expected} after {state.tokens} tokens with "
                        f"these options, but it holds {given}."
                    )

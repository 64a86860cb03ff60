"""The delta rule chunk by chunk, shared by the chunked forms of its mechanisms."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from kernels.blocks import unit_lower_inverse
from kernels.delta.decay import NoDecay
from kernels.gdn.decay import HeadDecay
from kernels.kda.decay import ChannelDecay
from kernels.packing import Chunks, chunk_count

Decay = NoDecay | HeadDecay | ChannelDecay

_GROUP_ELEMENTS = 1 << 19
"""Entries of q that are brought to chunks at a time: few enough to stay in a cache."""


class Forward(NamedTuple):
    """o [B, T, HV, V]; final [N, HV, K, V]; and for the backward pass the state before each chunk, states
    [B, HV, chunks * K, V], and the errors at each token, errors [B, HV, chunks * rows, V]."""

    o: Tensor
    final: Tensor
    states: Tensor
    errors: Tensor


def forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None,
    beta: Tensor,
    state: Tensor,
    cu_seqlens: Tensor | None,
    scale: float,
    chunk_size: int,
    save: bool = False,
) -> Forward:
    """Outputs and final state from prepared arguments (`kernels.arguments.Arguments`), in their precision.

    With G the inclusive running sum of g in the chunk and S the state before it, the errors E [C, V] solve
    (I + StrictTril(Scores(K, K)) Diag(beta)) E = R for the residuals R = V - (e^G K) S: the UT transform of
    Kimi Linear (arXiv 2510.26692) and Gated DeltaNet (arXiv 2412.06464), applied to R instead of stored as
    the WY factors U - W S, which cancel when S already predicts V. With N the inverse of the system and two
    matrices that need no state, M = scale Tril(Scores(Q, K)) Diag(beta) N and
    D = (e^{G_C - G} K)^T Diag(beta) N, O = scale (e^G Q) S + M R and S_next = Diag(e^{G_C}) S + D R.

    The system is inverted by substitution in blocks (`kernels.blocks.unit_lower_inverse`), never by powers of
    the strictly lower part, which grow past any format while the inverse stays small. Every exponent is a sum
    of gates, hence at most 0, and never a difference of two sums, so a gate of -inf is exact. As long as
    nothing overflows, an output depends on no later token, bit for bit. Only the scan over the states is
    sequential; the rest is done for many chunks at a time.
    """
    chunks = Chunks(v.shape[1], chunk_size, cu_seqlens)
    batch, heads = v.shape[::2][:2]
    # The batch and the heads in one leading axis: the scan is made of plain batched products. They write
    # into the running states, so these are copies, and contiguous, as fast products want them.
    states_before = state.unbind() if chunks.packed else [state.flatten(0, 1)]
    running = [x.clone(memory_format=torch.contiguous_format) for x in states_before]
    count = chunk_count(v.shape[1], chunk_size, cu_seqlens) if save else 0
    states = v.new_zeros(batch * heads, count, *state.shape[2:])
    errors = v.new_zeros(batch * heads, count, chunks.rows, v.shape[3])
    o = v.new_empty(v.shape)
    for first, last in groups(chunks, q):
        decay = decayed(chunks, q, k, g, first, last)
        strength = chunks.arrange(beta.unsqueeze(-1), first, last)
        inverse = unit_lower_inverse(decay.kk * strength.mT)
        writes = strength * inverse
        residuals = chunks.arrange(v, first, last, apart=True)
        reads = torch.empty_like(residuals)
        matrices = *decay.start.unbind(-2), scale * decay.qk @ writes, decay.to_state(writes), decay.total
        scan = zip(*(steps(x, last - first) for x in (residuals, reads, *matrices)), strict=True)
        for c, (residual, read, key, query, mixed, end, total) in enumerate(scan, first):
            current = running[chunks.sequence[c]]
            if save:
                states[:, c] = current
            residual.baddbmm_(key, current, alpha=-1)
            torch.bmm(query, current, out=read).baddbmm_(mixed, residual, beta=scale)
            if total is not None:
                current *= total
            current.baddbmm_(end, residual)
        chunks.restore(reads, o, first)
        if save:
            errors[:, first:last] = (inverse @ residuals).flatten(0, 1)
    final = torch.cat(running).unflatten(0, state.shape[:2])
    return Forward(o, final, *(x.flatten(1, 2).unflatten(0, (batch, heads)) for x in (states, errors)))


def steps(x: Tensor | None, count: int) -> Sequence[Tensor | None]:
    """The chunks of x [B, HV, count, ...], each [B * HV, ...]."""
    return [None] * count if x is None else x.flatten(0, 1).unbind(1)


def decayed(
    chunks: Chunks,
    q: Tensor,
    k: Tensor,
    g: Tensor | None,
    first: int,
    last: int,
    adjoint: bool = False,
) -> Decay:
    """Keys and queries of the chunks first ... last - 1, decayed by as many gates per token as g has.

    ``adjoint`` keeps what the backward pass needs.
    """
    kq = chunks.arrange_both(k, q, first, last)
    if g is None:
        return NoDecay(kq)
    gates = chunks.arrange(g, first, last)
    return HeadDecay(kq, gates) if g.shape[-1] == 1 else ChannelDecay(kq, gates, adjoint)


def groups(chunks: Chunks, q: Tensor) -> list[tuple[int, int]]:
    """Ranges of chunks to work on at a time, so that what they need at once stays in a cache."""
    used = len(chunks.sequence)
    batch, _, heads, keys = q.shape
    step = max(1, _GROUP_ELEMENTS // max(1, batch * heads * chunks.rows * keys))
    return [(first, min(first + step, used)) for first in range(0, used, step)]

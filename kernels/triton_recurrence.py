"""The delta rule as a loop over tokens in Triton, shared by the recurrent Triton forms of its mechanisms."""

import torch
from torch import Tensor

from kernels.packing import sequence_offsets
from kernels.triton_runtime import tl, triton, width

_COLUMNS = 16


@triton.jit
def recurrence_kernel(
    q, k, v, g, beta, initial, final, o, offsets, tokens, heads,
    K: tl.constexpr, BK: tl.constexpr, V: tl.constexpr, BV: tl.constexpr, GATES: tl.constexpr,
    PACKED: tl.constexpr,
):  # fmt: skip
    """Some columns of the state of one sequence and head, in registers, token after token. GATES is K, 1, or
    0 for no decay. Each step is that of `kernels.recurrence.scan_tokens`."""
    head = tl.program_id(0).to(tl.int64)
    if PACKED:
        base = head % heads
        sequence = head // heads
    else:
        base = head // heads * tokens * heads + head % heads
        sequence = 0
    channels = tl.arange(0, BK)
    columns = tl.program_id(1) * BV + tl.arange(0, BV)
    inside = (channels[:, None] < K) & (columns[None, :] < V)
    place = head * K * V + channels[:, None] * V + columns[None, :]
    state = tl.load(initial + place, mask=inside, other=0.0)
    for token in range(tl.load(offsets + sequence), tl.load(offsets + sequence + 1)):
        row = base + token * heads
        key = tl.load(k + row * K + channels, mask=channels < K, other=0.0)
        query = tl.load(q + row * K + channels, mask=channels < K, other=0.0)
        value = tl.load(v + row * V + columns, mask=columns < V, other=0.0)
        if GATES == 1:
            state *= tl.exp(tl.load(g + row))
        elif GATES > 1:
            state *= tl.exp(tl.load(g + row * K + channels, mask=channels < K, other=0.0))[:, None]
        error = value - tl.sum(key[:, None] * state, axis=0)
        state += key[:, None] * (tl.load(beta + row) * error)[None, :]
        tl.store(o + row * V + columns, tl.sum(query[:, None] * state, axis=0), mask=columns < V)
    tl.store(final + place, state, mask=inside)


def forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None,
    beta: Tensor,
    state: Tensor,
    cu_seqlens: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, HV, V] and final state [N, HV, K, V] from prepared arguments, in their precision.

    At most 128 key channels. Sums over channels are float32 or float64 additions; no tensor cores.
    """
    tokens, heads, values = v.shape[1:]
    keys = q.shape[-1]
    o, final = v.new_empty(v.shape), state.new_empty(state.shape)
    ends = [0, tokens] if cu_seqlens is None else sequence_offsets(cu_seqlens, tokens)
    offsets = torch.tensor(ends, dtype=torch.int64, device=v.device)
    q, k, v, beta, state = (x.contiguous() for x in (q, k, v, beta, state))
    # A decay that is not there is never read.
    gates, g = (0, q) if g is None else (g.shape[-1], g.contiguous())
    columns = width(values, _COLUMNS)
    recurrence_kernel[(state.shape[0] * heads, triton.cdiv(values, columns))](
        q,
        k,
        v,
        g,
        beta,
        state,
        final,
        o,
        offsets,
        tokens,
        heads,
        K=keys,
        BK=triton.next_power_of_2(keys),
        V=values,
        BV=columns,
        GATES=gates,
        PACKED=cu_seqlens is not None,
    )
    return o, final

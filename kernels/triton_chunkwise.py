"""The delta rule chunk by chunk in Triton, shared by the chunked Triton forms of its mechanisms."""

from bisect import bisect_left
from typing import Any

import torch
from torch import Tensor

from kernels.chunkwise import Forward
from kernels.packing import Chunks, chunk_count, chunk_rows
from kernels.triton_decay import load_rows, store_rows, sums_into, sums_out_of
from kernels.triton_runtime import LAUNCH, NARROWEST, tl, triton, width
from kernels.triton_scores import SCORES_LAUNCH, inverse_kernel, scores_kernel

MOST_ROWS = 64
"""The longest chunk: its square matrices stay in registers."""

STATE_COLUMNS, OUTPUT_COLUMNS = 32, 64


@triton.jit
def states_kernel(
    k, v, g, beta, inverse, initial, final, states, errors, spans, bounds, count, tokens, heads,
    K: tl.constexpr, BK: tl.constexpr, V: tl.constexpr, BV: tl.constexpr, GATES: tl.constexpr,
    WIDE: tl.constexpr, ROWS: tl.constexpr, SAVED: tl.constexpr, PACKED: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    """Some columns of the state of one sequence and head, chunk after chunk; the state before each chunk and
    its errors E = N (V - (e^G K) S) are kept."""
    head = tl.program_id(0).to(tl.int64)
    if PACKED:
        base = head % heads
        slot = base
        sequence = head // heads
    else:
        base = head // heads * tokens * heads + head % heads
        slot = head
        sequence = 0
    channels = tl.arange(0, BK)
    gate = tl.arange(0, WIDE)
    columns = tl.program_id(1) * BV + tl.arange(0, BV)
    row = tl.arange(0, ROWS)
    inside = (channels[:, None] < K) & (columns[None, :] < V)
    place = channels[:, None] * V + columns[None, :]
    state = tl.load(initial + head * K * V + place, mask=inside, other=0.0)
    for chunk in range(tl.load(bounds + sequence), tl.load(bounds + sequence + 1)):
        start = tl.load(spans + 2 * chunk)
        end = tl.load(spans + 2 * chunk + 1)
        tl.store(states + (slot * count + chunk) * K * V + place, state, mask=inside)
        keys = load_rows(k, base, heads, start, end, channels, K, ROWS)
        if GATES > 0:
            keys *= tl.exp(sums_into(g, base, heads, start, end, gate, GATES, WIDE, ROWS, ROWS))
        right = load_rows(v, base, heads, start, end, columns, V, ROWS)
        right -= tl.dot(keys, state, input_precision=P)
        square = (slot * count + chunk) * ROWS * ROWS + row[:, None] * ROWS + row[None, :]
        error = tl.dot(tl.load(inverse + square), right, input_precision=P)
        kept = errors + ((slot * count + chunk) * SAVED + row[:, None]) * V + columns[None, :]
        tl.store(kept, error, mask=(row[:, None] < SAVED) & (columns[None, :] < V))
        token = start + row
        strength = tl.load(beta + base + token * heads, mask=token < end, other=0.0)
        # Loaded again: to keep them would cost more than a look into the cache.
        keys = load_rows(k, base, heads, start, end, channels, K, ROWS)
        if GATES > 0:
            keys *= tl.exp(sums_out_of(g, base, heads, start, end, gate, GATES, WIDE, ROWS, ROWS))
            gates = load_rows(g, base, heads, start, end, gate, GATES, ROWS)
            state *= tl.exp(tl.sum(gates, axis=0))[:, None]
        state += tl.dot(tl.trans(keys), strength[:, None] * error, input_precision=P)
    tl.store(final + head * K * V + place, state, mask=inside)


@triton.jit
def outputs_kernel(
    q, g, beta, qk, states, errors, o, spans, count, tokens, heads,
    K: tl.constexpr, BK: tl.constexpr, V: tl.constexpr, BV: tl.constexpr, GATES: tl.constexpr,
    WIDE: tl.constexpr, ROWS: tl.constexpr, SAVED: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    """Some columns of the outputs O = (e^G Q) S + Tril(Scores(Q, K)) Diag(beta) E of one chunk and head."""
    chunk = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    base = head // heads * tokens * heads + head % heads
    start = tl.load(spans + 2 * chunk)
    end = tl.load(spans + 2 * chunk + 1)
    channels = tl.arange(0, BK)
    columns = tl.program_id(2) * BV + tl.arange(0, BV)
    row = tl.arange(0, ROWS)
    queries = load_rows(q, base, heads, start, end, channels, K, ROWS)
    if GATES > 0:
        gate = tl.arange(0, WIDE)
        queries *= tl.exp(sums_into(g, base, heads, start, end, gate, GATES, WIDE, ROWS, ROWS))
    before = states + (head * count + chunk) * K * V + channels[:, None] * V + columns[None, :]
    inside = (channels[:, None] < K) & (columns[None, :] < V)
    output = tl.dot(queries, tl.load(before, mask=inside, other=0.0), input_precision=P)
    kept = errors + ((head * count + chunk) * SAVED + row[:, None]) * V + columns[None, :]
    error = tl.load(kept, mask=(row[:, None] < SAVED) & (columns[None, :] < V), other=0.0)
    token = start + row
    strength = tl.load(beta + base + token * heads, mask=token < end, other=0.0)
    square = (head * count + chunk) * ROWS * ROWS + row[:, None] * ROWS + row[None, :]
    lower = (row[:, None] >= row[None, :]) & (token[:, None] < end)
    scores = tl.load(qk + square, mask=lower, other=0.0)
    output += tl.dot(scores, strength[:, None] * error, input_precision=P)
    store_rows(o, output, base, heads, start, end, columns, V, ROWS)


class Plan:
    """What the kernels of one call share: how the tokens of contiguous q [B, T, HV, K] lie in chunks.

    ``spans`` [chunks, 2] first token and token past the last; ``bounds`` [N + 1] the chunk that each packed
    sequence starts with and the one past the last (sequences along the batch all have the same chunks);
    ``count`` chunks have room, ``used`` are there; ``shape`` the constants, ``sizes`` the numbers that
    kernels take.
    """

    def __init__(
        self, q: Tensor, g: Tensor | None, cu_seqlens: Tensor | None, chunk_size: int, precision: str
    ) -> None:
        batch, tokens, heads, keys = q.shape
        chunks = Chunks(tokens, chunk_size, cu_seqlens)
        sequences = 1 if cu_seqlens is None else len(cu_seqlens) - 1
        firsts = [bisect_left(chunks.sequence, n) for n in range(sequences + 1)]
        self.spans = torch.tensor(chunks.spans, dtype=torch.int64, device=q.device)
        self.bounds = torch.tensor(firsts, dtype=torch.int64, device=q.device)
        self.packed, self.used, self.pairs = chunks.packed, len(chunks.spans), batch * heads
        self.count, self.saved = chunk_count(tokens, chunk_size, cu_seqlens), chunk_rows(chunk_size)
        self.rows = max(NARROWEST, self.saved)
        self.sizes = (self.count, tokens, heads)
        gates = 0 if g is None else g.shape[-1]
        self.shape: dict[str, Any] = {
            "K": keys,
            "BK": width(keys),
            "GATES": gates,
            "WIDE": 1 if gates == 1 else width(keys),
            "ROWS": self.rows,
            "P": precision,
        }
        self._square = (batch, heads, self.count, self.rows, self.rows)

    def square(self, like: Tensor) -> Tensor:
        """Room for a matrix [rows, rows] of each chunk, [B, HV, count, rows, rows]."""
        return like.new_empty(self._square)

    def system(self, q: Tensor, k: Tensor, g: Tensor, beta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Scores(Q, K), Scores(K, K) and N, the inverse of I + StrictTril(Scores(K, K)) Diag(beta)."""
        qk, kk, inverse = (self.square(q) for _ in range(3))
        grid = (self.used * (self.rows // 16), self.pairs)
        scores_kernel[grid](q, k, g, qk, kk, self.spans, *self.sizes, **self.shape, **SCORES_LAUNCH)
        constants = {"ROWS": self.rows, "P": self.shape["P"]}
        inverse_kernel[(self.used, self.pairs)](
            kk, beta, inverse, self.spans, *self.sizes, **constants, **LAUNCH
        )
        return qk, kk, inverse


def forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None,
    beta: Tensor,
    state: Tensor,
    cu_seqlens: Tensor | None,
    chunk_size: int,
    precision: str,
) -> Forward:
    """`kernels.chunkwise.forward` with ``save``, in four kernels, of which one is sequential over chunks.

    Chunks of at most 64 tokens, at most 128 key channels. ``precision`` is "ieee" or "tf32x3"; exponentials
    are Triton's tl.exp.
    """
    batch, _, heads, values = v.shape
    keys = q.shape[-1]
    plan = Plan(q, g, cu_seqlens, chunk_size, precision)
    states = v.new_empty(batch, heads, plan.count * keys, values)
    errors = v.new_empty(batch, heads, plan.count * plan.saved, values)
    o, final = v.new_empty(v.shape), state.new_empty(state.shape)
    # A decay that is not there is never read.
    q, k, v, g, beta, state = (x.contiguous() for x in (q, k, v, q if g is None else g, beta, state))
    # Room for more chunks than the offsets make.
    states[:, :, plan.used * keys :] = 0
    errors[:, :, plan.used * plan.saved :] = 0
    qk, _, inverse = plan.system(q, k, g, beta)
    shape = plan.shape | LAUNCH | {"V": values, "SAVED": plan.saved}
    columns = width(values, STATE_COLUMNS)
    grid = (state.shape[0] * heads, triton.cdiv(values, columns))
    scanned = (k, v, g, beta, inverse, state, final, states, errors, plan.spans, plan.bounds)
    states_kernel[grid](*scanned, *plan.sizes, BV=columns, PACKED=plan.packed, **shape)
    columns = width(values, OUTPUT_COLUMNS)
    grid = (plan.used, plan.pairs, triton.cdiv(values, columns))
    outputs_kernel[grid](q, g, beta, qk, states, errors, o, plan.spans, *plan.sizes, BV=columns, **shape)
    return Forward(o, final, states, errors)

"""The adjoint of the chunked delta rule in Triton: explicit gradients, by a scan over chunks from the end."""

from torch import Tensor

from kernels.chunkwise_backward import Gradients
from kernels.triton_chunkwise import OUTPUT_COLUMNS, STATE_COLUMNS, Plan
from kernels.triton_decay import load_rows, store_rows, sums_into, sums_out_of
from kernels.triton_gradients import CHANNELS, gradients_kernel
from kernels.triton_runtime import LAUNCH, tl, triton, width


@triton.jit
def adjoint_states_kernel(
    q, k, g, beta, qk, inverse, d_o, d_final, d_initial, d_states, d_writes, d_right, spans, bounds,
    count, tokens, heads,
    K: tl.constexpr, BK: tl.constexpr, V: tl.constexpr, BV: tl.constexpr, GATES: tl.constexpr,
    WIDE: tl.constexpr, ROWS: tl.constexpr, PACKED: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    """Some columns of the gradient dS of the state of one sequence and head, from the last chunk on back.

    Kept are dS after each chunk, dW = Tril(Scores(Q, K))^T dO + (e^{G_C - G} K) dS and
    Y = N^T Diag(beta) dW; before the chunk dS is (e^G Q)^T dO - (e^G K)^T Y + Diag(e^{G_C}) dS.
    """
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
    state = tl.load(d_final + head * K * V + place, mask=inside, other=0.0)
    first = tl.load(bounds + sequence)
    last = tl.load(bounds + sequence + 1)
    for step in range(0, last - first):
        chunk = last - 1 - step
        start = tl.load(spans + 2 * chunk)
        end = tl.load(spans + 2 * chunk + 1)
        token = start + row
        tl.store(d_states + (slot * count + chunk) * K * V + place, state, mask=inside)
        upstream = load_rows(d_o, base, heads, start, end, columns, V, ROWS)
        square = (slot * count + chunk) * ROWS * ROWS + row[:, None] * ROWS + row[None, :]
        lower = (row[:, None] >= row[None, :]) & (token[:, None] < end)
        scores = tl.load(qk + square, mask=lower, other=0.0)
        write = tl.dot(tl.trans(scores), upstream, input_precision=P)
        keys = load_rows(k, base, heads, start, end, channels, K, ROWS)
        if GATES > 0:
            keys *= tl.exp(sums_out_of(g, base, heads, start, end, gate, GATES, WIDE, ROWS, ROWS))
        write += tl.dot(keys, state, input_precision=P)
        store_rows(d_writes, write, base, heads, start, end, columns, V, ROWS)
        strength = tl.load(beta + base + token * heads, mask=token < end, other=0.0)
        transposed = tl.trans(tl.load(inverse + square))
        right = tl.dot(transposed, strength[:, None] * write, input_precision=P)
        store_rows(d_right, right, base, heads, start, end, columns, V, ROWS)
        queries = load_rows(q, base, heads, start, end, channels, K, ROWS)
        keys = load_rows(k, base, heads, start, end, channels, K, ROWS)
        if GATES > 0:
            into = tl.exp(sums_into(g, base, heads, start, end, gate, GATES, WIDE, ROWS, ROWS))
            queries *= into
            keys *= into
            gates = load_rows(g, base, heads, start, end, gate, GATES, ROWS)
            state *= tl.exp(tl.sum(gates, axis=0))[:, None]
        state += tl.dot(tl.trans(queries), upstream, input_precision=P)
        state -= tl.dot(tl.trans(keys), right, input_precision=P)
    tl.store(d_initial + head * K * V + place, state, mask=inside)


@triton.jit
def adjoint_scores_kernel(
    beta, kk, errors, d_o, d_writes, d_right, d_qk, d_kk, d_beta, spans, count, tokens, heads,
    V: tl.constexpr, BV: tl.constexpr, ROWS: tl.constexpr, SAVED: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    """The gradients Tril(dO W^T) and -StrictTril(Y W^T) of the scores of one chunk and head, and of beta:
    rows of E . (dW - StrictTril(Scores(K, K))^T Y). W = Diag(beta) E."""
    chunk = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    base = head // heads * tokens * heads + head % heads
    start = tl.load(spans + 2 * chunk)
    end = tl.load(spans + 2 * chunk + 1)
    row = tl.arange(0, ROWS)
    token = start + row
    strength = tl.load(beta + base + token * heads, mask=token < end, other=0.0)
    square = (head * count + chunk) * ROWS * ROWS + row[:, None] * ROWS + row[None, :]
    below = row[:, None] > row[None, :]
    scores = tl.trans(tl.load(kk + square, mask=below & (token[:, None] < end), other=0.0))
    of_qk = tl.zeros_like(scores)
    of_kk = tl.zeros_like(scores)
    of_beta = tl.zeros_like(strength)
    for first in range(0, V, BV):
        columns = first + tl.arange(0, BV)
        kept = errors + ((head * count + chunk) * SAVED + row[:, None]) * V + columns[None, :]
        error = tl.load(kept, mask=(row[:, None] < SAVED) & (columns[None, :] < V), other=0.0)
        write = tl.trans(strength[:, None] * error)
        right = load_rows(d_right, base, heads, start, end, columns, V, ROWS)
        upstream = load_rows(d_o, base, heads, start, end, columns, V, ROWS)
        of_qk += tl.dot(upstream, write, input_precision=P)
        of_kk -= tl.dot(right, write, input_precision=P)
        own = load_rows(d_writes, base, heads, start, end, columns, V, ROWS)
        own -= tl.dot(scores, right, input_precision=P)
        of_beta += tl.sum(own * error, axis=1)
    tl.store(d_qk + square, tl.where(row[:, None] >= row[None, :], of_qk, 0.0))
    tl.store(d_kk + square, tl.where(below, of_kk, 0.0))
    tl.store(d_beta + base + token * heads, of_beta, mask=token < end)


def backward(
    d_o: Tensor,
    d_final: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None,
    beta: Tensor,
    states: Tensor,
    errors: Tensor,
    cu_seqlens: Tensor | None,
    chunk_size: int,
    precision: str,
) -> Gradients:
    """`kernels.chunkwise_backward.backward` at scale 1, in five kernels, of which one is sequential.

    The scores and N are formed again; ``states`` and ``errors`` are those of the forward pass. Beyond them
    and the gradients, memory is for T V numbers per head, one state and four square matrices per chunk.
    """
    batch, _, heads, values = v.shape
    keys = q.shape[-1]
    plan = Plan(q, g, cu_seqlens, chunk_size, precision)
    q, k, g_or_q, beta = (x.contiguous() for x in (q, k, q if g is None else g, beta))
    d_o, d_final, states, errors = (x.contiguous() for x in (d_o, d_final, states, errors))
    qk, kk, inverse = plan.system(q, k, g_or_q, beta)
    d_states, d_initial = states.new_empty(states.shape), d_final.new_empty(d_final.shape)
    d_writes, d_right, d_beta = v.new_empty(v.shape), v.new_empty(v.shape), beta.new_empty(beta.shape)
    sizes, shape = plan.sizes, plan.shape | LAUNCH | {"V": values}
    columns = width(values, STATE_COLUMNS)
    grid = (d_final.shape[0] * heads, triton.cdiv(values, columns))
    scanned = (d_o, d_final, d_initial, d_states, d_writes, d_right, plan.spans, plan.bounds)
    adjoint_states_kernel[grid](
        q, k, g_or_q, beta, qk, inverse, *scanned, *sizes, BV=columns, PACKED=plan.packed, **shape
    )
    d_qk, d_kk = plan.square(v), plan.square(v)
    constants = LAUNCH | {"V": values, "ROWS": plan.rows, "SAVED": plan.saved, "P": precision}
    columns = width(values, OUTPUT_COLUMNS)
    adjoint_scores_kernel[(plan.used, plan.pairs)](
        beta,
        kk,
        errors,
        d_o,
        d_writes,
        d_right,
        d_qk,
        d_kk,
        d_beta,
        plan.spans,
        *sizes,
        BV=columns,
        **constants,
    )
    channels = width(keys, CHANNELS)
    parts = triton.cdiv(keys, channels)
    gates = plan.shape["GATES"]
    d_q, d_k = q.new_empty(q.shape), k.new_empty(k.shape)
    # One gate for all channels gets a share from each part of them.
    d_g = q.new_empty(batch, q.shape[1], heads, parts if gates == 1 else gates)
    grid = (plan.used, plan.pairs, parts)
    shape |= {"BK": channels, "WIDE": 1 if gates == 1 else channels, "SAVED": plan.saved}
    read = (q, k, g_or_q, beta, states, errors, d_o, d_right, d_states, d_qk, d_kk)
    gradients_kernel[grid](
        *read, d_q, d_k, d_g, plan.spans, *sizes, BV=columns, SHARES=d_g.shape[-1],
        LEVELS=plan.rows.bit_length() - 1, **shape,
    )  # fmt: skip
    d_g = d_g.sum(-1, keepdim=True) if gates == 1 else d_g
    return Gradients(d_q, d_k, d_right, None if g is None else d_g, d_beta, d_initial)

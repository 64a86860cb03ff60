"""Chunkwise form of KDA, GDN, the delta rule and linear attention, per head, without dividing by a decay.

A chunk of C tokens is done by matrix products from the state before it. With Γ_{j→i} = Diag(α_{j+1}⋯α_i), the
decay after token j up to and with token i (j = 0: since the chunk began):

    L_ij = β_i·k_iᵀΓ_{j→i}k_j for j < i,   T = (I + L)⁻¹Diag(β)   (UT transform),
    W = T·(rows Γ_{0→i}k_i),   U = T·V,   N = U − W·S   (what each token adds along its key),
    o_i = (Γ_{0→i}q_i)ᵀS + Σ_{j≤i} (q_iᵀΓ_{j→i}k_j)·N_j,   S ← Γ_{0→C}S + Σ_j (Γ_{j→C}k_j)·N_j.

Kimi Linear (arXiv 2510.26692), section 3; Gated Delta Networks (2024), section 3.3. Those write Γ_{j→i} as
Γ_i/Γ_j; products over half-open ranges need no division, so α = 0 is allowed.
"""

from collections.abc import Sequence

from verify.numbers.protocol import M, NumberSystem, S
from verify.numbers.triangular import solve_unit_lower


def decayed(numbers: NumberSystem[S, M], k: Sequence[M], alpha: Sequence[M]) -> list[list[M]]:
    """table[i][j] = Γ_{j→i}k_j (K×1) for j ≤ i."""
    table: list[list[M]] = []
    row: list[M] = []
    for k_i, alpha_i in zip(k, alpha, strict=True):
        row = [*(numbers.scale_rows(alpha_i, x) for x in row), k_i]
        table.append(row)
    return table


def cumulative(numbers: NumberSystem[S, M], alpha: Sequence[M]) -> list[M]:
    """The diagonals of Γ_{0→i} = Diag(α_1⋯α_i), K×1 each."""
    products = [alpha[0]]
    for alpha_i in alpha[1:]:
        products.append(numbers.scale_rows(alpha_i, products[-1]))
    return products


def scores(numbers: NumberSystem[S, M], x: Sequence[M], table: list[list[M]]) -> M:
    """The lower triangular C×C matrix of x_iᵀΓ_{j→i}k_j, j ≤ i, from C vectors x_i and `decayed`'s table."""
    rows: list[list[S]] = []
    for x_i, keys in zip(x, table, strict=True):
        column = numbers.matmul(numbers.stack_rows(keys), x_i)
        row = [numbers.entry(column, j, 0) for j in range(len(keys))]
        rows.append(row + [numbers.number(0)] * (len(table) - len(keys)))
    return numbers.matrix(rows)


def ut_transform(numbers: NumberSystem[S, M], k: Sequence[M], table: list[list[M]], beta: Sequence[S]) -> M:
    """T = (I + L)⁻¹Diag(β), C×C, by forward substitution; table is that of `decayed`."""
    strengths = numbers.matrix([[beta_i] for beta_i in beta])
    lower = numbers.scale_rows(strengths, scores(numbers, k, table))
    return solve_unit_lower(numbers, lower, numbers.scale_rows(strengths, numbers.eye(len(beta))))


def delta_chunk(
    numbers: NumberSystem[S, M],
    state: M,
    k: Sequence[M],
    v: Sequence[M],
    alpha: Sequence[M],
    beta: Sequence[S],
) -> M:
    """N = U − W·S, C×V: what each token of the chunk writes along its key. state: K×V before the chunk."""
    transform = ut_transform(numbers, k, decayed(numbers, k, alpha), beta)
    from_start = [numbers.scale_rows(g, k_i) for g, k_i in zip(cumulative(numbers, alpha), k, strict=True)]
    w = numbers.matmul(transform, numbers.stack_rows(from_start))
    u = numbers.matmul(transform, numbers.stack_rows(v))
    return numbers.sub(u, numbers.matmul(w, state))


def linear_chunk(
    numbers: NumberSystem[S, M],
    state: M,
    q: Sequence[M],
    k: Sequence[M],
    alpha: Sequence[M],
    written: M,
    scale: S,
) -> tuple[list[M], M]:
    """(C outputs V×1, the state after the chunk) when token j adds k_j·written_jᵀ after its decay.

    state: K×V before the chunk; written: C×V, the values themselves for linear attention.
    """
    queries = [numbers.scale(scale, q_i) for q_i in q]
    table, products = decayed(numbers, k, alpha), cumulative(numbers, alpha)
    from_start = [numbers.scale_rows(g, q_i) for g, q_i in zip(products, queries, strict=True)]
    outputs = numbers.add(
        numbers.matmul(numbers.stack_rows(from_start), state),
        numbers.matmul(scores(numbers, queries, table), written),
    )
    keys = numbers.transpose(numbers.stack_rows(table[-1]))
    after = numbers.add(numbers.scale_rows(products[-1], state), numbers.matmul(keys, written))
    return numbers.row_vectors(outputs), after


def chunkwise(
    numbers: NumberSystem[S, M],
    q: Sequence[M],
    k: Sequence[M],
    v: Sequence[M],
    alpha: Sequence[M],
    beta: Sequence[S] | None,
    *,
    scale: S,
    state: M,
    chunk_size: int,
) -> tuple[list[M], M]:
    """All T tokens in chunks of `chunk_size` ≥ 1 (the last may be shorter): (T outputs V×1, final state K×V).

    Args:
        numbers: the number system.
        q, k, alpha: T vectors K×1 each. GDN's scalar decay is a constant vector (`spread`), the delta rule's
            all ones.
        v: T vectors V×1.
        beta: T scalars, or None for linear attention, which erases nothing.
        scale: factor on q.
        state: K×V before the first token.
        chunk_size: tokens per chunk.
    """
    outputs: list[M] = []
    for start in range(0, len(q), chunk_size):
        part = slice(start, start + chunk_size)
        written = numbers.stack_rows(v[part])
        if beta is not None:
            written = delta_chunk(numbers, state, k[part], v[part], alpha[part], beta[part])
        chunk_outputs, state = linear_chunk(numbers, state, q[part], k[part], alpha[part], written, scale)
        outputs += chunk_outputs
    return outputs, state


def spread(numbers: NumberSystem[S, M], alpha: Sequence[S], channels: int) -> list[M]:
    """GDN's decays, one number per token, as vectors channels×1."""
    ones = numbers.matrix([[1]] * channels)
    return [numbers.scale(alpha_t, ones) for alpha_t in alpha]

"""The generalized delta rule, per head: S_t = (Diag(α_t) + b_t·a_tᵀ)S_{t−1} + k_t·v_tᵀ.

α_t is a vector over the K channels; a_t reads the state before its decay. flash-linear-attention's DPLR, the
recurrence of RWKV-7 (arXiv 2503.14456) transposed to a K×V state; o_t = S_tᵀ(scale·q_t).
"""

from collections.abc import Sequence

from derivations.kda.definition import decay
from derivations.linear.definition import read, write
from verify.numbers.protocol import M, NumberSystem, S

__all__ = ["decay", "recurrence", "step"]


def step(
    numbers: NumberSystem[S, M], state: M, q: M, k: M, v: M, a: M, b: M, alpha: M, scale: S
) -> tuple[M, M]:
    """One token: (the state after its write, the output V×1 read from that state).

    state: K×V; q, k, a, b, alpha: K×1; v: V×1; scale: a scalar.
    """
    found = numbers.matmul(numbers.transpose(state), a)
    moved = numbers.add(numbers.scale_rows(alpha, state), numbers.outer(b, found))
    state = write(numbers, moved, k, v)
    return state, read(numbers, state, q, scale)


def recurrence(
    numbers: NumberSystem[S, M],
    q: Sequence[M],
    k: Sequence[M],
    v: Sequence[M],
    a: Sequence[M],
    b: Sequence[M],
    alpha: Sequence[M],
    *,
    scale: S,
    state: M,
) -> tuple[list[M], M]:
    """All T tokens from the given state K×V: (T outputs V×1, final state). v: V×1, the others K×1 each."""
    outputs: list[M] = []
    for q_t, k_t, v_t, a_t, b_t, alpha_t in zip(q, k, v, a, b, alpha, strict=True):
        state, output = step(numbers, state, q_t, k_t, v_t, a_t, b_t, alpha_t, scale)
        outputs.append(output)
    return outputs, state

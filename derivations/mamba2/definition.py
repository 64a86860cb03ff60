"""Mamba-2, per head: S_t = α_t·S_{t−1} + k_t·v_tᵀ, α_t one number per token.

Dao, Gu, Transformers are SSMs (arXiv 2405.21060), the state transposed to K×V. In its names α_t is
e^{A·dt_t}, k_t is B_t, v_t is dt_t·x_t and q_t is C_t; o_t = S_tᵀ(scale·q_t), where it has scale = 1.
"""

from collections.abc import Sequence

from derivations.gdn.definition import decay
from derivations.linear.definition import read, write
from verify.numbers.protocol import M, NumberSystem, S

__all__ = ["decay", "recurrence", "step"]


def step(numbers: NumberSystem[S, M], state: M, q: M, k: M, v: M, alpha: S, scale: S) -> tuple[M, M]:
    """One token: (the state after its write, the output V×1 read from that state).

    state: K×V; q, k: K×1; v: V×1; alpha, scale: scalars.
    """
    state = write(numbers, numbers.scale(alpha, state), k, v)
    return state, read(numbers, state, q, scale)


def recurrence(
    numbers: NumberSystem[S, M],
    q: Sequence[M],
    k: Sequence[M],
    v: Sequence[M],
    alpha: Sequence[S],
    *,
    scale: S,
    state: M,
) -> tuple[list[M], M]:
    """All T tokens from the given state K×V: (T outputs V×1, final state). q, k: K×1 each; v: V×1 each."""
    outputs: list[M] = []
    for q_t, k_t, v_t, alpha_t in zip(q, k, v, alpha, strict=True):
        state, output = step(numbers, state, q_t, k_t, v_t, alpha_t, scale)
        outputs.append(output)
    return outputs, state

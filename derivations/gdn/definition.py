"""Gated DeltaNet, per head: S_t = α_t(I − β_t·k_t·k_tᵀ)S_{t−1} + β_t·k_t·v_tᵀ, α_t one number per token.

Yang, Kautz, Hatamizadeh, Gated Delta Networks (2024), eq. 10, transposed to a K×V state. In order: decay,
erase what the decayed state holds at k_t, write, read o_t = S_tᵀ(scale·q_t).
"""

from collections.abc import Sequence

from derivations.delta.definition import write
from derivations.linear.definition import read
from verify.numbers.protocol import M, NumberSystem, S


def decay(numbers: NumberSystem[S, M], g: Sequence[S]) -> list[S]:
    """The decays α_t = e^{g_t} for gates g_t given as natural logarithms."""
    return [numbers.exp(g_t) for g_t in g]


def step(numbers: NumberSystem[S, M], state: M, q: M, k: M, v: M, alpha: S, beta: S, scale: S) -> tuple[M, M]:
    """One token: (the state after its write, the output V×1 read from that state).

    state: K×V; q, k: K×1; v: V×1; alpha, beta, scale: scalars.
    """
    state = write(numbers, numbers.scale(alpha, state), k, v, beta)
    return state, read(numbers, state, q, scale)


def recurrence(
    numbers: NumberSystem[S, M],
    q: Sequence[M],
    k: Sequence[M],
    v: Sequence[M],
    alpha: Sequence[S],
    beta: Sequence[S],
    *,
    scale: S,
    state: M,
) -> tuple[list[M], M]:
    """All T tokens from the given state K×V: (T outputs V×1, final state). q, k: K×1 each; v: V×1 each."""
    outputs: list[M] = []
    for q_t, k_t, v_t, alpha_t, beta_t in zip(q, k, v, alpha, beta, strict=True):
        state, output = step(numbers, state, q_t, k_t, v_t, alpha_t, beta_t, scale)
        outputs.append(output)
    return outputs, state

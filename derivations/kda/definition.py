"""Kimi Delta Attention, per head: S_t = (I − β_t·k_t·k_tᵀ)Diag(α_t)S_{t−1} + β_t·k_t·v_tᵀ.

α_t is a vector over the K channels. Kimi Team, Kimi Linear (arXiv 2510.26692), eq. 1. In order: decay, erase
what the decayed state holds at k_t, write, read o_t = S_tᵀ(scale·q_t).
"""

from collections.abc import Sequence

from derivations.delta.definition import write
from derivations.linear.definition import read
from verify.numbers.protocol import M, NumberSystem, S


def decay(numbers: NumberSystem[S, M], g: Sequence[M]) -> list[M]:
    """The decays α_t = e^{g_t}, K×1 each, for gates g_t given as natural logarithms."""
    return [numbers.exp_entries(g_t) for g_t in g]


def step(numbers: NumberSystem[S, M], state: M, q: M, k: M, v: M, alpha: M, beta: S, scale: S) -> tuple[M, M]:
    """One token: (the state after its write, the output V×1 read from that state).

    state: K×V; q, k, alpha: K×1; v: V×1; beta, scale: scalars.
    """
    state = write(numbers, numbers.scale_rows(alpha, state), k, v, beta)
    return state, read(numbers, state, q, scale)


def recurrence(
    numbers: NumberSystem[S, M],
    q: Sequence[M],
    k: Sequence[M],
    v: Sequence[M],
    alpha: Sequence[M],
    beta: Sequence[S],
    *,
    scale: S,
    state: M,
) -> tuple[list[M], M]:
    """All T tokens from the given state K×V: (T outputs V×1, final state). q, k, alpha: K×1; v: V×1 each."""
    outputs: list[M] = []
    for q_t, k_t, v_t, alpha_t, beta_t in zip(q, k, v, alpha, beta, strict=True):
        state, output = step(numbers, state, q_t, k_t, v_t, alpha_t, beta_t, scale)
        outputs.append(output)
    return outputs, state

"""The delta rule, per head: S_t = S_{t−1} + β_t·k_t(v_t − S_{t−1}ᵀk_t)ᵀ.

Multiplied out: (I − β_t·k_t·k_tᵀ)S_{t−1} + β_t·k_t·v_tᵀ. Yang et al., Parallelizing Linear Transformers with
the Delta Rule over Sequence Length (2024), section 2.2 (after Schlag et al. 2021). o_t = S_tᵀ(scale·q_t); the
state is K×V, the transpose of those papers'.
"""

from collections.abc import Sequence

from derivations.linear.definition import read
from verify.numbers.protocol import M, NumberSystem, S


def write(numbers: NumberSystem[S, M], state: M, k: M, v: M, beta: S) -> M:
    """S + β·k(v − Sᵀk)ᵀ: what the key k held is erased and v written, both with strength β.

    state: K×V; k: K×1; v: V×1.
    """
    error = numbers.sub(v, numbers.matmul(numbers.transpose(state), k))
    return numbers.add(state, numbers.outer(numbers.scale(beta, k), error))


def step(numbers: NumberSystem[S, M], state: M, q: M, k: M, v: M, beta: S, scale: S) -> tuple[M, M]:
    """One token: (the state after its write, the output V×1 read from that state)."""
    state = write(numbers, state, k, v, beta)
    return state, read(numbers, state, q, scale)


def recurrence(
    numbers: NumberSystem[S, M],
    q: Sequence[M],
    k: Sequence[M],
    v: Sequence[M],
    beta: Sequence[S],
    *,
    scale: S,
    state: M,
) -> tuple[list[M], M]:
    """All T tokens from the given state K×V: (T outputs V×1, final state). q, k: K×1 each; v: V×1 each."""
    outputs: list[M] = []
    for q_t, k_t, v_t, beta_t in zip(q, k, v, beta, strict=True):
        state, output = step(numbers, state, q_t, k_t, v_t, beta_t, scale)
        outputs.append(output)
    return outputs, state

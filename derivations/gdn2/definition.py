"""Gated DeltaNet 2, per head: S_t = (I − k_t(b_t∘k_t)ᵀ)Diag(α_t)S_{t−1} + k_t(w_t∘v_t)ᵀ, ∘ entrywise.

α_t and the erase gate b_t are vectors over the K channels, the write gate w_t over the V channels. As
flash-linear-attention states it. In order: decay, erase what the decayed state holds at b_t∘k_t, write,
read o_t = S_tᵀ(scale·q_t). b_t = w_t = β_t in all channels is Kimi Delta Attention.
"""

from collections.abc import Sequence

from derivations.kda.definition import decay
from derivations.linear.definition import read, write
from verify.numbers.protocol import M, NumberSystem, S

__all__ = ["decay", "recurrence", "step"]


def step(
    numbers: NumberSystem[S, M], state: M, q: M, k: M, v: M, alpha: M, b: M, w: M, scale: S
) -> tuple[M, M]:
    """One token: (the state after its write, the output V×1 read from that state).

    state: K×V; q, k, alpha, b: K×1; v, w: V×1; scale: a scalar.
    """
    decayed = numbers.scale_rows(alpha, state)
    held = numbers.matmul(numbers.transpose(decayed), numbers.scale_rows(b, k))
    state = write(numbers, decayed, k, numbers.sub(numbers.scale_rows(w, v), held))
    return state, read(numbers, state, q, scale)


def recurrence(
    numbers: NumberSystem[S, M],
    q: Sequence[M],
    k: Sequence[M],
    v: Sequence[M],
    alpha: Sequence[M],
    b: Sequence[M],
    w: Sequence[M],
    *,
    scale: S,
    state: M,
) -> tuple[list[M], M]:
    """All T tokens from the given state K×V: (T outputs V×1, final state). v, w: V×1, the others K×1 each."""
    outputs: list[M] = []
    for q_t, k_t, v_t, alpha_t, b_t, w_t in zip(q, k, v, alpha, b, w, strict=True):
        state, output = step(numbers, state, q_t, k_t, v_t, alpha_t, b_t, w_t, scale)
        outputs.append(output)
    return outputs, state

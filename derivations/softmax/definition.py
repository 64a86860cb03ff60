"""Causal softmax attention, per head.

o_t = Σ_{j≤t} p_j·v_j with p = softmax_j(scale·q_tᵀk_j): Vaswani et al., Attention Is All You Need (2017), eq.
1 with the causal mask of their section 3.2.3.
"""

from collections.abc import Sequence

from verify.numbers.protocol import M, NumberSystem, S


def weights(numbers: NumberSystem[S, M], logits: M) -> M:
    """p_j = e^{s_j} / Σ_i e^{s_i}, a vector n×1 like the logits s.

    Every logit is first lowered by the same amount, which cancels, so that no exponential overflows.
    """
    n, _ = numbers.shape(logits)
    ones = numbers.matrix([[1]] * n)
    powers = numbers.exp_entries(numbers.sub(logits, numbers.scale(numbers.shift(logits), ones)))
    total = numbers.entry(numbers.matmul(numbers.transpose(ones), powers), 0, 0)
    return numbers.scale(numbers.reciprocal(total), powers)


def attend(numbers: NumberSystem[S, M], q: M, k: Sequence[M], v: Sequence[M], *, scale: S) -> M:
    """One query over all given tokens: the output V×1 for q K×1, k of K×1 and v of V×1."""
    keys, values = numbers.stack_rows(k), numbers.stack_rows(v)
    attention = weights(numbers, numbers.matmul(keys, numbers.scale(scale, q)))
    return numbers.matmul(numbers.transpose(values), attention)


def causal(
    numbers: NumberSystem[S, M], q: Sequence[M], k: Sequence[M], v: Sequence[M], *, scale: S
) -> list[M]:
    """The T outputs V×1; token t reads tokens j ≤ t. q, k: T vectors K×1; v: T vectors V×1."""
    return [attend(numbers, q[t], k[: t + 1], v[: t + 1], scale=scale) for t in range(len(q))]

"""Causal softmax attention, per head.

o_t = Σ_{j≤t} p_j·v_j with p = softmax_j(scale·q_tᵀk_j): Vaswani et al., Attention Is All You Need (2017), eq.
1 with the causal mask of their section 3.2.3. A window hides all but the last tokens; a sink is one logit
more, which takes weight and has no value (gpt-oss, arXiv 2508.10925).
"""

from collections.abc import Sequence

from verify.numbers.protocol import M, NumberSystem, S


def weights(numbers: NumberSystem[S, M], logits: M, sink: S | None = None) -> M:
    """p_j = e^{s_j} / Σ_i e^{s_i}, a vector n×1 like the logits s; the sum holds e^sink too, where given.

    Every logit is first lowered by the same amount, which cancels, so that no exponential overflows.
    """
    n, _ = numbers.shape(logits)
    lowest = numbers.shift(logits)
    ones = numbers.matrix([[1]] * n)
    powers = numbers.exp_entries(numbers.sub(logits, numbers.scale(lowest, ones)))
    total = numbers.matmul(numbers.transpose(ones), powers)
    if sink is not None:
        one = numbers.matrix([[1]])
        apart = numbers.sub(numbers.scale(sink, one), numbers.scale(lowest, one))
        total = numbers.add(total, numbers.exp_entries(apart))
    return numbers.scale(numbers.reciprocal(numbers.entry(total, 0, 0)), powers)


def attend(
    numbers: NumberSystem[S, M], q: M, k: Sequence[M], v: Sequence[M], *, scale: S, sink: S | None = None
) -> M:
    """One query over all given tokens: the output V×1 for q K×1, k of K×1 and v of V×1."""
    keys, values = numbers.stack_rows(k), numbers.stack_rows(v)
    attention = weights(numbers, numbers.matmul(keys, numbers.scale(scale, q)), sink)
    return numbers.matmul(numbers.transpose(values), attention)


def causal(
    numbers: NumberSystem[S, M],
    q: Sequence[M],
    k: Sequence[M],
    v: Sequence[M],
    *,
    scale: S,
    window: int | None = None,
    sink: S | None = None,
) -> list[M]:
    """The T outputs V×1; token t reads the tokens j ≤ t, or the last ``window`` of them, itself included.

    q, k: T vectors K×1; v: T vectors V×1.
    """
    first = [0 if window is None else max(0, t + 1 - window) for t in range(len(q))]
    return [
        attend(numbers, q[t], k[f : t + 1], v[f : t + 1], scale=scale, sink=sink) for t, f in enumerate(first)
    ]

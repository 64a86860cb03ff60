"""Linear attention without normaliser, per head: S_t = S_{t−1} + k_t·v_tᵀ, o_t = S_tᵀ(scale·q_t).

Katharopoulos et al., Transformers are RNNs (2020), eq. 18 and the numerator of eq. 20, the feature map
applied to q and k beforehand. The state S is K×V; its transpose maps a query to an output. With the
normaliser of eq. 20, o_t = Σ_{j≤t} p_j·v_j, p_j = (q_tᵀk_j) / Σ_{i≤t} q_tᵀk_i: `causal`.
"""

from collections.abc import Sequence

from verify.numbers.protocol import M, NumberSystem, S


def write(numbers: NumberSystem[S, M], state: M, k: M, v: M) -> M:
    """S + k·vᵀ. state: K×V; k: K×1; v: V×1."""
    return numbers.add(state, numbers.outer(k, v))


def read(numbers: NumberSystem[S, M], state: M, q: M, scale: S) -> M:
    """Sᵀ(scale·q), V×1. state: K×V; q: K×1."""
    return numbers.matmul(numbers.transpose(state), numbers.scale(scale, q))


def step(numbers: NumberSystem[S, M], state: M, q: M, k: M, v: M, scale: S) -> tuple[M, M]:
    """One token: (the state after its write, the output V×1 read from that state)."""
    state = write(numbers, state, k, v)
    return state, read(numbers, state, q, scale)


def recurrence(
    numbers: NumberSystem[S, M], q: Sequence[M], k: Sequence[M], v: Sequence[M], *, scale: S, state: M
) -> tuple[list[M], M]:
    """All T tokens from the given state K×V: (T outputs V×1, final state). q, k: K×1 each; v: V×1 each."""
    outputs: list[M] = []
    for q_t, k_t, v_t in zip(q, k, v, strict=True):
        state, output = step(numbers, state, q_t, k_t, v_t, scale)
        outputs.append(output)
    return outputs, state


def weights(numbers: NumberSystem[S, M], products: M) -> M:
    """p_j = s_j / Σ_i s_i, a vector n×1 like the products s, whose sum is not 0."""
    n, _ = numbers.shape(products)
    ones = numbers.matrix([[1]] * n)
    total = numbers.entry(numbers.matmul(numbers.transpose(ones), products), 0, 0)
    return numbers.scale(numbers.reciprocal(total), products)


def causal(
    numbers: NumberSystem[S, M], q: Sequence[M], k: Sequence[M], v: Sequence[M], *, scale: S
) -> list[M]:
    """The T outputs V×1 with the normaliser, by weights of the tokens j ≤ t. q, k: K×1 each; v: V×1 each."""
    outputs = []
    for t in range(len(q)):
        keys, values = numbers.stack_rows(k[: t + 1]), numbers.stack_rows(v[: t + 1])
        attention = weights(numbers, numbers.matmul(keys, numbers.scale(scale, q[t])))
        outputs.append(numbers.matmul(numbers.transpose(values), attention))
    return outputs

"""Inputs made to answer one question, for the properties and the diagnoses."""

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.convention import Convention
from verify.numbers.formats import format_named, round_array


def probe(
    convention: Convention,
    dtype: str,
    tokens: int,
    *,
    seed: int = 0,
    name: str = "probe",
    gate: float | tuple[float, float] = (-1.0, -1e-3),
    beta: float | tuple[float, float] = (0.0, 1.0),
    key: Array | None = None,
    initial_state: bool = False,
    grouped: bool = False,
    size: int = 8,
) -> Case:
    """One random sequence with unit keys, ``K = V = size``.

    Args:
        gate: the log decay of every token and channel, or the ends of a range it is drawn from, uniform in
            its logarithm.
        beta: the write strength of every token, or the ends of a range.
        key: one key ``[K]`` for all tokens, instead of random ones.
        initial_state: whether to start from a random state.
        grouped: two value heads on one query/key head pair each, where the convention takes that.
    """
    rng = np.random.default_rng([seed, tokens])
    heads = 2 if grouped else 1
    value_heads = 2 * heads if grouped and convention.grouped_heads else heads
    kind = convention.kind
    per_head = (1, tokens, value_heads)
    gates = kind.gate_shape(per_head, size)
    keys = rng.standard_normal((1, tokens, heads, size))
    keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
    if isinstance(gate, tuple):
        g = -np.exp(rng.uniform(np.log(-gate[1]), np.log(-gate[0]), gates))
    else:
        g = np.full(gates, gate)
    strength = rng.uniform(*beta, per_head) if isinstance(beta, tuple) else np.full(per_head, beta)
    counts = {name: heads if name in kind.shared else value_heads for name in ("q", "v")}
    queries = rng.standard_normal((1, tokens, counts["q"], size))
    values = rng.standard_normal((1, tokens, counts["v"], size))
    state = rng.standard_normal((1, value_heads, size, size))
    return rounded(
        Case(
            mechanism=convention.mechanism,
            name=name,
            seed=seed,
            dtype="float64",
            q=queries,
            k=keys if key is None else np.broadcast_to(key, keys.shape).copy(),
            v=values,
            g=g if kind.gate else None,
            beta=strength if kind.erases else None,
            initial_state=state if initial_state and kind.stateful else None,
            scale=size**-0.5,
        ),
        dtype,
    )


def rounded(case: Case, dtype: str) -> Case:
    """The case with q, k, v rounded to ``dtype`` and the gates to the dtype that goes with it."""
    gate_dtype = "float64" if dtype == "float64" else "float32"
    arrays = {
        field: round_array(format_named(dtype if field in ("q", "k", "v") else gate_dtype), array)
        for field, array in case.arrays().items()
    }
    return case.replace(dtype=dtype, gate_dtype=gate_dtype, **arrays)

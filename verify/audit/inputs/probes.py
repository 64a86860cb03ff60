"""Inputs made to answer one question, for the properties and the diagnoses."""

import numpy as np

from verify.audit.case import Array, Case, Shape
from verify.audit.convention.convention import Convention
from verify.audit.inputs.entries import draw_entries, features, rounding


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
    """One random sequence with unit keys, ``K = V = size`` or the one size the convention takes.

    Args:
        gate: the log decay of every token and channel, or the ends of a range it is drawn from, uniform in
            its logarithm.
        beta: the write strength of every token, or the ends of a range.
        key: the first entries of one key for all tokens, instead of random ones.
        initial_state: whether to start from a random state.
        grouped: two value heads on one query/key head pair each, where the convention takes that.
    """
    size = convention.head_size or size
    key = None if key is None else np.pad(key, (0, size - len(key)))
    rng = np.random.default_rng([seed, tokens])
    heads = 2 if grouped else 1
    value_heads = 2 * heads if grouped and convention.grouped_heads else heads
    kind = convention.kind
    per_head = (1, tokens, value_heads)
    gates = kind.gate_shape(per_head, size)
    shape = Shape(1, tokens, heads, value_heads, size, size)
    keys = _unit_keys(rng, shape)
    if isinstance(gate, tuple):
        g = -np.exp(rng.uniform(np.log(-gate[1]), np.log(-gate[0]), gates))
    else:
        g = np.full(gates, gate)
    strength = rng.uniform(*beta, per_head) if isinstance(beta, tuple) else np.full(per_head, beta)
    counts = {name: heads if name in kind.shared else value_heads for name in ("q", "v")}
    queries = rng.standard_normal((1, tokens, counts["q"], size))
    values = rng.standard_normal((1, tokens, counts["v"], size))
    state = rng.standard_normal((1, value_heads, size, size))

    def strengths(rng: np.random.Generator, s: Shape) -> Array:
        if s == shape:
            return strength
        wider = (s.B, s.T, s.HV)
        return rng.uniform(*beta, wider) if isinstance(beta, tuple) else np.full(wider, beta)

    def directions(rng: np.random.Generator, s: Shape) -> Array:
        drawn = _unit_keys(rng, s)
        return drawn if key is None else np.broadcast_to(key, drawn.shape).copy()

    entries = draw_entries(
        kind,
        rng,
        shape,
        rounding(kind, dtype),
        beta=strengths,
        gate=lambda rng, gates: g,
        directions=directions,
    )
    return rounded(
        Case(
            mechanism=convention.mechanism,
            name=name,
            seed=seed,
            dtype="float64",
            q=features(kind, queries),
            k=features(kind, keys if key is None else np.broadcast_to(key, keys.shape).copy()),
            v=values,
            g=entries.get("g"),
            beta=entries.get("beta"),
            initial_state=state if initial_state and kind.stateful else None,
            scale=kind.scale(size),
            a=entries.get("a"),
            b=entries.get("b"),
            w=entries.get("w"),
        ),
        dtype,
    )


def _unit_keys(rng: np.random.Generator, s: Shape) -> Array:
    keys = rng.standard_normal((s.B, s.T, s.H, s.K))
    keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
    return keys


def rounded(case: Case, dtype: str) -> Case:
    """The case with every input rounded to the dtype it is then handed over in."""
    to = rounding(case.kind, dtype)
    gate_dtype = "float64" if dtype == "float64" else "float32"
    arrays = {field: to(field, array) for field, array in case.arrays().items()}
    return case.replace(dtype=dtype, gate_dtype=gate_dtype, **arrays)

"""The inputs of a mechanism besides q, k and v, drawn from a class's keys, gates and write strengths."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from verify.audit.case import Array, Case, Shape
from verify.audit.inputs.draws import Draw, Gate
from verify.audit.mechanism import Mechanism
from verify.numbers.formats import format_named, round_array

Rounding = Callable[[str, Array], Array]
"""Rounds the values of a field to the dtype it is handed over in."""


def rounding(takes: Mechanism, dtype: str) -> Rounding:
    """To ``dtype`` for what comes in the dtype of a call, to that of gates for the rest."""
    formats = format_named(dtype), format_named("float64" if dtype == "float64" else "float32")
    return lambda field, x: round_array(formats[field not in takes.data], x)


def features(takes: Mechanism, x: Array) -> Array:
    """Queries or keys, made not negative where products of them are divided by their sum."""
    return np.abs(x) if takes.weights == "linear" else x


def draw_entries(
    takes: Mechanism,
    rng: np.random.Generator,
    s: Shape,
    rounded: Rounding,
    *,
    beta: Draw,
    gate: Gate,
    directions: Draw,
    apart: bool = False,
) -> dict[str, Array]:
    """By field, rounded.

    The gates of GDN-2 are strengths of their own for every channel. The transition of DPLR is that of a delta
    rule along ``directions`` of unit length: a = -beta e^g b, which reads before the decay what b reads after
    it. So it is one that contracts, up to rounding, if the class's strengths are at most 2. ``apart``: what
    is removed has strengths per channel, as in RWKV-7: a = -n, b = beta n with n the direction.
    """
    wide = [("w", "value", s.V), ("b", "channel", s.K)]
    found: dict[str, Array] = {}
    if takes.erases:
        found["beta"] = rounded("beta", beta(rng, s))
    for field, per, size in wide:
        if (field, per) in takes.entries and field not in takes.data:
            each = beta(rng, replace(s, HV=s.HV * size))
            found[field] = rounded(field, each.reshape(s.B, s.T, s.HV, size))
    if takes.gate:
        found["g"] = rounded("g", gate(rng, takes.gate_shape((s.B, s.T, s.HV), s.K)))
    if "a" in takes.data:
        along = directions(rng, replace(s, H=s.HV))
        if apart:
            each = beta(rng, replace(s, HV=s.HV * s.K)).reshape(along.shape)
            return found | {"a": rounded("a", -along), "b": rounded("b", each * along)}
        found["b"] = rounded("b", along)
        with np.errstate(under="ignore"):
            found["a"] = rounded("a", -beta(rng, s)[..., None] * np.exp(found["g"]) * found["b"])
    return found


def predicted_values(case: Case, rest: Array, state: Array) -> Array:
    """Values that the state predicts up to ``rest``, while those rests are written to it.

    Where DPLR adds along its key, as `draw_entries` makes it, what is removed is minus what it holds.
    """
    d = case.directions
    before, alpha = d.before_decay, np.exp(case.log_decay)
    strength = case.strength[..., None] if case.w is None else case.w
    share = (-1.0 if before else 1.0) / (np.ones_like(rest) if case.w is None else case.w)
    v = np.empty_like(rest)
    for t in range(rest.shape[1]):
        decayed = alpha[:, t, ..., None] * state
        held = np.einsum("bhk,bhkv->bhv", d.read[:, t], state if before else decayed)
        v[:, t] = share[:, t] * held + rest[:, t]
        state = decayed + np.einsum("bhk,bhv->bhkv", d.key[:, t], strength[:, t] * rest[:, t])
    return v

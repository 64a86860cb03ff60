"""Wrong chunked kernels, in float64: one of the places where a chunk forms a decay uses another base."""

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.convention.convention import Convention
from verify.audit.diagnosis.variants import Result, Variant

_PLACES = {
    "pairs": "between two tokens of a chunk",
    "read": "from the state at the start of a chunk",
    "carried": "of the state over a chunk",
}
_SIZES = (16, 32, 64)
_PLAIN = frozenset({"q", "k", "v", "g", "beta"})


@dataclass(frozen=True)
class Exponents:
    """What the log decays are multiplied by in each place; 1 is right."""

    pairs: float = 1.0
    read: float = 1.0
    carried: float = 1.0


def chunk_variants(convention: Convention) -> Iterator[Variant]:
    """Base 2 in one or two places and base e in the others, or the other way round, for every chunk size.

    Nothing for a mechanism without a gate, or whose transition is not that of `recurrence`.
    """
    tokens = frozenset(convention.kind.tokens)
    if convention.form == "recurrent" or "g" not in tokens or not tokens <= _PLAIN:
        return
    sizes = dict.fromkeys([convention.chunk_size, *_SIZES] if convention.chunk_size else _SIZES)
    factors = (
        (math.log(2.0), "2^G where G is a natural logarithm"),
        (1 / math.log(2.0), "e^G where G is a logarithm to base 2"),
    )
    for size, (factor, word), count in itertools.product(sizes, factors, (1, 2)):
        for places in itertools.combinations(_PLACES, count):
            listed = " and ".join(_PLACES[place] for place in places)
            yield Variant(
                "gates in base 2 in one place and base e in another",
                f"with chunks of {size} tokens, the decay {listed} is {word}; elsewhere it is right",
                functools.partial(_run, size=size, exponents=Exponents(**dict.fromkeys(places, factor))),
            )


def _run(case: Case, size: int, exponents: Exponents) -> Result | None:
    """None where no gate is active: all bases agree."""
    return chunked(case, size, exponents) if case.log_decay.any() else None


def chunked(case: Case, size: int, exponents: Exponents) -> Result:
    """All tokens of a case, chunk by chunk, in float64; right for the default `Exponents`."""
    s, x = case.shape, exponents
    q, k, v, g = (
        np.moveaxis(a, 2, 1)
        for a in (case.spread("q") * case.scale, case.spread("k"), case.v, case.log_decay)
    )
    beta = np.moveaxis(case.strength, 2, 1)[..., None]
    state = np.zeros((s.B, s.HV, s.K, s.V)) if case.initial_state is None else case.initial_state
    output = np.empty((s.B, s.HV, s.T, s.V))
    for start in range(0, s.T, size):
        rows = (slice(None), slice(None), slice(start, start + size))
        query, key, strength = q[rows], k[rows], beta[rows]
        running = g[rows].cumsum(axis=2)
        into, end = np.exp(x.read * running), np.exp(x.carried * running[:, :, -1:])
        writes = strength * v[rows]
        if case.kind.erases:
            lower = np.tril(strength * _pairs(key, key, x.pairs * running), -1)
            held = strength * ((into * key) @ state)
            writes = np.asarray(np.linalg.solve(np.eye(lower.shape[-1]) + lower, writes - held), dtype=float)
        output[rows] = (into * query) @ state + _pairs(query, key, x.pairs * running) @ writes
        to_end = np.exp(x.carried * (running[:, :, -1:] - running)) * key
        state = np.swapaxes(end, -1, -2) * state + np.swapaxes(to_end, -1, -2) @ writes
    return np.moveaxis(output, 1, 2), state


def _pairs(left: Array, right: Array, running: Array) -> Array:
    """sum_k left_ik right_jk e^(G_ik - G_jk) for j <= i, ``[B, HV, C, C]``."""
    rows = running.shape[2]
    seen = np.tri(rows, dtype=bool)[..., None]
    decay = np.exp(np.where(seen, running[:, :, :, None] - running[:, :, None], -np.inf))
    return np.asarray(
        np.einsum(
            "bhik,bhjk,bhijk->bhij",
            left,
            right,
            np.broadcast_to(decay, (*decay.shape[:4], left.shape[-1])),
            optimize=True,
        )
    )

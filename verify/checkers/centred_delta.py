"""The delta rule on centred data, replayed exactly: means, states, eigenvalues and outputs of a history.

S_t = (1 − 1/t)S_{t−1} − (1/t)κ_t(κ_tᵀS_{t−1}) + (1/t)κ_t(v_t − v̄_{t−1})ᵀ from S_0 = 0, without the second
term when nothing is erased; κ_t = k_t − k̄_t, and the output is o_t = v̄_t + S_tᵀq.
Data: ``keys`` (T×K), ``values`` (T×V), ``erase``, the stated ``states`` (T times K×V); optionally
``eigenvalues`` (T), those of the transition along κ_t, 1 − (1 + ‖κ_t‖²)/t or 1 − 1/t; ``norm_squared`` (T),
those of the keys; ``query`` (K) with ``outputs`` (T×V).
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from verify.checkers.reading import Matrix, Vector, Wrong, dot, flag, matrix, same, transpose, vector, word
from verify.model.evidence import Check, Obligation

NAME = "centred delta replay"
KINDS = frozenset({"centred-delta"})


def judge(obligation: Obligation) -> Check:
    """``proved`` when every stated number is exactly that of the replay."""
    return word(NAME, obligation, _history)


def _history(data: Mapping[str, Any]) -> str:
    keys, values, erase = matrix(data["keys"]), matrix(data["values"]), flag(data["erase"])
    stated = [matrix(state) for state in data["states"]]
    if not len(keys) == len(values) == len(stated):
        raise Wrong(f"{len(keys)} keys, {len(values)} values and {len(stated)} states")
    found = list(_replay(keys, values, erase))
    for time, ((state, _, _), wanted) in enumerate(zip(found, stated, strict=True), start=1):
        same(f"the state after token {time}", state, wanted)
    if "eigenvalues" in data:
        same("the eigenvalues", [value for _, value, _ in found], vector(data["eigenvalues"]))
    if "norm_squared" in data:
        same("the squared lengths of the keys", [dot(key, key) for key in keys], vector(data["norm_squared"]))
    if "query" in data or "outputs" in data:
        query, outputs = vector(data["query"]), matrix(data["outputs"])
        reads = [
            [mean + dot(column, query) for mean, column in zip(means, transpose(state), strict=True)]
            for state, _, means in found
        ]
        same("the outputs", reads, outputs)
    return f"{len(found)} tokens replayed, all as stated"


def _replay(keys: Matrix, values: Matrix, erase: bool) -> Iterator[tuple[Matrix, Fraction, Vector]]:
    """After every token: the state, the eigenvalue of its transition along κ, and the mean value."""
    state = [[Fraction(0)] * len(values[0]) for _ in keys[0]]
    old = [Fraction(0)] * len(values[0])
    for time, (key, value) in enumerate(zip(keys, values, strict=True), start=1):
        centred = [entry - _mean(column, time) for entry, column in zip(key, transpose(keys), strict=True)]
        held = [dot(centred, column) if erase else Fraction(0) for column in transpose(state)]
        write = [new - mean - past for new, mean, past in zip(value, old, held, strict=True)]
        state = [
            [
                (time - 1) * entry / time + place * change / time
                for entry, change in zip(row, write, strict=True)
            ]
            for row, place in zip(state, centred, strict=True)
        ]
        old = [_mean(column, time) for column in transpose(values)]
        length = dot(centred, centred) if erase else Fraction(0)
        yield state, 1 - (1 + length) / time, old


def _mean(column: Vector, time: int) -> Fraction:
    return sum(column[:time], Fraction(0)) / time

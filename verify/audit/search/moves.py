"""Small changes of a case that keep it within what its mechanism promises: the steps of a climb."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.inputs.probes import rounded

_LARGEST_GROWTH = 2.0**12
"""How far queries, values and states may grow past the start's: far from the range of float32."""
_STRONGEST_GATE = -2e8
_GROWING = ("q", "v", "initial_state")


@dataclass(frozen=True)
class Limits:
    """What a climb from a case keeps to: the largest entries of what may grow, and of write strengths."""

    largest: Mapping[str, float]
    strength: float

    @classmethod
    def of(cls, start: Case) -> "Limits":
        """Those of a start: its own strengths, or 1 where they are less."""
        arrays = start.arrays()
        largest = {
            field: _LARGEST_GROWTH * (1 + float(np.abs(arrays[field]).max(initial=0.0)))
            for field in _GROWING
            if field in arrays
        }
        return cls(largest, max(1.0, float(start.strength.max(initial=0.0))))


Move = Callable[[Case, Limits], Case | None]
"""Another case, or None where the move does not apply."""


def draw_moves(case: Case, rng: np.random.Generator, count: int) -> list[Move]:
    """``count`` moves: small random directions both ways, then changes of one kind of input at a time."""
    noise = {field: rng.choice([-1.0, 1.0], array.shape) for field, array in case.arrays().items()}
    size = float(rng.choice([0.125, 0.5]))
    moves: list[Move] = [along(noise, size), along(noise, -size)]
    kinds = [
        *_scales(case, rng),
        strengthen(float(rng.choice([0.5, 1.0]))),
        align(int(rng.integers(1 << 30))),
    ]
    order = rng.permutation(len(kinds))
    return [*moves, *(kinds[i] for i in order)][:count]


def _scales(case: Case, rng: np.random.Generator) -> list[Move]:
    """Every kind of input doubled and halved, values also from a token on or at one token."""
    token = int(rng.integers(max(case.shape.T, 1)))
    whole = slice(None)
    moves = [scaled(field, factor, whole) for field in (*_GROWING, "g") for factor in (4.0, 0.25)]
    return [*moves, scaled("v", 16.0, slice(token, token + 1)), scaled("v", 0.0625, slice(token, None))]


def scaled(field: str, factor: float, tokens: slice) -> Move:
    """An input times a power of two, over some tokens; keys and gates that others depend on stay."""

    def move(case: Case, limits: Limits) -> Case | None:
        array = case.arrays().get(field)
        if array is None or (field == "g" and case.kind.directed):
            return None
        changed = array.copy()
        rows = (slice(None), tokens) if field in case.kind.tokens else ()
        changed[rows] *= factor
        if field == "g":
            changed = np.maximum(changed, np.minimum(_STRONGEST_GATE, array))
        elif np.abs(changed).max(initial=0.0) > limits.largest[field]:
            return None
        return _with(case, **{field: changed})

    return move


def strengthen(share: float) -> Move:
    """Write strengths moved toward the largest allowed."""

    def move(case: Case, limits: Limits) -> Case | None:
        if case.beta is None:
            return None
        return _with(case, beta=case.beta + share * (limits.strength - case.beta))

    return move


def align(token: int) -> Move:
    """Every key moved halfway to one of them, its length kept."""

    def move(case: Case, limits: Limits) -> Case | None:
        if case.shape.T == 0 or case.kind.directed:
            return None
        row = token % case.shape.T
        return _with(case, k=_turned(case.k, case.k + case.k[:, row : row + 1]))

    return move


def along(noise: Mapping[str, Array], size: float) -> Move:
    """Every entry times 1 + ``size`` or 1 - ``size``: one side of a difference in a random direction."""

    def move(case: Case, limits: Limits) -> Case | None:
        changed: dict[str, Array] = {}
        for field, array in case.arrays().items():
            if case.kind.directed and field not in _GROWING:
                continue
            other = array * (1 + size * noise[field])
            if field == "beta":
                other = np.minimum(other, limits.strength)
            changed[field] = _turned(array, other) if field == "k" else other
        return _with(case, **changed)

    return move


def _turned(before: Array, after: Array) -> Array:
    """Rows in a new direction, as long as before."""
    old, new = (np.linalg.norm(x, axis=-1, keepdims=True) for x in (before, after))
    return np.asarray(np.divide(after * old, new, out=before.copy(), where=new > 0))


def _with(case: Case, **arrays: Array) -> Case:
    """A case with other arrays, rounded to its dtypes."""
    wide = case.replace(name="climbed", dtype="float64", gate_dtype="float64", **arrays)
    return rounded(wide, case.dtype)

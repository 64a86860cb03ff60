"""Two histories with one linear-attention state that softmax attention tells apart: replay and compare.

Data: ``first`` and ``second``, each ``{"features": T×m, "keys": T×d, "values": T×V}``; ``query`` (d) and
``gap``; optionally ``z`` (T) and ``w`` (V) with values' = values + z wᵀ and featuresᵀ z = 0. The state is
S = Σ φ_t v_tᵀ with normaliser n = Σ φ_t; softmax reads with weights ∝ exp(q·k_t).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from verify.checkers.enclosure import decimal, softmax_read
from verify.checkers.reading import (
    Matrix,
    Vector,
    Wrong,
    dot,
    matrix,
    product,
    same,
    transpose,
    vector,
    word,
)
from verify.checkers.terms import rational
from verify.model.evidence import Check, Obligation

NAME = "collision checker"
KINDS = frozenset({"state-collision"})


@dataclass(frozen=True)
class _History:
    features: Matrix
    keys: Matrix
    values: Matrix

    def state(self) -> Matrix:
        return product(transpose(self.features), self.values)

    def normaliser(self) -> Vector:
        return product([[Fraction(1)] * len(self.features)], self.features)[0]


def judge(obligation: Obligation) -> Check:
    """``proved`` when both states agree exactly and the softmax outputs are at least ``gap`` apart."""
    return word(NAME, obligation, _collision)


def _collision(data: Mapping[str, Any]) -> str:
    first = _history(data["first"])
    second = _history(data["second"], (data["first"]["features"], first.features))
    if (first.keys, first.values) == (second.keys, second.values):
        raise Wrong("the two histories are the same")
    _one_feature_map(first, second)
    same("the second state", second.state(), first.state())
    same("the second normaliser", second.normaliser(), first.normaliser())
    if "z" in data:
        _null_space(first, second, vector(data["z"]), vector(data["w"]))
    query, gap = vector(data["query"]), rational(data["gap"])
    if gap <= 0:
        raise Wrong(f"a gap of {gap} separates nothing")
    reads = [softmax_read([dot(query, key) for key in h.keys], h.values) for h in (first, second)]
    apart = max((one - other).magnitude for one, other in zip(*reads, strict=True))
    if apart < gap:
        raise Wrong(f"the softmax outputs are only certainly {decimal(apart)} apart, not {gap}")
    return f"one state, and softmax outputs at least {gap} apart (enclosed: {decimal(apart)})"


def _history(data: Mapping[str, Any], known: tuple[object, Matrix] | None = None) -> _History:
    """A history; features that are written like those already read are not read again."""
    same_features = known is not None and known[0] == data["features"]
    features = known[1] if known is not None and same_features else matrix(data["features"])
    history = _History(features, matrix(data["keys"]), matrix(data["values"]))
    if len({len(history.features), len(history.keys), len(history.values)}) != 1:
        raise Wrong("features, keys and values count different numbers of tokens")
    return history


def _one_feature_map(first: _History, second: _History) -> None:
    """Features may come from any map of the keys; so equal keys must have equal features."""
    seen: dict[tuple[object, ...], Vector] = {}
    for history in (first, second):
        for key, feature in zip(history.keys, history.features, strict=True):
            if seen.setdefault(tuple(key), feature) != feature:
                raise Wrong("one key has two different features, so no feature map gives them")


def _null_space(first: _History, second: _History, z: Vector, w: Vector) -> None:
    if not any(z):
        raise Wrong("z is zero")
    if any(entry for (entry,) in product(transpose(first.features), [[x] for x in z])):
        raise Wrong("featuresᵀ z is not zero")
    moved = [
        [value + amount * step for value, step in zip(row, w, strict=True)]
        for row, amount in zip(first.values, z, strict=True)
    ]
    same("values + z wᵀ", moved, second.values)

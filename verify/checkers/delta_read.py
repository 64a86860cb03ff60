"""The delta rule replayed on exact numbers: S ← S − β k (kᵀS − vᵀ) from S = 0, read as o = Sᵀq.

Data: ``writes``, a list of ``{"beta", "key": K, "value": V}`` in order; ``query`` (K); ``output`` (V), the
stated result; ``unit`` true when every key must have length 1; optionally ``initial`` (K×V).
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from verify.checkers.reading import Matrix, Wrong, dot, flag, matrix, same, transpose, vector, word
from verify.checkers.terms import rational
from verify.model.evidence import Check, Obligation

NAME = "delta replay"
KINDS = frozenset({"delta-read"})


def judge(obligation: Obligation) -> Check:
    """``proved`` when reading after the writes gives exactly the stated output."""
    return word(NAME, obligation, _read)


def _read(data: Mapping[str, Any]) -> str:
    query, stated = vector(data["query"]), vector(data["output"])
    state: Matrix = [[Fraction(0)] * len(stated) for _ in query]
    if "initial" in data:
        state = matrix(data["initial"])
    unit = flag(data["unit"])
    for place, write in enumerate(data["writes"], start=1):
        beta, key, value = rational(write["beta"]), vector(write["key"]), vector(write["value"])
        if unit and dot(key, key) != 1:
            raise Wrong(f"key {place} has squared length {dot(key, key)}, not 1")
        error = [dot(key, column) - wanted for column, wanted in zip(transpose(state), value, strict=True)]
        state = [
            [entry - beta * weight * off for entry, off in zip(row, error, strict=True)]
            for row, weight in zip(state, key, strict=True)
        ]
    output = [dot(query, column) for column in transpose(state)]
    same("the output", output, stated)
    return f"{len(data['writes'])} writes replayed, output as stated"

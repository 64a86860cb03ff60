"""One-step transition matrices multiplied out exactly, entry by entry.

Data of ``kda-step``: (I − β k kᵀ) Diag(α) with k = ``direction``/√``norm_squared`` (so kkᵀ is rational),
``beta``, ``alpha``, and the stated ``matrix``; ``unit`` true when ‖k‖ must be 1.
Data of ``diagonal-plus-rank-one``: Diag(``diagonal``) + ``left`` ``right``ᵀ, and the stated ``matrix``.
"""

from collections.abc import Mapping
from typing import Any

from verify.checkers.reading import Wrong, dot, flag, matrix, same, vector, word
from verify.checkers.terms import rational
from verify.model.evidence import Check, Obligation

NAME = "transition checker"
KINDS = frozenset({"kda-step", "diagonal-plus-rank-one"})


def judge(obligation: Obligation) -> Check:
    """``proved`` when the product is exactly the stated matrix."""
    return word(NAME, obligation, _kda_step if obligation.kind == "kda-step" else _diagonal_plus_rank_one)


def _kda_step(data: Mapping[str, Any]) -> str:
    direction, norm_squared = vector(data["direction"]), rational(data["norm_squared"])
    beta, alpha = rational(data["beta"]), vector(data["alpha"])
    if norm_squared <= 0:
        raise Wrong(f"a squared length of {norm_squared} is impossible")
    if flag(data["unit"]) and dot(direction, direction) != norm_squared:
        raise Wrong(f"the key has squared length {dot(direction, direction) / norm_squared}, not 1")
    if len(alpha) != len(direction):
        raise Wrong(f"{len(alpha)} decays for a key of width {len(direction)}")
    found = [
        [
            (int(i == j) - beta * direction[i] * direction[j] / norm_squared) * decay
            for j, decay in enumerate(alpha)
        ]
        for i in range(len(direction))
    ]
    same("(I − βkkᵀ)Diag(α)", found, matrix(data["matrix"]))
    return f"(I − βkkᵀ)Diag(α) is the stated {len(found)}×{len(found)} matrix"


def _diagonal_plus_rank_one(data: Mapping[str, Any]) -> str:
    diagonal, left, right = (vector(data[name]) for name in ("diagonal", "left", "right"))
    if not len(diagonal) == len(left) == len(right):
        raise Wrong("the diagonal and the two factors differ in length")
    found = [
        [left[i] * right[j] + (diagonal[i] if i == j else 0) for j in range(len(right))]
        for i in range(len(left))
    ]
    same("Diag + left rightᵀ", found, matrix(data["matrix"]))
    return f"Diag + left rightᵀ is the stated {len(found)}×{len(found)} matrix"

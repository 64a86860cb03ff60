"""Whether a matrix lengthens a vector: a vector it lengthens, or squares that show that there is none.

Data of ``stretch``: ``matrix`` M and ``vector`` x with ‖Mx‖ > ‖x‖.
Data of ``contraction``: ``matrix`` M, ``rows`` l_i and ``weights`` d_i >= 0 with I − MᵀM = Σ d_i l_i l_iᵀ.
"""

from collections.abc import Mapping
from typing import Any

from verify.checkers.enclosure import decimal
from verify.checkers.reading import Wrong, dot, matrix, product, same, transpose, vector, word
from verify.checkers.terms import IllFormed
from verify.model.evidence import Check, Obligation

NAME = "length checker"
KINDS = frozenset({"stretch", "contraction"})


def judge(obligation: Obligation) -> Check:
    """``proved`` when the vector is lengthened, or when the squares leave no such vector."""
    return word(NAME, obligation, _stretch if obligation.kind == "stretch" else _contraction)


def _stretch(data: Mapping[str, Any]) -> str:
    rows, x = matrix(data["matrix"]), vector(data["vector"])
    image = [dot(row, x) for row in rows]
    before, after = dot(x, x), dot(image, image)
    if after <= before:
        raise Wrong(f"the squared length goes from {decimal(before)} to {decimal(after)}: not lengthened")
    return f"the squared length goes from {decimal(before)} to {decimal(after)}, compared exactly"


def _contraction(data: Mapping[str, Any]) -> str:
    rows = matrix(data["matrix"])
    squares = product(transpose(rows), rows)
    size = range(len(squares))
    rest = [[int(i == j) - squares[i][j] for j in size] for i in size]
    weights, vectors = vector(data["weights"]), matrix(data["rows"])
    if len(weights) != len(vectors) or len(vectors[0]) != len(squares):
        raise IllFormed("weights and rows do not fit the matrix")
    for place, weight in enumerate(weights, 1):
        if weight < 0:
            raise Wrong(f"weight {place} is {decimal(weight)}, below 0")
    scaled = [[weight * entry for entry in row] for weight, row in zip(weights, vectors, strict=True)]
    same("Σ d l lᵀ", product(transpose(scaled), vectors), rest)
    return f"I − MᵀM is a sum of {sum(map(bool, weights))} squares: no vector is lengthened"

"""Determinants and ranks of exact matrices by fraction-free (Bareiss) elimination.

Data: ``matrix`` (rows of rationals), or ``nodes`` x and ``powers`` p for the matrix (x_i^{p_j}); and
``rank``, or for a square matrix ``determinant`` (its exact value), ``nonzero`` (true) or both.
"""

from collections.abc import Mapping
from fractions import Fraction
from math import lcm
from typing import Any

from verify.checkers.reading import Matrix, Wrong, flag, matrix, natural, vector, word
from verify.checkers.terms import rational
from verify.model.evidence import Check, Obligation

NAME = "determinant checker"
KINDS = frozenset({"determinant"})


def judge(obligation: Obligation) -> Check:
    """``proved`` when the determinant or rank is the one stated."""
    return word(NAME, obligation, _determinant)


def _determinant(data: Mapping[str, Any]) -> str:
    rows = _rows(data)
    size = f"{len(rows)}×{len(rows[0])}"
    rank, determinant = eliminate(rows)
    if "rank" in data:
        if rank != natural(data["rank"]):
            raise Wrong(f"the rank is {rank}, not {data['rank']}")
        return f"{size}, rank {rank}"
    if determinant is None:
        raise Wrong(f"a {size} matrix has no determinant")
    nonzero = flag(data.get("nonzero", False))
    if "determinant" not in data and not nonzero:
        raise Wrong("nothing is stated about the determinant")
    if "determinant" in data and determinant != rational(data["determinant"]):
        raise Wrong(f"the determinant is {determinant}, not {data['determinant']}")
    if nonzero and not determinant:
        raise Wrong("the determinant is 0")
    return f"{size}, determinant {determinant}"


def _rows(data: Mapping[str, Any]) -> Matrix:
    if "matrix" in data:
        return matrix(data["matrix"])
    powers = [natural(power) for power in data["powers"]]
    return [[node**power for power in powers] for node in vector(data["nodes"])]


def eliminate(rows: Matrix) -> tuple[int, Fraction | None]:
    """Rank and, for a square matrix, determinant."""
    scales = [lcm(*(entry.denominator for entry in row)) for row in rows]
    work = [[int(entry * scale) for entry in row] for row, scale in zip(rows, scales, strict=True)]
    height, width = len(work), len(work[0])
    rank, sign, previous = 0, 1, 1
    for column in range(width):
        pivot = next((i for i in range(rank, height) if work[i][column]), None)
        if pivot is None:
            continue
        if pivot != rank:
            work[rank], work[pivot] = work[pivot], work[rank]
            sign = -sign
        for i in range(rank + 1, height):
            for j in range(width - 1, column - 1, -1):
                crossed = work[i][j] * work[rank][column] - work[i][column] * work[rank][j]
                work[i][j] = crossed // previous
        previous = work[rank][column]
        rank += 1
        if rank == height:
            break
    if height != width:
        return rank, None
    if rank < height:
        return rank, Fraction(0)
    denominator = 1
    for scale in scales:
        denominator *= scale
    return rank, Fraction(sign * previous, denominator)

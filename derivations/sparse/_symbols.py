"""Symbols the sparse derivations share: n tokens of which 1 … m are dropped and m + 1 … n are kept."""

from typing import Any

from sympy import Expr, IndexedBase, Sum, symbols

i, j, k, m, n, c, V = symbols("i j k m n c V")
p, v = IndexedBase("p"), IndexedBase("v")

SIZES: tuple[dict[Any, int], ...] = (
    {n: 3, m: 1, k: 2, c: 1, V: 2},
    {n: 5, m: 2, k: 4, c: 2, V: 3},
)
"""Where engines write the sums out."""

CUT = ((1, m), (m + 1, n))
"""At least one token is dropped and at least one is kept."""


def dropped(summand: Expr | int) -> Sum:
    """Σ over the dropped tokens of a summand in j."""
    return Sum(summand, (j, 1, m))


def kept(summand: Expr | int) -> Sum:
    """Σ over the kept tokens of a summand in j."""
    return Sum(summand, (j, m + 1, n))


def everything(summand: Expr | int) -> Sum:
    """Σ over all tokens of a summand in j."""
    return Sum(summand, (j, 1, n))


def coordinates(summand: Expr | int) -> Sum:
    """Σ over the V coordinates c of a value."""
    return Sum(summand, (c, 1, V))

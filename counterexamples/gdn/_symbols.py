"""Symbols the statements about the centred delta rule share: one column of the state, keys with channels."""

from sympy import Expr, IndexedBase, Sum, Symbol, symbols

c, e, i, j, t, K = symbols("c e i j t K")
k, q, S = (IndexedBase(name) for name in ("k", "q", "S"))
kappa = IndexedBase(r"\kappa")

SIZES: tuple[dict[Symbol, int], ...] = ({t: 2, K: 2, c: 1, e: 1}, {t: 4, K: 3, c: 2, e: 3})
"""Where engines write the sums out."""


def dot(left: Expr, right: Expr) -> Sum:
    """Σ_c of the product of two expressions in the channel c."""
    return Sum(left * right, (c, 1, K))

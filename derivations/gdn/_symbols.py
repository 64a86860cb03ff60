"""Symbols the expansions around equal logits share: keys, values, running means, and the affine state.

One coordinate of the values is treated at a time; keys and queries keep their channels c = 1 … K.
"""

from sympy import Expr, IndexedBase, Sum, Symbol, symbols

from verify.derive import Definition

c, e, i, j, t, K = symbols("c e i j t K")
k, v, q, S, b, kappa = (IndexedBase(name) for name in ("k", "v", "q", "S", "b", r"\kappa"))
mean_k, mean_v = IndexedBase(r"\bar{k}"), IndexedBase(r"\bar{v}")

SIZES: tuple[dict[Symbol, int], ...] = ({t: 2, K: 2, c: 1}, {t: 4, K: 3, c: 2})
"""Where engines write the sums out."""

key_mean = Definition("key mean", mean_k[t, c], Sum(k[j, c], (j, 1, t)) / t, free=(t, c))
value_mean = Definition("value mean", mean_v[t], Sum(v[j], (j, 1, t)) / t, free=(t,))
centred = Definition("centred key", kappa[t, c], k[t, c] - mean_k[t, c], free=(t, c))


def dot(left: Expr, right: Expr) -> Sum:
    """Σ_c of the product of two expressions in the channel c."""
    return Sum(left * right, (c, 1, K))


def over_tokens(summand: Expr | int) -> Sum:
    """Σ_{j≤t} of a summand in j."""
    return Sum(summand, (j, 1, t))

"""Symbols the softmax derivations share: scores s, temperature τ, weights p, and sums over n tokens."""

from sympy import Expr, IndexedBase, Sum, Symbol, exp, symbols

from verify.derive import Definition

j, k, n = symbols("j k n")
tau = Symbol(r"\tau")
s, a, p = (IndexedBase(name) for name in ("s", "a", "p"))

SIZES = ({n: 2, k: 1}, {n: 3, k: 2})
"""Where engines write the sums out."""

IN_RANGE = ((1, k), (k, n))
"""k is one of the n tokens."""


def over_tokens(summand: Expr | int) -> Sum:
    """Σ_{j=1}^n of a summand in j."""
    return Sum(summand, (j, 1, n))


partition = over_tokens(exp(s[j] / tau))
softmax = Definition("softmax", p[k], exp(s[k] / tau) / partition, free=(k,))
"""p_k = e^{s_k/τ}/Σ_j e^{s_j/τ}, for every k."""

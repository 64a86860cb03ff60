"""The Kullback–Leibler divergence from softmax is never negative and vanishes at softmax only.

Written without a logarithm of a_j: η_j stands for a_j ln a_j, or 0 where a_j = 0. Each term
g_j = η_j − a_j ln p_j + p_j − a_j is a_j(y − 1 − ln y) at y = p_j/a_j, or p_j where a_j = 0.
"""

from sympy import Expr, IndexedBase, Integer, Sum, Symbol, log

from derivations.softmax._symbols import IN_RANGE, SIZES, a, j, k, n, over_tokens, p, tau
from verify.derive import Chain, Definition, Hypothesis, Minimum, Setting
from verify.model.evidence import Obligation

y = Symbol("y")
eta, gap = IndexedBase(r"\eta"), IndexedBase("g")
on_simplex = Hypothesis("simplex", over_tokens(a[j]), 1)
kullback_leibler = over_tokens(eta[j] - a[j] * log(p[j]))


def tangent(point: int = 1) -> Obligation:
    """ln y <= y − 1 for y > 0, with equality at ``point`` only (true for 1)."""
    function = y - 1 - log(y)
    value = function.subs(y, point)
    return Minimum(
        "ln y is at most y − 1, with equality at 1 only", y, function, Integer(point), value, 1 / y
    ).obligation()


def interior() -> Obligation:
    """Where a_k > 0 the term is a_k(y − 1 − ln y) at y = p_k/a_k."""
    entropy = Definition("entropy term", eta[k], a[k] * log(a[k]))
    setting = Setting((entropy,), positive=(a, p), instances=({k: 1},))
    chain = Chain("an interior term is a[k]·(y − 1 − ln y) at y = p_k/a_k", setting, _term(k))
    ratio = p[k] / a[k]
    return chain.unfold("factor out the weight", a[k] * (ratio - 1 - log(ratio)), "entropy term").obligation()


def boundary() -> Obligation:
    """Where a_k = 0 the term is p_k."""
    zero = Definition("vanishing weight", a[k], Integer(0)), Definition("convention", eta[k], Integer(0))
    setting = Setting(zero, positive=(p,), instances=({k: 1},))
    chain = Chain("a term with a vanishing weight is the softmax weight", setting, _term(k))
    return chain.unfold("0·ln 0 = 0", p[k], "vanishing weight", "convention").obligation()


def _term(index: Expr) -> Expr:
    return eta[index] - a[index] * log(p[index]) + p[index] - a[index]


def _gap_setting() -> Setting:
    term = Definition("gap", gap[k], _term(k), free=(k,))
    unit = Hypothesis("unit", over_tokens(p[j]), 1)
    positive, nonnegative = (p, tau), (gap,)
    return Setting(
        (term,), (on_simplex, unit), positive, nonnegative, nonempty=(n,), order=IN_RANGE, instances=SIZES
    )


def _sum_of_gaps(title: str) -> Chain:
    chain = Chain(title, _gap_setting(), kullback_leibler)
    both = kullback_leibler + over_tokens(p[j]) - over_tokens(a[j])
    chain = chain.use("add the two sums, both 1", both, unit=-1, simplex=1)
    return chain.unfold("collect the terms", over_tokens(gap[j]), "gap")


def nonnegative() -> Obligation:
    """KL(a‖p) >= 0, from the terms being so."""
    return (
        _sum_of_gaps("the divergence is at least 0")
        .drop("every term is at least 0", Integer(0), over_tokens(gap[j]))
        .obligation()
    )


def one_term() -> Obligation:
    """KL(a‖p) >= g_k for every k."""
    before, after = Sum(gap[j], (j, 1, k - 1)), Sum(gap[j], (j, k + 1, n))
    chain = _sum_of_gaps("the divergence is at least any one of its terms").split(
        "cut after k", Sum(gap[j], (j, 1, k)) + after, n, k
    )
    chain = chain.split("take the term k out", before + gap[k] + after, k, k - 1)
    return chain.drop("every other term is at least 0", gap[k], before, after).obligation()

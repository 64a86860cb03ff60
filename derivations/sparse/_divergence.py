"""KL(a‖q) >= 0 over the kept tokens, and 0 only at a = q: the termwise lemma of softmax.entropic-ot.

η_j stands for a_j ln a_j, or 0 where a_j = 0. The term g_j = η_j − a_j ln q_j + q_j − a_j is a_j(y − 1 − ln
y) at y = q_j/a_j, or q_j where a_j = 0.
"""

from sympy import Expr, IndexedBase, Integer, Symbol, log

from derivations.sparse._symbols import CUT, SIZES, j, k, kept
from verify.derive import Chain, Definition, Hypothesis, Minimum, Setting
from verify.model.evidence import Obligation

y = Symbol("y")
a, q, eta, gap = (IndexedBase(name) for name in ("a", "q", "eta", "g"))
on_simplex = Hypothesis("simplex", kept(a[j]), 1)
divergence = kept(eta[j] - a[j] * log(q[j]))


def _term(index: Expr) -> Expr:
    return eta[index] - a[index] * log(q[index]) + q[index] - a[index]


def _tangent() -> Obligation:
    title = "ln y is at most y − 1, with equality at 1 only"
    return Minimum(title, y, y - 1 - log(y), Integer(1), Integer(0), 1 / y).obligation()


def _interior() -> Obligation:
    entropy = Definition("entropy term", eta[k], a[k] * log(a[k]))
    setting = Setting((entropy,), positive=(a, q), instances=({k: 1},))
    chain = Chain("an interior term is a[k]·(y − 1 − ln y) at y = q_k/a_k", setting, _term(k))
    ratio = q[k] / a[k]
    return chain.unfold("factor out the weight", a[k] * (ratio - 1 - log(ratio)), "entropy term").obligation()


def _boundary() -> Obligation:
    zero = Definition("vanishing weight", a[k], Integer(0)), Definition("convention", eta[k], Integer(0))
    setting = Setting(zero, positive=(q,), instances=({k: 1},))
    chain = Chain("a term with a vanishing weight is q_k", setting, _term(k))
    return chain.unfold("0·ln 0 = 0", q[k], "vanishing weight", "convention").obligation()


def _sum_of_gaps() -> Obligation:
    term = Definition("gap", gap[k], _term(k), free=(k,))
    unit = Hypothesis("unit", kept(q[j]), 1)
    setting = Setting((term,), (on_simplex, unit), (q,), (gap,), order=CUT, instances=SIZES)
    chain = Chain("the divergence is the sum of its terms, none negative", setting, divergence)
    both = divergence + kept(q[j]) - kept(a[j])
    chain = chain.use("add the two sums, both 1", both, unit=-1, simplex=1)
    chain = chain.unfold("collect the terms", kept(gap[j]), "gap")
    return chain.drop("every term is at least 0", Integer(0), kept(gap[j])).obligation()


def nonnegative() -> tuple[Obligation, ...]:
    """KL(a‖q) is a sum of terms >= 0, each 0 only where a_j = q_j."""
    return _tangent(), _interior(), _boundary(), _sum_of_gaps()

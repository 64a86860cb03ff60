"""A score gap bounds the dropped mass: at most m·e^{−Δ}/(1 + m·e^{−Δ}) for m dropped tokens.

Every dropped score is Δ + g_j below the largest, g_j >= 0. The bound minus the dropped mass is a quotient
with a positive denominator whose numerator adds up what the extra gaps g_j save and what the other kept
tokens weigh. How fast the bound falls follows from its closed form.
"""

from sympy import Expr, IndexedBase, Sum, exp, symbols

from derivations.sparse._exponential import extra, falls, saved, saving
from derivations.sparse._symbols import CUT, SIZES, dropped, j, m, n
from verify.derive import Chain, Definition, Setting
from verify.derive.tree import tree
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

gap, step, spared = symbols("Delta u h_u")
s = IndexedBase("s")
top = exp(s[n])
others = Sum(exp(s[j]), (j, m + 1, n - 1))
partition = dropped(exp(s[j])) + others + top
below = Definition("gap", s[j], s[n] - gap - extra[j], free=(j,), guards=((j, m),))


def _bound(shift: Expr | int) -> Expr:
    """m e^{−(Δ + shift)}/(1 + m e^{−(Δ + shift)})."""
    weight = m * exp(-gap - shift)
    return weight / (1 + weight)


def _dropped_mass(after: Expr) -> Obligation:
    setting = Setting((below, saving), (), (), (saved,), order=CUT, instances=SIZES)
    chain = Chain("the bound is at least the dropped mass", setting, _bound(0))
    weight = exp(-gap)
    excess = weight * (top * dropped(saved[j]) + m * others) / ((1 + m * weight) * partition)
    chain = chain.unfold("common denominator", dropped(exp(s[j])) / partition + excess, "gap", "saved")
    return chain.drop("what the extra gaps save, what the others weigh", after, excess).obligation()


def _attained() -> Obligation:
    equal = Definition("equal gaps", s[j], s[n] - gap, free=(j,), guards=((j, m),))
    setting = Setting((equal,), order=CUT, instances=SIZES)
    chain = Chain(
        "equal gaps and a single kept token", setting, dropped(exp(s[j])) / (dropped(exp(s[j])) + top)
    )
    return chain.unfold("insert the scores", _bound(0), "equal gaps").obligation()


def _rate(after: Expr) -> Obligation:
    setting = Setting(order=CUT, instances=SIZES)
    chain = Chain("how much u more of gap shrinks the bound", setting, _bound(0) / _bound(step))
    closed = (exp(step) + m * exp(-gap)) / (1 + m * exp(-gap))
    chain = chain.rearrange("closed form", closed)
    return chain.rearrange("in terms of the bound", after).obligation()


def _at_least() -> Obligation:
    setting = Setting(order=CUT, instances=SIZES)
    weight = m * exp(-gap)
    closed = (exp(step) + weight) / (1 + weight)
    chain = Chain("it shrinks at least this much", setting, closed)
    spare = weight / (1 + weight)
    return chain.drop("drop the second summand", exp(step) / (1 + weight), spare).obligation()


def _at_most(share: Expr | int = 1) -> Obligation:
    """e^u minus the factor is (e^u − 1)·b, with e^u − 1 = e^u·h_u."""
    named = Definition("saved by u", spared, 1 - exp(-step))
    setting = Setting((named,), nonnegative=(spared,), order=CUT, instances=SIZES)
    weight = m * exp(-gap)
    closed = share * (exp(step) + weight) / (1 + weight)
    rest = exp(step) * spared * weight / (1 + weight)
    chain = Chain("it shrinks at most by e^u", setting, exp(step))
    chain = chain.unfold("what the bound takes off", closed + rest, "saved by u")
    return chain.drop("e^u is at least 1", closed, rest).obligation()


def _number(tokens: int, size: int, low: str, high: str) -> Obligation:
    data = {
        "term": tree(_bound(0)),
        "values": {"m": str(tokens), "Delta": str(size)},
        "above": low,
        "below": high,
    }
    return Obligation("inequality", f"{tokens} tokens dropped at a gap of {size}", "B", data)


def parts() -> tuple[Part, ...]:
    """The bound, that it is attained, its rate, and two figures."""
    return (
        Part(
            r"If each of $m$ dropped scores is at least $\Delta$ below the largest, the dropped mass is at"
            r" most $me^{-\Delta}/(1+me^{-\Delta})$.",
            (_dropped_mass(dropped(exp(s[j])) / partition), *falls()),
        ),
        Part(
            r"It is attained when all dropped scores are exactly $\Delta$ below and one token is kept.",
            (_attained(),),
        ),
        Part(
            r"A gap larger by $u$ divides the bound $b$ by exactly"
            r" $(e^u+me^{-\Delta})/(1+me^{-\Delta})=1+(e^u-1)(1-b)$, which is at least"
            r" $e^u/(1+me^{-\Delta})$; for $u\ge0$ it is at most $e^u$ (as $1-e^{-u}\ge0$), so at most $e$"
            r" for $u=1$.",
            (_rate(1 + (exp(step) - 1) * (1 - _bound(0))), _at_least(), _at_most()),
        ),
        Part(
            r"For $m=10^5$ dropped tokens a gap of 20 leaves a mass of at most $2.062\cdot10^{-4}$, a gap of"
            r" 10 only one of at most $0.8195$.",
            (
                _number(10**5, 20, "2060/10000000", "2062/10000000"),
                _number(10**5, 10, "8194/10000", "8195/10000"),
            ),
        ),
    )


CLAIM = Claim(
    id="sparse.gap-bound",
    title="A score gap bounds the dropped mass: at most m·e^{−Δ}/(1 + m·e^{−Δ}) for m dropped tokens",
    statement=(
        r"If $m=N-k$ tokens are dropped and each dropped score is at least $\Delta\ge0$ below the largest"
        r" score, then $\delta\le b(\Delta)=me^{-\Delta}/(1+me^{-\Delta})$, attained; and"
        r" $b(\Delta)/b(\Delta+u)=(e^u+me^{-\Delta})/(1+me^{-\Delta})\ge e^u/(1+me^{-\Delta})$."
    ),
    source="article A, section 5",
    status=Status.AS_PRINTED,
    scope=(
        "every number of tokens, every dropped set without the largest score, real scores (over temperature)"
    ),
    variables=(
        Variable("n, m", r"tokens and dropped tokens, integers with $1\le m<n$"),
        Variable("s_j", r"scores over temperature; $s_n$ is the largest"),
        Variable(r"\Delta", "a real number; the statement says most for large ones"),
    ),
    assumptions=(
        Assumption("tokens are numbered so that the dropped come first and the largest score last"),
        Assumption(r"dropped scores are $s_j=s_n-\Delta-g_j$ with $g_j\ge0$"),
    ),
    asked="KCB",
    parts=parts,
    mutants=(
        Mutant(
            "largest token forgotten",
            "the dropped mass measured against the dropped and other kept tokens only",
            lambda: (_dropped_mass(dropped(exp(s[j])) / (dropped(exp(s[j])) + others)),),
        ),
        Mutant(
            "full factor",
            "the bound shrinking by e^u whatever m is",
            lambda: (_rate(exp(step)),),
        ),
        Mutant("more than e^u", "the factor times 1 + b", lambda: (_at_most(1 + _bound(0)),)),
        Mutant(
            "too small", "the bound at a gap of 10 below 0.81", lambda: (_number(10**5, 10, "0", "81/100"),)
        ),
    ),
    remark=(
        "The bound is about masses, not about ranks: a fixed gap protects less and less as the history grows;"
        " to keep it the gap must grow like the logarithm of the number of dropped tokens."
    ),
)

"""Reusing a layer's selection costs what the scores drift: at most e^{2ε} of the best dropped mass.

The first layer's scores are an indexer for the later layer, off by the drift, so that the bound of
sparse.indexer-regret applies. Over several layers the drifts add up: the later score is the first one plus
the steps, by induction. Without a bound on the drift nothing holds: two layers that look at different
tokens.
"""

from sympy import Expr, IndexedBase, Integer, Sum, exp, symbols

from derivations.sparse._exponential import falls
from derivations.sparse._regret import distance, eps, mass
from derivations.sparse._selection import chosen
from verify.derive import Chain, Definition, Induction, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

r, L = symbols("r L")
s, c, u, drift, slack = (IndexedBase(name) for name in ("s", "c", "u", "epsilon", "sigma"))
SIZES = ({L: 2}, {L: 4})


def _layers(summand: Expr) -> Sum:
    """Σ over the layers r = 1 … L."""
    return Sum(summand, (r, 1, L))


def _accumulates(sign: int) -> Obligation:
    goal = Induction("scores after L layers", L, Integer(0), s[L], s[0] + sign * _layers(c[r] + u[r]))
    base = Chain("the first layer", Setting(), s[0]).rearrange("no step yet", goal.rhs.subs(L, 0))
    one = Definition("step", s[L], s[L - 1] + c[L] + u[L])
    setting = Setting((one, goal.hypothesis), order=((1, L),), instances=SIZES)
    chain = Chain("one more layer", setting, s[L]).unfold("shift and drift", one.rhs, "step")
    earlier = goal.rhs.subs(L, L - 1) + c[L] + u[L]
    chain = chain.unfold("the layers so far", earlier, "induction hypothesis")
    return goal.obligation(base, chain.split("it joins the sum", goal.rhs, L, L - 1))


def _adds_up(sign: int) -> Obligation:
    """Σ ε >= ± Σ u, from ε_r >= ± u_r layer by layer."""
    each = Definition("slack", slack[r], drift[r] - sign * u[r], free=(r,))
    setting = Setting((each,), (), (), (slack,), order=((1, L),), instances=SIZES)
    side = "above" if sign > 0 else "below"
    chain = Chain(f"the drifts add up, from {side}", setting, _layers(drift[r]))
    total = sign * _layers(u[r])
    chain = chain.unfold("layer by layer", total + _layers(slack[r]), "slack")
    return chain.drop("no slack is negative", total, _layers(slack[r])).obligation()


def _reused(kept: int, dropped_above: str) -> Obligation:
    first = ["20", *["0"] * 7]
    later = ["0", "20", *["0"] * 6]
    label = "the first layer looks at token 0, the later one at token 1"
    return chosen(label, later, [kept], selector=first, dropped_above=dropped_above, best_below="2/100000000")


def parts() -> tuple[Part, ...]:
    """The bound for one drift, several layers, and the witness without a bound."""
    return (
        Part(
            r"If $|s'_j-s_j-c|\le\varepsilon$ for all $j$ and the tokens were kept by $s$, then $s'_a\le"
            r" s'_b+2\varepsilon$ for every dropped $a$ and kept $b$, and the dropped mass under $s'$ is at"
            r" most $e^{2\varepsilon}$ times that of the best set of the same size: this is"
            r" sparse.indexer-regret with $I=s$.",
            (distance(2), mass(exp(2 * eps)), *falls()),
        ),
        Part(
            r"After $L$ layers with $s^{(r)}=s^{(r-1)}+c_r+u_r$, $|u_r|\le\varepsilon_r$, the score is"
            r" $s^{(0)}+\sum_rc_r+\sum_ru_r$ with $|\sum_ru_r|\le\sum_r\varepsilon_r$: the same bound with"
            r" $\varepsilon=\sum_r\varepsilon_r$.",
            (_accumulates(1), _adds_up(1), _adds_up(-1)),
        ),
        Part(
            r"Without a bound on the drift a reused selection can lose almost everything: scores $(20,0,"
            r"\dots,0)$ select token 0; under $(0,20,0,\dots,0)$ it drops more than $1-10^{-8}$ of the mass,"
            r" and the best single token less than $2\cdot10^{-8}$.",
            (_reused(0, "99999999/100000000"),),
        ),
    )


CLAIM = Claim(
    id="sparse.index-reuse",
    title="Reusing a layer's selection costs what the scores drift: at most e^{2ε} of the best dropped mass",
    statement=(
        r"Keep tokens by the scores $s$ of one layer and attend with scores $s'$ of another,"
        r" $|s'_j-s_j-c|\le\varepsilon$. Then $\delta\le e^{2\varepsilon}\delta^*$ with $\delta^*$ the mass"
        r" that the best set of the same size drops under $s'$. Over several layers the drifts add:"
        r" $\varepsilon=\sum_r\varepsilon_r$. Without such a bound $\delta$ can be above $1-10^{-8}$ while"
        r" $\delta^*<2\cdot10^{-8}$."
    ),
    source="article A, section 5; article B, section 1",
    status=Status.AS_PRINTED,
    scope="every number of tokens, layers and kept tokens; the witness with 8 tokens, 1 kept",
    variables=(
        Variable("s, s'", "scores over temperature of the two layers"),
        Variable(r"\varepsilon_r", "a real number ≥ 0 per layer"),
        Variable("c_r", r"\mathbb{R}"),
        Variable("L", "number of layers, an integer ≥ 0"),
    ),
    assumptions=(
        Assumption(
            "two sets of one size differ by equally many tokens on either side, paired in any way, as in"
            " sparse.indexer-regret"
        ),
    ),
    asked="KE",
    parts=parts,
    mutants=(
        Mutant("drift once", "a dropped key at most ε above a kept one", lambda: (distance(1),)),
        Mutant("drifts subtracted", "the score as the first minus all steps", lambda: (_accumulates(-1),)),
        Mutant("right token", "the witness with token 1 kept", lambda: (_reused(1, "99999999/100000000"),)),
        Mutant(
            "all lost", "more than 1 − 10⁻⁹ of the mass lost", lambda: (_reused(0, "999999999/1000000000"),)
        ),
    ),
    remark=(
        "The drift is the largest one over all tokens, dropped ones included: those are the tokens a layer"
        " that reuses the selection never looks at."
    ),
)

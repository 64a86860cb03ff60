"""An indexer within ε of the scores drops at most e^{2ε} times the mass that the best choice drops.

A key it drops stands at most 2ε above any key it keeps: three differences that are not negative add up to
the distance. The best set of the same size differs by as many tokens dropped wrongly as kept wrongly;
pairing them costs a factor e^{2ε} at most, and the tokens dropped by both only help.
"""

from itertools import product
from typing import Any

from sympy import Expr, IndexedBase, exp

from derivations.sparse._exponential import falls
from derivations.sparse._regret import SIZES, distance, eps, mass
from derivations.sparse._selection import chosen
from derivations.sparse._symbols import dropped, j, m
from verify.derive import Chain, Definition, Setting
from verify.derive.contradiction import contradiction, term
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

w, eps_h, step, slack = (IndexedBase(name) for name in ("w", "epsilon", "d", "sigma"))


def _attained(factor: Expr) -> Obligation:
    setting = Setting(positive=(eps,), instances=({},))
    chain = Chain("scores 2ε and 0, a tie", setting, exp(2 * eps) / (exp(2 * eps) + 1))
    return chain.rearrange("times the best dropped mass", factor / (exp(2 * eps) + 1)).obligation()


def _tie(kept: int) -> Obligation:
    return chosen(
        "scores 1 and 0, both indexed 1/2, the worse one kept",
        ["1", "0"],
        [kept],
        selector=["1/2", "1/2"],
        within="1/2",
        shift="0",
        dropped_above="7310/10000",
        dropped_below="7311/10000",
        best_above="2689/10000",
        best_below="2690/10000",
    )


def _one_head(bound: str) -> Obligation:
    text = f"""(set-logic QF_NRA)
(declare-const x Real)
(declare-const y Real)
(declare-const w Real)
(declare-const e Real)
(define-fun relu ((z Real)) Real (ite (<= z 0.0) 0.0 z))
(define-fun size ((z Real)) Real (ite (<= z 0.0) (- z) z))
(assert (<= (size (- y x)) e))
(assert (not (<= (* w (- (relu y) (relu x))) (* {bound} e))))
(check-sat)
"""
    data = {"smtlib": text, "expect": "unsat", "logic": "QF_NRA"}
    return Obligation("smt", "one head moves by at most |w|·ε", "S", data)


def _heads() -> Obligation:
    size = IndexedBase("W")
    each = Definition("slack", slack[j], size[j] * eps_h[j] - w[j] * step[j], free=(j,))
    setting = Setting((each,), (), (), (slack,), nonempty=(m,), instances=SIZES)
    chain = Chain("the heads add up", setting, dropped(size[j] * eps_h[j]))
    total = dropped(w[j] * step[j])
    chain = chain.unfold("head by head", total + dropped(slack[j]), "slack")
    return chain.drop("no slack is negative", total, dropped(slack[j])).obligation()


def _signs_one_head() -> Obligation:
    """|w|(ε − |d|) + |w|(|d| − sign(w)·Δ) with d = y − x and Δ that of the rectified scores."""
    cases = [_branch(*signs) for signs in product((False, True), repeat=4)]
    return contradiction(_one_head("(size w)"), *cases)


def _branch(rises: bool, y: bool, x: bool, w: bool) -> tuple[dict[str, Any], ...]:
    """The terms where y − x, y, x and w are positive or not.

    Literals 0 to 4 are |d|, ε − |d|, |y|, |x| and |w|, at least 0, and 5 is what must not be; the summand
    |d| − sign(w)·Δ is a sum of literals 0, 2 and 3, or the signs of y and x contradict that of d.
    """
    bounded = (term(5), term(1, 4))
    if y == x:
        twice = term(0, 4, times="2.0" if y else "1.0")
        return bounded if y and rises == w else (*bounded, twice)
    if y != rises:
        return (term(0), term(2), term(3))
    if w == y:
        return (*bounded, term(3 if y else 2, 4))
    return (*bounded, term(0, 4), term(2 if y else 3, 4))


def parts() -> tuple[Part, ...]:
    """The distance, the mass, that both are attained, and the ReLU-sum indexer."""
    return (
        Part(
            r"If $|I_j-s_j-c|\le\varepsilon$ for all $j$ and every kept $I$ is at least every dropped one,"
            r" then $s_a\le s_b+2\varepsilon$ for every dropped $a$ and kept $b$, the worst kept one"
            r" included.",
            (distance(2),),
        ),
        Part(
            r"The dropped mass is at most $e^{2\varepsilon}$ times that of the best set of the same size.",
            (mass(exp(2 * eps)), *falls()),
        ),
        Part(
            r"Both are attained: scores $2\varepsilon$ and $0$, both indexed $\varepsilon$, a tie broken the"
            r" wrong way.",
            (_attained(exp(2 * eps)), _tie(1)),
        ),
        Part(
            r"For $I=\sum_hw_h\mathrm{ReLU}(q_h\cdot k)$, products off by at most $\varepsilon_h$ move $I$ by"
            r" at most $\varepsilon=\sum_h|w_h|\varepsilon_h$: rounding the products costs a factor of at"
            r" most $e^{2\varepsilon}$ against the exact indexer's scores.",
            (_one_head("(size w)"), _signs_one_head(), _heads()),
        ),
    )


CLAIM = Claim(
    id="sparse.indexer-regret",
    title="An indexer within ε of the scores drops at most e^{2ε} times the mass that the best choice drops",
    statement=(
        r"Let $|I_j-s_j-c|\le\varepsilon$ for a common shift $c$, and keep $k$ tokens with the largest $I$."
        r" Every dropped key scores at most $2\varepsilon$ above the worst kept one, and the dropped mass"
        r" satisfies $\delta\le e^{2\varepsilon}\delta^*$ with $\delta^*$ that of the true top $k$; both are"
        r" attained. The ReLU-sum indexer with products off by $\varepsilon_h$ has"
        r" $\varepsilon=\sum_h|w_h|\varepsilon_h$ against its exact self."
    ),
    source="article A, section 5; article B, section 1 (DeepSeek sparse attention, arXiv 2512.02556)",
    status=Status.AS_PRINTED,
    scope="every number of tokens, every k, every ε ≥ 0 and shift, ties broken in any way",
    variables=(
        Variable("s_j", r"scores over temperature, $\mathbb{R}$"),
        Variable("I_j", r"indexer scores, $\mathbb{R}$"),
        Variable(r"\varepsilon", "a real number ≥ 0"),
        Variable("c", r"\mathbb{R}"),
    ),
    assumptions=(
        Assumption(
            "two sets of one size differ by equally many tokens on either side; x are the scores of those"
            " dropped wrongly, y of those kept wrongly, paired in any way, and $g_j\\ge0$ is what is left to"
            " 2ε"
        ),
    ),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant("one ε", "a dropped key at most ε above a kept one", lambda: (distance(1),)),
        Mutant("factor e^ε", "the mass within a factor e^ε", lambda: (mass(exp(eps)),)),
        Mutant("attained below", "the extreme case with a factor e^ε", lambda: (_attained(exp(eps)),)),
        Mutant("right way", "the tie broken in favour of the better token", lambda: (_tie(0),)),
        Mutant("sign of w", "a head with w for |w|", lambda: (_one_head("w"),)),
    ),
    remark=(
        "The bound is relative to the best choice, so it says nothing good where the best choice is bad; and"
        " ε is about the largest error, which training on an average (sparse.indexer-training) does not"
        " bound."
    ),
)

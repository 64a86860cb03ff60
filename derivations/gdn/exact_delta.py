"""Softmax attention read token by token is exactly a delta rule on the output.

From the quotient o_t = N_t/Z_t of two running sums: the last term of each is split off, and what is left is
the old output plus a share a_t of the old output's error. Then by induction: the recurrence started at v_1
gives the softmax output for every t. Vectors are treated one coordinate at a time.
"""

from typing import Any

from sympy import Expr, IndexedBase, Integer, Sum, exp, symbols

from verify.derive import Chain, Definition, Induction, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

j, t = symbols("j t")
s, v, o, w, a = (IndexedBase(name) for name in ("s", "v", "o", "r", "a"))


def total(last: Expr | int) -> Sum:
    """Σ_{j≤last} e^{s_j}."""
    return Sum(exp(s[j]), (j, 1, last))


def weighted(last: Expr | int) -> Sum:
    """Σ_{j≤last} e^{s_j} v_j, one coordinate."""
    return Sum(exp(s[j]) * v[j], (j, 1, last))


attention = Definition("softmax attention", o[t], weighted(t) / total(t), free=(t,))
share = Definition("self weight", a[t], exp(s[t]) / total(t), free=(t,))
FROM_SECOND: dict[str, Any] = {"nonempty": (t, t - 1), "instances": ({t: 2}, {t: 4})}


def _one_step(after: Expr) -> Obligation:
    setting = Setting((attention, share), **FROM_SECOND)
    chain = Chain("one more token", setting, o[t])
    chain = chain.unfold("softmax attention over t tokens", weighted(t) / total(t), "softmax attention")
    newest = (weighted(t - 1) + exp(s[t]) * v[t]) / total(t)
    chain = chain.split("the newest token split off", newest, t, t - 1)
    rest = (total(t) - exp(s[t])) / total(t)
    chain = chain.split(
        "the older sum is the old output times the older total",
        rest * weighted(t - 1) / total(t - 1) + exp(s[t]) * v[t] / total(t),
        t,
        t - 1,
    )
    return chain.unfold(
        "name the output and the self weight", after, "softmax attention", "self weight"
    ).obligation()


def _first() -> Obligation:
    setting = Setting((attention, share), instances=({},))
    chain = Chain("the first output is the first value", setting, o[1])
    return chain.unfold("a single token has weight 1", v[1], "softmax attention").obligation()


def _first_share() -> Obligation:
    chain = Chain("the first self weight is 1", Setting((share,)), a[1])
    return chain.unfold("a single token has weight 1", Integer(1), "self weight").obligation()


def _every_t(sign: int) -> Obligation:
    goal = Induction(
        "the recurrence gives softmax attention for every t", t, Integer(1), w[t], weighted(t) / total(t)
    )
    start = Definition("start", w[1], v[1])
    base = Chain("t = 1", Setting((start,)), w[1]).unfold(
        "started at the first value", goal.rhs.subs(t, 1), "start"
    )
    step = Definition("recurrence", w[t], w[t - 1] + sign * a[t] * (v[t] - w[t - 1]))
    setting = Setting((step, share, goal.hypothesis), **FROM_SECOND)
    chain = Chain("t − 1 to t", setting, w[t])
    chain = chain.unfold("one step of the recurrence", step.rhs, "recurrence")
    old = weighted(t - 1) / total(t - 1)
    chain = chain.unfold(
        "the old state is the softmax output so far",
        old + sign * exp(s[t]) / total(t) * (v[t] - old),
        "self weight",
        "induction hypothesis",
    )
    return goal.obligation(base, chain.split("the newest token joins both sums", goal.rhs, t, t - 1))


def parts() -> tuple[Part, ...]:
    """One step, the start, and the induction."""
    return (
        Part(
            r"For every $t\ge2$ and every coordinate, $o_t=o_{t-1}+a_t(v_t-o_{t-1})$ with"
            r" $a_t=e^{s_t}/\sum_{j\le t}e^{s_j}$.",
            (_one_step(o[t - 1] + a[t] * (v[t] - o[t - 1])),),
        ),
        Part(r"$o_1=v_1$ and $a_1=1$.", (_first(), _first_share())),
        Part(
            r"The recurrence $r_1=v_1$, $r_t=r_{t-1}+a_t(v_t-r_{t-1})$ gives the softmax output for every"
            r" $t\ge1$.",
            (_every_t(1),),
        ),
    )


CLAIM = Claim(
    id="gdn.exact-delta",
    title="Softmax attention read token by token is exactly a delta rule on the output",
    statement=(
        r"For scores $s_1,s_2,\dots$ of one fixed query, let $o_t=\sum_{j\le t}e^{s_j}v_j/\sum_{j\le"
        r" t}e^{s_j}$ and $a_t=e^{s_t}/\sum_{j\le t}e^{s_j}$. Then $o_1=v_1$ and"
        r" $o_t=o_{t-1}+a_t(v_t-o_{t-1})$ for every $t\ge2$, exactly."
    ),
    source="article A, section 2",
    status=Status.AS_PRINTED,
    scope="every t, every value width (each coordinate on its own), all real scores and values",
    variables=(
        Variable("t", r"number of tokens read, an integer $\ge1$"),
        Variable("s_j", r"score of token $j$ for the query, $\mathbb{R}$; a temperature is part of it"),
        Variable("v_j", r"one coordinate of the value of token $j$, $\mathbb{R}$"),
    ),
    assumptions=(Assumption("all scores belong to one query: the state is the output for that query"),),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant(
            "new error",
            "the error measured against the new output instead of the old one",
            lambda: (_one_step(o[t - 1] + a[t] * (v[t] - o[t])),),
        ),
        Mutant(
            "old weight",
            "the self weight of the previous token",
            lambda: (_one_step(o[t - 1] + a[t - 1] * (v[t] - o[t - 1])),),
        ),
        Mutant("sign flipped", "the correction subtracted", lambda: (_every_t(-1),)),
    ),
    remark="Nothing is approximated yet; the price: the state depends on the query (gdn.query-dependence).",
)

"""The weight of a token is its self weight times the survival through all later ones.

Unrolling the exact delta rule multiplies token j's share by 1 − a_i at every later token i. The product is
written as a family P with P[j, j] = 1 and P[j, t] = (1 − a_t)·P[j, t−1]; by induction it telescopes to
Z_j/Z_t.
"""

from typing import Any

from sympy import Expr, IndexedBase, Integer, Sum, exp, symbols

from verify.derive import Chain, Definition, Induction, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

i, j, t = symbols("i j t")
s, v, a, o, survival = (IndexedBase(name) for name in ("s", "v", "a", "o", "P"))
LATER: dict[str, Any] = {"order": ((1, j), (j + 1, t)), "instances": ({t: 2, j: 1}, {t: 5, j: 2})}


def total(last: Expr | int) -> Sum:
    """Z: Σ_{i≤last} e^{s_i}."""
    return Sum(exp(s[i]), (i, 1, last))


share = Definition("self weight", a[t], exp(s[t]) / total(t), free=(t,))
no_factor = Definition("empty product", survival[j, j], Integer(1), free=(j,))
one_factor = Definition(
    "product", survival[j, t], (1 - a[t]) * survival[j, t - 1], free=(j,), guards=((j, t - 1),)
)


def _survives(after: Expr) -> Obligation:
    setting = Setting((share,), nonempty=(t, t - 1), instances=({t: 2}, {t: 4}))
    chain = Chain("the share that survives one more token", setting, 1 - a[t])
    chain = chain.unfold("the self weight", (total(t) - exp(s[t])) / total(t), "self weight")
    return chain.split("the newest token leaves the older total", after, t, t - 1).obligation()


def _telescopes(rhs: Expr) -> Obligation:
    goal = Induction("the survival product telescopes", t, j, survival[j, t], rhs)
    base_setting = Setting((no_factor,), nonempty=(j,), instances=({j: 1}, {j: 3}))
    base = Chain("t = j", base_setting, survival[j, j])
    base = base.unfold("no factor yet", rhs.subs(t, j), "empty product")
    setting = Setting((one_factor, share, goal.hypothesis), **LATER)
    step = Chain("t − 1 to t", setting, survival[j, t])
    step = step.unfold("the newest factor", (1 - a[t]) * survival[j, t - 1], "product")
    inserted = (total(t) - exp(s[t])) / total(t) * rhs.subs(t, t - 1)
    step = step.unfold("its value, and the product so far", inserted, "self weight", "induction hypothesis")
    return goal.obligation(base, step.split("the older total cancels", rhs, t, t - 1))


def _weight(after: Expr) -> Obligation:
    telescoped = Definition("telescoped", survival[j, t], total(j) / total(t))
    setting = Setting((telescoped, share), **LATER, nonempty=(t,))
    chain = Chain("self weight times survival is the softmax weight", setting, a[j] * survival[j, t])
    return chain.unfold("the total after j cancels", after, "telescoped", "self weight").obligation()


def _unrolled() -> Obligation:
    terms = a[j] * survival[j, t] * v[j]
    goal = Induction("the delta rule unrolled", t, Integer(1), o[t], Sum(terms, (j, 1, t)))
    start = Definition("start", o[1], v[1])
    base = Chain("t = 1", Setting((start, share, no_factor)), o[1])
    base = base.unfold("the first value", v[1], "start")
    base = base.unfold(
        "a single token has weight 1", a[1] * survival[1, 1] * v[1], "empty product", "self weight"
    )
    base = base.rearrange("a sum of one term", goal.rhs.subs(t, 1))
    rule = Definition("delta rule", o[t], o[t - 1] + a[t] * (v[t] - o[t - 1]))
    definitions = (rule, goal.hypothesis, no_factor, one_factor)
    setting = Setting(definitions, nonempty=(t, t - 1), instances=({t: 2}, {t: 4}))
    step = Chain("t − 1 to t", setting, o[t])
    step = step.unfold("one step", (1 - a[t]) * o[t - 1] + a[t] * v[t], "delta rule")
    older = (1 - a[t]) * goal.rhs.subs(t, t - 1)
    step = step.unfold("the sum so far", older + a[t] * v[t], "induction hypothesis")
    older = Sum(terms, (j, 1, t - 1))
    step = step.unfold("every product gains a factor", older + a[t] * v[t], "product")
    newest = a[t] * survival[t, t] * v[t]
    step = step.unfold("the newest token has no factor yet", older + newest, "empty product")
    return goal.obligation(base, step.split("it joins the sum", goal.rhs, t, t - 1))


def parts() -> tuple[Part, ...]:
    """One factor, the telescoped product, the weight, and the unrolled recurrence."""
    return (
        Part(
            r"$1-a_t=Z_{t-1}/Z_t$ with $Z_t=\sum_{i\le t}e^{s_i}$, for $t\ge2$.",
            (_survives(total(t - 1) / total(t)),),
        ),
        Part(
            r"$\prod_{i=j+1}^t(1-a_i)=Z_j/Z_t$ for all $t\ge j\ge1$ (telescoping, by induction on $t$).",
            (_telescopes(total(j) / total(t)),),
        ),
        Part(
            r"So $a_j\prod_{i=j+1}^t(1-a_i)=e^{s_j}/\sum_{i\le t}e^{s_i}$, the softmax weight of token $j$"
            r" at time $t$.",
            (_weight(exp(s[j]) / total(t)),),
        ),
        Part(
            r"The recurrence $o_1=v_1$, $o_t=o_{t-1}+a_t(v_t-o_{t-1})$ of gdn.exact-delta is $o_t=\sum_{j\le"
            r" t}a_j\prod_{i=j+1}^t(1-a_i)\,v_j$ for every $t$: these products are the weights it gives.",
            (_unrolled(),),
        ),
    )


CLAIM = Claim(
    id="gdn.survival-product",
    title="The weight of a token is its self weight times the survival through all later ones",
    statement=(
        r"With $a_t=e^{s_t}/\sum_{j\le t}e^{s_j}$, the softmax weight of token $j$ at time $t\ge j$ is"
        r" $a_j\prod_{i=j+1}^t(1-a_i)$, exactly."
    ),
    source="article A, section 2",
    status=Status.AS_PRINTED,
    scope="all t ≥ j ≥ 1, all real scores; values coordinate by coordinate",
    variables=(
        Variable("j, t", r"token and time, integers with $1\le j\le t$"),
        Variable("s_j", r"score of token $j$ for the query, $\mathbb{R}$"),
        Variable("v_j", r"one coordinate of the value of token $j$, $\mathbb{R}$"),
    ),
    assumptions=(Assumption("all scores belong to one query"), Assumption("the empty product is 1")),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant(
            "one factor too many",
            "the product starting at i = j",
            lambda: (_telescopes(total(j - 1) / total(t)),),
        ),
        Mutant(
            "wrong total",
            "the surviving share measured by the self weight",
            lambda: (_survives(exp(s[t]) / total(t)),),
        ),
        Mutant(
            "weight at its own time",
            "the weight of token j when it was the newest",
            lambda: (_weight(exp(s[j]) / total(j)),),
        ),
    ),
    remark="Every later token takes its share from all earlier ones alike; none is spared.",
)

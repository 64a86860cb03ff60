"""An affine state fails by exactly one term, quadratic in the query.

The exact delta rule with the self weight to first order, a_t = (1 + κ_t·q)/t, is applied to an old output
b_{t−1} + S_{t−1}·q that is affine in q. Sorted by powers of q: a running mean, an update of S, and one term
quadratic in q, which the second difference in q isolates and no affine output has.
"""

from sympy import Expr, Integer, Sum, Symbol

from derivations.gdn._symbols import SIZES, K, S, b, c, dot, j, kappa, mean_v, q, t, v
from verify.derive import Chain, Definition, Induction, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

m = Symbol("m")
along, read = dot(kappa[t, c], q[c]), dot(S[t - 1, c], q[c])
quadratic = -along * read / t


def _mean(last: Expr) -> Expr:
    return Sum(v[j], (j, 1, last)) / last


def _next(sign: int) -> Expr:
    """The new output for the query, its negative (sign −1), or for q = 0."""
    old = b[t - 1] + sign * read
    return old + (1 + sign * along) / t * (v[t] - old)


def _sorted(linear: Expr, rest: Expr) -> Obligation:
    setting = Setting(nonempty=(t, K), instances=SIZES)
    chain = Chain("one step on an affine output, by powers of q", setting, _next(1))
    mean = b[t - 1] + (v[t] - b[t - 1]) / t
    return chain.rearrange("sort by powers of q", mean + dot(linear, q[c]) + rest).obligation()


def _second_difference(after: Expr) -> Obligation:
    setting = Setting(nonempty=(t, K), instances=SIZES)
    start = _next(1) + _next(-1) - 2 * _next(0)
    chain = Chain("the second difference in q of one step", setting, start)
    return chain.rearrange("constant and linear terms cancel", after).obligation()


def _affine() -> Obligation:
    chain = Chain(
        "the second difference of an affine output",
        Setting(nonempty=(K,), instances=SIZES),
        (b[t] + dot(S[t, c], q[c])) + (b[t] - dot(S[t, c], q[c])) - 2 * b[t],
    )
    return chain.rearrange("it vanishes", Integer(0)).obligation()


def _running_mean(weight: Expr) -> Obligation:
    """b_t = v̄_t by induction on m = t − 1, so that no divisor can vanish."""
    goal = Induction("b is the running mean for every t = m + 1", m, Integer(0), b[m + 1], _mean(m + 1))
    start = Definition("start", b[1], v[1])
    base = Chain("t = 1", Setting((start,)), b[1])
    base = base.unfold("the first value", v[1], "start").rearrange("a mean of one", goal.rhs.subs(m, 0))
    rule = Definition("recurrence", b[m + 1], b[m] + weight * (v[m + 1] - b[m]))
    setting = Setting((rule, goal.hypothesis), nonempty=(m,), instances=({m: 1}, {m: 3}))
    step = Chain("one more token", setting, b[m + 1]).unfold("one step", rule.rhs, "recurrence")
    inserted = (Sum(v[j], (j, 1, m)) + v[m + 1]) / (m + 1)
    step = step.unfold("the mean so far", inserted, "induction hypothesis")
    return goal.obligation(base, step.split("the newest value joins", goal.rhs, m + 1, m))


def _seen(query: Expr, after: Expr, title: str) -> Obligation:
    setting = Setting(nonempty=(K,), instances=SIZES)
    chain = Chain(title, setting, dot(kappa[t, c], query) * dot(S[t - 1, c], query))
    return chain.rearrange("multiply out", after).obligation()


def parts() -> tuple[Part, ...]:
    """The sorting, the running mean, the obstruction, and when it is there."""
    update = (1 - 1 / t) * S[t - 1, c] + kappa[t, c] * (v[t] - b[t - 1]) / t
    overlap = dot(kappa[t, c], S[t - 1, c])
    key, state = dot(kappa[t, c], kappa[t, c]), dot(S[t - 1, c], S[t - 1, c])
    sum_of_both = (key + overlap) * (state + overlap)
    return (
        Part(
            r"With $a_t=\tfrac1t(1+\kappa_t\cdot q)$ and $o_{t-1}=b_{t-1}+S_{t-1}^\top q$, one step"
            r" $o_{t-1}+a_t(v_t-o_{t-1})$ is $b_{t-1}+\tfrac1t(v_t-b_{t-1})$ plus"
            r" $[(1-\tfrac1t)S_{t-1}+\tfrac1t\kappa_t(v_t-b_{t-1})^\top]^\top q$ plus"
            r" $-\tfrac1t(\kappa_t\cdot q)(S_{t-1}^\top q)$, and nothing else.",
            (_sorted(update, quadratic),),
        ),
        Part(
            r"The constant part is the running mean: $b_1=v_1$, $b_t=b_{t-1}+\tfrac1t(v_t-b_{t-1})$ give"
            r" $b_t=\bar v_t$ for every $t$.",
            (_running_mean(1 / (m + 1)),),
        ),
        Part(
            r"No $b_t,S_t$ absorb the last term: its second difference in $q$ is $-\tfrac2t(\kappa_t\cdot"
            r" q)(S_{t-1}^\top q)$, while that of $b_t+S_t^\top q$ is 0.",
            (_second_difference(2 * quadratic), _affine()),
        ),
        Part(
            r"For $\kappa_t\ne0$ and $S_{t-1}\ne0$ (one column $s$ of it) some $q$ sees it: at $q=\kappa_t$"
            r" the product $(\kappa_t\cdot q)(s\cdot q)$ is $\|\kappa_t\|^2(\kappa_t\cdot s)$, and where that"
            r" vanishes, $q=\kappa_t+s$ gives $\|\kappa_t\|^2\|s\|^2\ne0$.",
            (
                _seen(kappa[t, c], key * overlap, "the quadratic form at the centred key"),
                _seen(kappa[t, c] + S[t - 1, c], sum_of_both, "the quadratic form at key plus column"),
            ),
        ),
    )


CLAIM = Claim(
    id="gdn.affine-obstruction",
    title="An affine state fails by exactly one term, quadratic in the query",
    statement=(
        r"Write the output as $o_t=b_t+S_t^\top q$ and the self weight to first order,"
        r" $a_t=\tfrac1t(1+\kappa_t\cdot q)$. The exact rule $o_t=o_{t-1}+a_t(v_t-o_{t-1})$ then makes $b_t$"
        r" the running mean $\bar v_t$, and what remains besides an update of $S$ is exactly one term"
        r" quadratic in $q$: $-\tfrac1t(\kappa_t\cdot q)(S_{t-1}^\top q)$."
    ),
    source="article A, section 2",
    status=Status.AS_PRINTED,
    scope="every t ≥ 1 (t ≥ 2 for the step), every key width K, values coordinate by coordinate",
    variables=(
        Variable("q", r"query, $\mathbb{R}^K$"),
        Variable(r"\kappa_t", r"key of token $t$ minus the mean over $j\le t$, $\mathbb{R}^K$"),
        Variable("S_{t-1}", r"state before token $t$, one column, $\mathbb{R}^K$"),
        Variable("b_{t-1},v_t", r"one coordinate of the offset and of the value, $\mathbb{R}$"),
    ),
    assumptions=(
        Assumption("the self weight is replaced by its first order; the old output is kept as it is"),
    ),
    asked="C",
    parts=parts,
    mutants=(
        Mutant(
            "quadratic term forgotten",
            "the step claimed affine",
            lambda: (_sorted((1 - 1 / t) * S[t - 1, c] + kappa[t, c] * (v[t] - b[t - 1]) / t, Integer(0)),),
        ),
        Mutant(
            "new mean in the write",
            "the value measured from the mean that includes it",
            lambda: (_sorted((1 - 1 / t) * S[t - 1, c] + kappa[t, c] * (v[t] - mean_v[t]) / t, quadratic),),
        ),
        Mutant("sign flipped", "the quadratic term with +", lambda: (_second_difference(-2 * quadratic),)),
        Mutant("late weight", "the mean updated by 1/(t + 1)", lambda: (_running_mean(1 / (m + 2)),)),
    ),
    remark="The approximation is not closed: a step leaves the affine outputs, so something must go.",
)

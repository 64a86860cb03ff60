"""Without the quadratic term the recurrence computes the covariance of keys and values.

Welford's identity: the sum of products of deviations gains κ_t(v_t − v̄_{t−1}) when token t joins, though
both means move. By induction on t, one entry of the matrix (one key channel, one value channel) at a time.
"""

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from verify.derive import Chain, Definition, Induction, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

j, m, t = symbols("j m t")
k, v, S, kappa = (IndexedBase(name) for name in ("k", "v", "S", r"\kappa"))
mean_k, mean_v = IndexedBase(r"\bar{k}"), IndexedBase(r"\bar{v}")
key_mean = Definition("key mean", mean_k[t], Sum(k[j], (j, 1, t)) / t, free=(t,))
value_mean = Definition("value mean", mean_v[t], Sum(v[j], (j, 1, t)) / t, free=(t,))
centred = Definition("centred key", kappa[t], k[t] - mean_k[t], free=(t,))
MEANS = ("centred key", "key mean", "value mean")
newest = m + 1
"""The induction is on m = t − 1, so that no divisor can vanish."""
KEPT = m / (m + 1)
"""1 − 1/t."""


def _covariance(last: Expr) -> Expr:
    return Sum((k[j] - mean_k[last]) * (v[j] - mean_v[last]), (j, 1, last)) / last


def _total(summand: Expr, last: Expr) -> Sum:
    return Sum(summand, (j, 1, last))


def _by_sums(last: Expr) -> Expr:
    """The covariance over j ≤ last, by the sums of kv, k and v."""
    keys, values = _total(k[j], last), _total(v[j], last)
    return _total(k[j] * v[j], last) / last - keys * values / last**2


def _with_sums(expression: Expr) -> Expr:
    """An expression in the means at m and m + 1 with the sums they stand for."""
    values = {kappa[newest]: k[newest] - _total(k[j], newest) / newest}
    for last in (newest, m):
        values[mean_k[last]] = _total(k[j], last) / last
        values[mean_v[last]] = _total(v[j], last) / last
    return expression.subs(values)


def _welford(key: Expr, value: Expr, kept: Expr) -> Obligation:
    """The recurrence S_t = kept·S_{t−1} + (1/t)·key·value gives the covariance for every t = m + 1."""
    title = "the recurrence computes the covariance for every t = m + 1"
    goal = Induction(title, m, Integer(0), S[newest], _covariance(newest))
    start = Definition("start", S[1], Integer(0))
    base = Chain("t = 1", Setting((start, key_mean, value_mean)), S[1])
    base = base.unfold("nothing is known yet", Integer(0), "start")
    base = base.unfold("a single token does not deviate", goal.rhs.subs(m, 0), "key mean", "value mean")
    rule = Definition("recurrence", S[newest], kept * S[m] + key * value / newest)
    definitions = (rule, goal.hypothesis, centred, key_mean, value_mean)
    setting = Setting(definitions, nonempty=(m,), instances=({m: 1}, {m: 2}, {m: 4}))
    step = Chain("one more token", setting, S[newest]).unfold("one step", rule.rhs, "recurrence")
    older = kept * _covariance(m) + key * value / newest
    step = step.unfold("the covariance so far", older, "induction hypothesis")
    inserted = kept * _by_sums(m) + _with_sums(key * value) / newest
    step = step.unfold("all means as sums", inserted, *MEANS)
    step = step.split("the newest token joins the three sums", _by_sums(newest), newest, m)
    return goal.obligation(base, step.unfold("collect the deviations", goal.rhs, *MEANS))


def _moments() -> Obligation:
    setting = Setting((key_mean, value_mean), nonempty=(t,), instances=({t: 1}, {t: 3}))
    chain = Chain("the covariance as a mean product minus a product of means", setting, _covariance(t))
    after = Sum(k[j] * v[j], (j, 1, t)) / t - mean_k[t] * mean_v[t]
    return chain.unfold("multiply out", after, "key mean", "value mean").obligation()


def parts() -> tuple[Part, ...]:
    """The induction, and the second form of the covariance."""
    return (
        Part(
            r"$S_1=0$ and $S_t=(1-\tfrac1t)S_{t-1}+\tfrac1t\kappa_t(v_t-\bar v_{t-1})^\top$ give"
            r" $S_t=C_t=\tfrac1t\sum_{j\le t}(k_j-\bar k_t)(v_j-\bar v_t)^\top$ for every $t\ge1$.",
            (_welford(kappa[newest], v[newest] - mean_v[m], KEPT),),
        ),
        Part(
            r"$C_t=\tfrac1t\sum_{j\le t}k_jv_j^\top-\bar k_t\bar v_t^\top$: linear attention on centred data,"
            r" which a state of fixed size carries.",
            (_moments(),),
        ),
    )


CLAIM = Claim(
    id="gdn.drop-gives-vanilla",
    title="Without the quadratic term the recurrence computes the covariance of keys and values",
    statement=(
        r"Let $\kappa_t=k_t-\bar k_t$ with means over $j\le t$. Dropping the quadratic term of"
        r" gdn.affine-obstruction leaves $S_t=(1-\tfrac1t)S_{t-1}+\tfrac1t\kappa_t(v_t-\bar v_{t-1})^\top$,"
        r" $S_1=0$, and this is $C_t=\tfrac1t\sum_{j\le t}(k_j-\bar k_t)(v_j-\bar v_t)^\top$ of"
        r" gdn.full-first-order for every $t$."
    ),
    source="article A, section 2",
    status=Status.AS_PRINTED,
    scope="every t ≥ 1, every key and value width (entry by entry), all real keys and values",
    variables=(
        Variable("t", r"number of tokens read, an integer $\ge1$"),
        Variable("k_j", r"one channel of the key of token $j$, $\mathbb{R}$"),
        Variable("v_j", r"one coordinate of the value of token $j$, $\mathbb{R}$"),
    ),
    assumptions=(Assumption(r"$S_1=0$, which any start gives: $1-\tfrac1t$ and $\kappa_t$ vanish at $t=1$"),),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant(
            "both deviations new",
            "the value measured from the new mean",
            lambda: (_welford(kappa[newest], v[newest] - mean_v[newest], KEPT),),
        ),
        Mutant(
            "both deviations old",
            "the key measured from the old mean",
            lambda: (_welford(k[newest] - mean_k[m], v[newest] - mean_v[m], KEPT),),
        ),
        Mutant(
            "no decay",
            "the old state kept whole",
            lambda: (_welford(kappa[newest], v[newest] - mean_v[m], Integer(1)),),
        ),
    ),
    remark=(
        "One deviation must be measured from the new mean and the other from the old one; which is which does"
        " not matter, since κ_t is (1 − 1/t) times the deviation from the old mean."
    ),
)

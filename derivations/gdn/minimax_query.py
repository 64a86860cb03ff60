"""The self weight is largest at the query along the centred key.

Cauchy–Schwarz with its remainder: R‖κ‖ − q·κ is a positive factor times (R² − ‖q‖²) + ‖q − Rκ/‖κ‖‖², so the
maximum is attained where both vanish and nowhere else.
"""

from sympy import Expr, Integer, Symbol

from derivations.gdn._symbols import K, c, dot, kappa, q, t
from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

n, R, slack = Symbol("n"), Symbol("R"), Symbol("sigma")
along, size, key = dot(kappa[t, c], q[c]), dot(q[c], q[c]), dot(kappa[t, c], kappa[t, c])
norm = Hypothesis("norm", key, n**2)
ball = Hypothesis("ball", slack, R**2 - size)
SIZES = ({t: 2, K: 1, c: 1}, {t: 3, K: 3, c: 2})


def _setting() -> Setting:
    return Setting((), (norm, ball), (n, R), (slack,), nonempty=(t, K), instances=SIZES)


def _remainder(factor: Expr) -> Chain:
    """The shortfall of the self weight from its largest value, as a sum of what cannot be negative."""
    chain = Chain("the shortfall from the largest self weight", _setting(), (1 + n * R) / t - (1 + along) / t)
    squares = size - 2 * R / n * along + R**2 / n**2 * key
    chain = chain.use(
        "complete the square",
        factor * (R**2 - size + squares),
        norm=-factor * R**2 / n**2,
    )
    apart = q[c] - R / n * kappa[t, c]
    chain = chain.use("the slack in ‖q‖ ≤ R", factor * (slack + squares), ball=-factor)
    return chain.rearrange("a square of a distance", factor * (slack + dot(apart, apart)))


def _largest() -> Obligation:
    factor = n / (2 * R * t)
    apart = q[c] - R / n * kappa[t, c]
    chain = _remainder(factor)
    return chain.drop(
        "neither term is negative", Integer(0), factor * slack, factor * dot(apart, apart)
    ).obligation()


def _attained(radius: Expr) -> Obligation:
    best = Definition("best query", q[c], radius / n * kappa[t, c], free=(c,))
    setting = Setting((best,), (norm,), (n, R), nonempty=(t, K), instances=SIZES)
    chain = Chain("the self weight at the best query", setting, (1 + along) / t)
    chain = chain.unfold("insert it", (1 + radius / n * key) / t, "best query")
    return chain.use("the norm", (1 + n * R) / t, norm=radius / (n * t)).obligation()


def _inside() -> Obligation:
    best = Definition("best query", q[c], R / n * kappa[t, c], free=(c,))
    setting = Setting((best,), (norm,), (n, R), nonempty=(t, K), instances=SIZES)
    chain = Chain("the best query has length R", setting, size)
    chain = chain.unfold("insert it", R**2 / n**2 * key, "best query")
    return chain.use("the norm", R**2, norm=R**2 / n**2).obligation()


def _equal_scale() -> Obligation:
    scale = Definition("equal scale", R, n)
    setting = Setting((scale,), positive=(n,), nonempty=(t,), instances=SIZES)
    chain = Chain("the best query at equal scale", setting, R / n * kappa[t, c])
    return chain.unfold("the factor is 1", kappa[t, c], "equal scale").obligation()


def parts() -> tuple[Part, ...]:
    """The bound with its remainder, where it is attained, and the substitute."""
    return (
        Part(
            r"For $\kappa_t\ne0$, $R>0$ and $\|q\|\le R$:"
            r" $\tfrac1t(1+R\|\kappa_t\|)-\tfrac1t(1+q\cdot\kappa_t)="
            r"\tfrac{\|\kappa_t\|}{2Rt}\big[(R^2-\|q\|^2)+\|q-R\kappa_t/\|\kappa_t\|\|^2\big]\ge0$. It"
            r" vanishes only at $q=R\kappa_t/\|\kappa_t\|$: the maximiser is unique.",
            (_remainder(n / (2 * R * t)).obligation(), _largest()),
        ),
        Part(
            r"At $q=R\kappa_t/\|\kappa_t\|$, which has length $R$, the first-order self weight is"
            r" $\tfrac1t(1+R\|\kappa_t\|)$.",
            (_attained(R), _inside()),
        ),
        Part(r"At equal scale, $R=\|\kappa_t\|$, the maximiser is $\kappa_t$ itself.", (_equal_scale(),)),
    )


CLAIM = Claim(
    id="gdn.minimax-query",
    title="The self weight is largest at the query along the centred key",
    statement=(
        r"Over $\|q\|\le R$ the first-order self weight $\tfrac1t(1+q\cdot\kappa_t)$ is largest at"
        r" $q=R\,\kappa_t/\|\kappa_t\|$, and only there when $\kappa_t\ne0$. At equal scale,"
        r" $R=\|\kappa_t\|$, that query is $\kappa_t$, and $\hat q=\kappa_t$ is a substitute that makes the"
        r" cost there vanish whatever the state (gdn.substitution-error)."
    ),
    source="article A, section 2",
    status=Status.AS_PRINTED,
    scope="every t ≥ 1, every key width K, every R > 0",
    variables=(
        Variable("q", r"query, $\mathbb{R}^K$, with $\|q\|\le R$"),
        Variable(r"\kappa_t", r"centred key, $\mathbb{R}^K\setminus\{0\}$; $n=\|\kappa_t\|$"),
        Variable("R", "bound on the query's length, a real number > 0"),
    ),
    assumptions=(
        Assumption(r"$\kappa_t\ne0$; for $\kappa_t=0$ the weight is $1/t$ at every query"),
        Assumption("equal scale of query and key is the article's choice; nothing derives it"),
    ),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant(
            "factor doubled",
            "the remainder with twice its factor",
            lambda: (_remainder(n / (R * t)).obligation(),),
        ),
        Mutant(
            "opposite query",
            "the maximum claimed at the opposite query",
            lambda: (_attained(-R),),
        ),
    ),
    remark=(
        "Zeroing the cost where the self weight is largest need not make the largest cost, or the mean cost,"
        " small: see gdn.least-squares-query and gdn.form-unstable."
    ),
)

"""The self weight is (1 + q·κ_t)/t up to a second-order remainder with an explicit bound.

t·a_t is one over the mean of e^{x_j}, x_j = s_j − s_t. The tangent of the exponential bounds that mean from
below by 1 − δ, δ = q·κ_t, and the tangent of e^{−x} from above by 1 − δ + η with η = D²/(1 − D) when every
|x_j| ≤ D < 1. Both bounds are inverted exactly; no theorem of analysis is used beyond the tangent.
"""

from sympy import Expr, IndexedBase, Integer, Sum, Symbol, exp, log, symbols

from derivations.gdn._bounds import bounded
from derivations.gdn._symbols import K, c, dot, e, j, k, kappa, key_mean, mean_k, q, t
from verify.derive import Chain, Definition, Hypothesis, Minimum, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

s, x, gap, a = (IndexedBase(name) for name in ("s", "x", "g", "a"))
delta, eta, D = Symbol(r"\delta"), Symbol(r"\eta"), Symbol("D")
E, G, H, u, y, z = symbols("E G H u y z")
room, low, high, other = symbols("r p m g'")
SIZES = ({t: 2}, {t: 4})
share = Definition("self weight", a[t], exp(s[t]) / Sum(exp(s[j]), (j, 1, t)))
shifted = Definition("shifted", x[j], s[j] - s[t], free=(j,))
exponentials = Sum(exp(x[j]), (j, 1, t)) / t
slope = Hypothesis("delta", delta, -Sum(x[j], (j, 1, t)) / t)


def _first_order(after: Expr) -> Obligation:
    score = Definition("score", s[j], dot(q[c], k[j, c]), free=(j,))
    centred = Definition("centred key", kappa[t, c], k[t, c] - mean_k[t, c], free=(c,))
    setting = Setting((score, centred, key_mean), nonempty=(t, K), instances=({t: 2, K: 2}, {t: 3, K: 1}))
    chain = Chain("minus the mean of the shifted scores", setting, -Sum(s[j] - s[t], (j, 1, t)) / t)
    return chain.unfold("linear in q", after, "centred key", "key mean", "score").obligation()


def _tangent() -> tuple[Obligation, ...]:
    """e^z >= 1 + z, as y − 1 − ln y at y = e^z."""
    lemma = Minimum("ln y is at most y − 1", y, y - 1 - log(y), Integer(1), Integer(0), 1 / y)
    chain = Chain("e^z − 1 − z is y − 1 − ln y at y = e^z", Setting(), exp(z) - 1 - log(exp(z)))
    return lemma.obligation(), chain.rearrange("ln e^z = z", exp(z) - 1 - z).obligation()


def _reciprocal() -> Obligation:
    setting = Setting((share, shifted), nonempty=(t,), instances=SIZES)
    chain = Chain("one over t times the self weight", setting, 1 / (t * a[t]))
    return chain.unfold("a mean of exponentials", exponentials, "self weight", "shifted").obligation()


def _mean_below(bound: Expr) -> Obligation:
    tangent = Definition("tangent gap", gap[j], exp(x[j]) - 1 - x[j], free=(j,))
    setting = Setting((tangent,), (slope,), nonnegative=(gap,), nonempty=(t,), instances=SIZES)
    chain = Chain("the mean of the exponentials, from below", setting, exponentials)
    gaps = Sum(gap[j], (j, 1, t)) / t
    chain = chain.unfold("tangent plus gap", 1 + Sum(x[j], (j, 1, t)) / t + gaps, "tangent gap")
    chain = chain.use("the mean shift is −δ", bound + gaps, delta=1)
    return chain.drop("gaps are not negative", bound, gaps).obligation()


def _one_above() -> tuple[Obligation, ...]:
    """e^z <= 1/(1 − z), with u = 1 − z > 0; then 1/(1 − z) <= 1 + z + η."""
    tangent = Definition("tangent gap", other, exp(u - 1) - u)
    setting = Setting((tangent,), positive=(u,), nonnegative=(other,))
    first = Chain("1/(1 − z) − e^z at z = 1 − u", setting, 1 / u - exp(1 - u))
    first = first.unfold("over a common denominator", other * exp(1 - u) / u, "tangent gap")
    first = first.drop("the tangent gap is not negative", Integer(0), other * exp(1 - u) / u)
    second = Chain("1/(1 − z) by its remainder", Setting(nonzero=(1 - z,)), 1 / (1 - z))
    second = second.rearrange("one division step", 1 + z + z**2 / (1 - z))
    return first.obligation(), second.obligation(), _remainders()


def _remainders() -> Obligation:
    """D²/(1 − D) >= z²/(1 − z), with p = D − z >= 0, m = D + z >= 0, r = 1 − D > 0, so 1 − z = r + p."""
    setting = Setting(positive=(room,), nonnegative=(low, high))
    largest, this = (low + high) / 2, (high - low) / 2
    start = largest**2 / room - this**2 / (room + low)
    chain = Chain("D²/(1 − D) − z²/(1 − z) by D − z, D + z and 1 − D", setting, start)
    factor = low / (room * (room + low))
    return chain.drop(
        "no term is negative", Integer(0), factor * high * room, factor * largest**2
    ).obligation()


def _mean_above() -> Obligation:
    above = Definition("upper gap", gap[j], 1 + x[j] + eta - exp(x[j]), free=(j,))
    setting = Setting((above,), (slope,), nonnegative=(gap,), nonempty=(t,), instances=SIZES)
    chain = Chain("the mean of the exponentials, from above", setting, 1 - delta + eta)
    chain = chain.use("the mean shift is −δ", 1 + Sum(x[j], (j, 1, t)) / t + eta, delta=-1)
    gaps = Sum(gap[j], (j, 1, t)) / t
    chain = chain.unfold("split off the gaps", exponentials + gaps, "upper gap")
    return chain.drop("gaps are not negative", exponentials, gaps).obligation()


def _weight_above() -> Obligation:
    """1 + δ + δ²/(1 − δ) − 1/E >= 0 for E = 1 − δ + G, u = 1 − δ > 0."""
    mean = Definition("mean", E, u + G)
    setting = Setting((mean,), positive=(u,), nonnegative=(G,))
    chain = Chain("t·a_t = 1/E from above", setting, 1 + (1 - u) + (1 - u) ** 2 / u - 1 / E)
    rest = G / (u * (u + G))
    chain = chain.unfold("over a common denominator", rest, "mean")
    return chain.drop("G is not negative", Integer(0), rest).obligation()


def _weight_below(first_order: Expr) -> Obligation:
    """1/E − (1 + δ − η) >= 0 for E = 1 − δ + η − H."""
    mean = Hypothesis("mean", E, 1 - delta + eta - H)
    setting = Setting((), (mean,), (E,), (H,))
    chain = Chain("t·a_t = 1/E from below", setting, 1 / E - (first_order - eta))
    square = (E - 1) ** 2 / E
    chain = chain.use("insert δ − η", square + H, mean=-1)
    return chain.drop("a square, and H is not negative", Integer(0), square, H).obligation()


def _cauchy_schwarz() -> Obligation:
    """‖q‖²‖d‖² − (q·d)² >= 0, half the sum of all (q_c d_e − q_e d_c)²."""
    apart = IndexedBase("d")
    setting = Setting(nonempty=(K,), instances=({K: 2}, {K: 3}))
    start = dot(q[c], q[c]) * dot(apart[c], apart[c]) - dot(q[c], apart[c]) ** 2
    pairs = Sum((q[c] * apart[e] - q[e] * apart[c]) ** 2, (c, 1, K), (e, 1, K)) / 2
    chain = Chain("‖q‖²‖d‖² − (q·d)² by Lagrange's identity", setting, start)
    return chain.drop("squares", Integer(0), pairs).obligation()


def _enclosed(size: str, **limits: str) -> Obligation:
    """(t·a_t − 1 − δ)/D² for t = 3, scores 0, 0, D."""
    term = (3 / (1 + 2 * exp(-D)) - 1 - D * 2 / 3) / D**2
    return bounded(f"t = 3, scores 0, 0, {size}: the remainder over D²", term, {D: size}, **limits)


def parts() -> tuple[Part, ...]:
    """The expansion, both bounds on the mean, both bounds on the weight, and a case."""
    return (
        Part(
            r"$1/(t\,a_t)=\tfrac1t\sum_{j\le t}e^{x_j}$ with $x_j=s_j-s_t$, and $-\tfrac1t\sum_jx_j="
            r"q\cdot\kappa_t=\delta$.",
            (_reciprocal(), _first_order(dot(q[c], kappa[t, c]))),
        ),
        Part(
            r"The mean of the exponentials is at least $1-\delta$, since $e^z\ge1+z$ for every real $z$.",
            (*_tangent(), _mean_below(1 - delta)),
        ),
        Part(
            r"If $|x_j|\le D<1$ for all $j$, it is at most $1-\delta+\eta$ with $\eta=D^2/(1-D)$, since"
            r" $e^z\le\tfrac1{1-z}=1+z+\tfrac{z^2}{1-z}\le1+z+\eta$ for $|z|\le D$.",
            (*_one_above(), _mean_above()),
        ),
        Part(
            r"So $1+\delta-\eta\le t\,a_t\le1+\delta+\tfrac{\delta^2}{1-\delta}\le1+\delta+\eta$; the last"
            r" step is the one above at $z=\delta$, for $|\delta|\le D$ as a mean of the $-x_j$.",
            (_weight_below(1 + delta), _weight_above(), _remainders()),
        ),
        Part(
            r"$|q\cdot(k_j-k_t)|\le\|q\|\,\|k_j-k_t\|$, so $D=\|q\|\max_j\|k_j-k_t\|$ will do and the"
            r" remainder is $O(\|q\|^2)$.",
            (_cauchy_schwarz(),),
        ),
        Part(
            r"The order is right: for $t=3$ and scores $0,0,D$ the remainder over $D^2$ is near $\tfrac19$"
            r" at $D=\tfrac1{100}$, and at $D=\tfrac12$ it is far below $\tfrac1{1-D}=2$.",
            (_enclosed("1/100", above="11/100", below="112/1000"), _enclosed("1/2", above="0", below="1/10")),
        ),
    )


CLAIM = Claim(
    id="gdn.self-weight-first-order",
    title="The self weight is (1 + q·κ_t)/t up to a second-order remainder with an explicit bound",
    statement=(
        r"With $\kappa_t=k_t-\bar k_t$ (mean over $j\le t$) the self weight is"
        r" $a_t=\tfrac1t(1+q\cdot\kappa_t)+O(\|q\|^2)$. Explicitly, if $|q\cdot(k_j-k_t)|\le D<1$ for all"
        r" $j\le t$, then $|a_t-\tfrac1t(1+q\cdot\kappa_t)|\le\tfrac1t\,\tfrac{D^2}{1-D}$; $D$ may be"
        r" $\|q\|\max_j\|k_j-k_t\|$."
    ),
    source="article A, section 2",
    status=Status.AS_PRINTED,
    scope="every t ≥ 1, every key width K, all real queries and keys with |q·(k_j − k_t)| ≤ D < 1",
    variables=(
        Variable("q,k_j", r"query and keys, $\mathbb{R}^K$; scores $s_j=q\cdot k_j$"),
        Variable(r"\kappa_t", r"centred key, $\mathbb{R}^K$"),
        Variable("D", r"bound on the score differences, $0\le D<1$"),
    ),
    assumptions=(
        Assumption(r"$|s_j-s_t|\le D<1$ for all $j\le t$ (for the bound; as $q\to0$ it always holds)"),
    ),
    asked="CB",
    parts=parts,
    mutants=(
        Mutant("sign flipped", "first order 1 − q·κ_t", lambda: (_weight_below(1 - delta),)),
        Mutant("mean shift doubled", "the mean at least 1 − 2δ", lambda: (_mean_below(1 - 2 * delta),)),
        Mutant("old mean", "the key measured from 0", lambda: (_first_order(dot(q[c], k[t, c])),)),
        Mutant(
            "third order claimed",
            "a remainder below D²/100 at D = 1/100",
            lambda: (_enclosed("1/100", below="1/100"),),
        ),
    ),
    remark="The remainder is relative: it carries the factor 1/t, like the weight itself.",
)

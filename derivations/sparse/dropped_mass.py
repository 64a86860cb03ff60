"""Dropping mass δ moves the output by δ times the distance of two means, so by at most δ·diameter.

The full output mixes the mean over the dropped tokens and the mean over the kept ones with shares δ and 1 −
δ. The distance of the two means is at most the largest distance of two values: the mean squared distance of
a dropped and a kept value is the squared distance of the means plus two variances. Total variation and
divergence are read off the renormalised weights p_j/(1 − δ).
"""

from sympy import Expr, IndexedBase, Rational, Sum, log, symbols

from derivations.sparse._symbols import (
    CUT,
    SIZES,
    V,
    c,
    coordinates,
    dropped,
    everything,
    i,
    j,
    kept,
    m,
    n,
    p,
    v,
)
from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

diameter, largest, share, total = symbols(r"D M delta A")
u, w, slack, room = (IndexedBase(name) for name in ("u", "w", "sigma", "r"))
x, y = (IndexedBase(name) for name in ("x", "y"))

unit = Hypothesis("unit", dropped(p[j]) + kept(p[j]), 1)
SETTING = Setting((), (unit,), positive=(p,), nonempty=(V,), order=CUT, instances=SIZES)
kept_mass = Definition("kept mass", total, kept(p[j]))
NAMED = Setting((kept_mass,), (unit,), positive=(p, total), order=CUT, instances=SIZES)
kept_mean = kept(p[j] * v[j]) / kept(p[j])
dropped_mean = dropped(p[j] * v[j]) / dropped(p[j])


def _identity(after: Expr) -> Obligation:
    chain = Chain("the error of attention on the kept tokens", SETTING, everything(p[j] * v[j]) - kept_mean)
    halves = dropped(p[j] * v[j]) + kept(p[j] * v[j]) - kept_mean
    chain = chain.split("dropped tokens, kept tokens", halves, n, m)
    return chain.use("the weights sum to 1", after, unit=kept_mean).obligation()


def _distance_of_means(factor: int) -> Obligation:
    """D² is at least the squared distance of a mean of dropped and a mean of kept values."""
    apart = coordinates((v[i, c] - v[j, c]) ** 2)
    rest = Definition("slack", slack[i, j], diameter**2 - apart, free=(i, j))
    one_u, one_w = Hypothesis("u", dropped(u[j]), 1), Hypothesis("w", kept(w[j]), 1)
    setting = Setting((rest,), (one_u, one_w), (u, w), (slack,), nonempty=(V,), order=CUT, instances=SIZES)

    def pairs(summand: Expr) -> Sum:
        return Sum(u[i] * w[j] * summand, (j, m + 1, n), (i, 1, m))

    chain = Chain("two means are at most a diameter apart", setting, diameter**2)
    chain = chain.use("the dropped shares sum to 1", diameter**2 * dropped(u[j]), u=-(diameter**2))
    both = diameter**2 * dropped(u[j]) * kept(w[j])
    chain = chain.use("so do the kept ones", both, w=-(diameter**2) * dropped(u[j]))
    chain = chain.unfold("every pair is at most D apart", pairs(slack[i, j] + apart), "slack")
    chain = chain.drop("drop what is left to D", pairs(apart), pairs(slack[i, j]))
    mean_u, mean_w = dropped(u[j] * v[j, c]), kept(w[j] * v[j, c])
    squares_u, squares_w = dropped(u[j] * v[j, c] ** 2), kept(w[j] * v[j, c] ** 2)
    spread = squares_u + squares_w - 2 * mean_u * mean_w
    chain = chain.use("multiply out", coordinates(spread), w=coordinates(squares_u), u=coordinates(squares_w))
    variances = squares_u - mean_u**2, squares_w - mean_w**2
    chain = chain.rearrange(
        "complete the square", coordinates((mean_u - mean_w) ** 2) + coordinates(sum(variances))
    )
    x_mean, y_mean = Sum(u[i] * v[i, c], (i, 1, m)), Sum(w[i] * v[i, c], (i, m + 1, n))
    spread_u, spread_w = dropped(u[j] * (v[j, c] - x_mean) ** 2), kept(w[j] * (v[j, c] - y_mean) ** 2)
    target = coordinates((mean_u - mean_w) ** 2)
    chain = chain.use(
        "the rest are variances",
        target + coordinates(spread_u + spread_w),
        u=-coordinates(mean_u**2),
        w=-coordinates(mean_w**2),
    )
    return chain.drop(
        "variances are not negative", factor * target, coordinates(spread_u), coordinates(spread_w)
    ).obligation()


def _diameter_of_ball(factor: int) -> Obligation:
    """(2M)² >= ‖x − y‖² when ‖x‖, ‖y‖ <= M."""
    rooms = tuple(
        Definition(f"room of {name}", room[place], largest**2 - coordinates(vector[c] ** 2))
        for place, name, vector in ((1, "x", x), (2, "y", y))
    )
    setting = Setting(rooms, (), (), (room,), nonempty=(V,), instances=({V: 2}, {V: 3}))
    chain = Chain("two values are at most 2M apart", setting, factor * largest**2)
    apart, mirrored = coordinates((x[c] - y[c]) ** 2), coordinates((x[c] + y[c]) ** 2)
    parallelogram = apart + mirrored + 2 * room[1] + 2 * room[2]
    chain = chain.unfold("parallelogram law", parallelogram, "room of x", "room of y")
    return chain.drop("drop what is not negative", apart, mirrored, 2 * room[1] + 2 * room[2]).obligation()


def _attained(factor: int) -> Obligation:
    """One dropped token with value −v, one kept with value v."""
    values = Definition("v", v[1], -v[2]), Definition("p", p[2], 1 - p[1])
    setting = Setting(values, nonzero=(1 - p[1],), instances=({},))
    start = p[1] * v[1] + p[2] * v[2] - p[2] * v[2] / p[2]
    chain = Chain("two opposite values, one dropped", setting, start)
    return chain.unfold("insert the values", -factor * p[1] * v[2], "v", "p").obligation()


def _total_variation(after: Expr) -> Obligation:
    change = (kept(p[j] / total - p[j]) + dropped(p[j])) / 2
    chain = Chain("total variation", NAMED, change)
    scaled = (1 - kept(p[j]) + dropped(p[j])) / 2
    chain = chain.unfold("the kept weights are rescaled", scaled, "kept mass")
    return chain.use("the weights sum to 1", after, unit=-Rational(1, 2)).obligation()


def _grows() -> Obligation:
    """Kept weights grow, so that |p_j/(1 − δ) − p_j| is the difference itself."""
    shares = Hypothesis("unit", share + total, 1)
    setting = Setting((), (shares,), positive=(share, total, p), instances=({j: 1},))
    chain = Chain("a kept weight grows", setting, p[j] / total)
    chain = chain.use("1 = δ + A", p[j] * (share + total) / total, unit=-p[j] / total)
    return chain.drop("by a share of δ", p[j], p[j] * share / total).obligation()


def _divergence(after: Expr) -> Obligation:
    start = kept(p[j] / total * (log(p[j] / total) - log(p[j])))
    chain = Chain("divergence of the kept from the full weights", NAMED, start)
    chain = chain.rearrange("every ratio is 1/A", -log(total) * kept(p[j]) / total)
    return chain.unfold("the kept weights sum to A", after, "kept mass").obligation()


def parts() -> tuple[Part, ...]:
    """The error, its bound, that it is attained, and how far the weights move."""
    return (
        Part(
            r"With $\mu_D$ the mean of the dropped values under their weights, $o-\tilde"
            r" o=\delta(\mu_D-\tilde o)$.",
            (_identity(dropped(p[j]) * (dropped_mean - kept_mean)),),
        ),
        Part(
            r"If every dropped value is at most $D$ away from every kept one, then"
            r" $\|\mu_D-\tilde o\|\le D$, hence $\|o-\tilde o\|\le\delta D$; and $D\le2M$ when all"
            r" $\|v_j\|\le M$.",
            (_distance_of_means(1), _diameter_of_ball(4)),
        ),
        Part(
            r"Both bounds are attained: one dropped token with value $-v$ and weight $\delta$, one kept with"
            r" value $v$, give $o-\tilde o=-2\delta v$.",
            (_attained(2),),
        ),
        Part(
            r"The total variation between the kept and the full weights is $\delta$: kept weights grow to"
            r" $p_j/(1-\delta)$, dropped ones vanish.",
            (_total_variation(dropped(p[j])), _grows()),
        ),
        Part(
            r"$\mathrm{KL}(\text{kept}\|\text{full})=-\ln A=-\ln(1-\delta)$ with $A=1-\delta$ the kept"
            r" mass.",
            (_divergence(-log(kept(p[j]))),),
        ),
    )


CLAIM = Claim(
    id="sparse.dropped-mass",
    title="Dropping mass δ moves the output by δ times the distance of two means, so by at most δ·diameter",
    statement=(
        r"Let $p$ be attention weights, drop tokens of total mass $\delta\in(0,1)$ and renormalise the"
        r" others, $\tilde p_j=p_j/(1-\delta)$. Then $o-\tilde o=\delta(\mu_D-\tilde o)$ with $\mu_D$ the"
        r" weighted mean of the dropped values; $\|o-\tilde"
        r" o\|\le\delta\,\mathrm{diam}(v)\le2\delta\max_j\|v_j\|$, both attained; the total variation"
        r" between $\tilde p$ and $p$ is $\delta$ and $\mathrm{KL}(\tilde p\|p)=-\ln(1-\delta)$."
    ),
    source="article A, section 5; article B, section 1",
    status=Status.AS_PRINTED,
    scope="every number of tokens and every dropped set but none and all, every value width, any weights > 0",
    variables=(
        Variable("n, m", r"tokens and dropped tokens, integers with $1\le m<n$; the dropped come first"),
        Variable("p_j", "weights > 0 with sum 1"),
        Variable("v_j", r"\mathbb{R}^V"),
        Variable(r"\delta", r"dropped mass $p_1+\dots+p_m$"),
    ),
    assumptions=(
        Assumption("tokens are numbered so that the dropped ones come first (a relabelling)"),
        Assumption(r"Euclidean norm; bounds are proved for its square, $D,M\ge0$"),
    ),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant(
            "unscaled kept mean",
            "the error measured from the kept sum instead of its mean",
            lambda: (_identity(dropped(p[j]) * (dropped_mean - kept(p[j] * v[j]))),),
        ),
        Mutant("twice as far", "means up to half a diameter apart", lambda: (_distance_of_means(2),)),
        Mutant("radius for diameter", "values at most M apart", lambda: (_diameter_of_ball(2),)),
        Mutant("half attained", "an error of δ‖v‖ in the extreme case", lambda: (_attained(1),)),
        Mutant(
            "both sides counted",
            "the total variation as 2δ",
            lambda: (_total_variation(2 * dropped(p[j])),),
        ),
        Mutant(
            "divergence of the dropped mass",
            "KL as −ln δ",
            lambda: (_divergence(-log(dropped(p[j]))),),
        ),
    ),
    remark=(
        "The bound needs no assumption on how the kept set was chosen; what the choice decides is δ alone"
        " (sparse.gap-bound, sparse.indexer-regret)."
    ),
)

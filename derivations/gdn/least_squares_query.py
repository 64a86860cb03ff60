"""The substitute query of least mean-square error is a shrunken key, and it is stable.

Per step, and for one column a of the old state, the cost of reading it with c instead of q is
(1 + q·κ)a·(q − c) times 1/t. Its mean square over random q is quadratic in c: expanding and completing the
square gives the minimiser from five moments. The expectation is written as a finite weighted sum; only its
linearity is used, so the same lines hold for a Gaussian.
"""

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from derivations.gdn._symbols import K, S, c, dot, e, i, kappa, t
from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

N = symbols("N")
p, g, y, vector = (IndexedBase(name) for name in ("p", "g", "y", "r"))
variance, size, overlap, guess, third, x = symbols("s^2 n m z M x")
SAMPLES = ({N: 3}, {N: 5})


def mean(summand: Expr | int) -> Sum:
    """The expectation, as a weighted sum over N values of the query."""
    return Sum(p[i] * summand, (i, 1, N))


MOMENTS = (
    Hypothesis("total", mean(1), 1),
    Hypothesis("keymean", mean(g[i]), 0),
    Hypothesis("readmean", mean(y[i]), 0),
    Hypothesis("keysquare", mean(g[i] ** 2), variance * size),
    Hypothesis("cross", mean(g[i] * y[i]), variance * overlap),
    Hypothesis("cubic", mean(g[i] ** 2 * y[i]), 0),
)
weight_mean = 1 + variance * size
best = 2 * variance * overlap / weight_mean


def _setting() -> Setting:
    return Setting((), MOMENTS, (variance,), (size,), nonempty=(N,), instances=SAMPLES)


def _weights() -> Obligation:
    chain = Chain("the mean of the squared weight", _setting(), mean((1 + g[i]) ** 2))
    chain = chain.rearrange("expand", mean(1) + 2 * mean(g[i]) + mean(g[i] ** 2))
    return chain.use("moments", weight_mean, total=1, keymean=2, keysquare=1).obligation()


def _weighted_read(after: Expr) -> Obligation:
    chain = Chain("the mean of squared weight times read", _setting(), mean((1 + g[i]) ** 2 * y[i]))
    chain = chain.rearrange("expand", mean(y[i]) + 2 * mean(g[i] * y[i]) + mean(g[i] ** 2 * y[i]))
    return chain.use("moments", after, readmean=1, cross=2, cubic=1).obligation()


def _excess(substitute: Expr) -> Chain:
    """E[w(y − z)²] − E[w(y − z*)²] for the squared weight w, the guess z and the substitute z*."""
    w = (1 + g[i]) ** 2
    start = mean(w * (y[i] - guess) ** 2) - mean(w * (y[i] - substitute) ** 2)
    chain = Chain("the excess over the least mean-square error", _setting(), start)
    of_weight = mean(1) + 2 * mean(g[i]) + mean(g[i] ** 2)
    of_read = mean(y[i]) + 2 * mean(g[i] * y[i]) + mean(g[i] ** 2 * y[i])
    expanded = (guess**2 - substitute**2) * of_weight - 2 * (guess - substitute) * of_read
    chain = chain.rearrange("expand; the squares of the read cancel", expanded)
    both, linear = guess**2 - substitute**2, -2 * (guess - substitute)
    inserted = both * weight_mean + linear * 2 * variance * overlap
    chain = chain.use(
        "moments",
        inserted,
        total=both,
        keymean=2 * both,
        keysquare=both,
        readmean=linear,
        cross=2 * linear,
        cubic=linear,
    )
    return chain.rearrange("complete the square", weight_mean * (guess - substitute) ** 2)


def _least() -> Obligation:
    return _excess(best).drop("a square", Integer(0), weight_mean * (guess - best) ** 2).obligation()


def _odd() -> Obligation:
    symmetric = Hypothesis("symmetric", third, -third)
    chain = Chain("an odd moment of a symmetric distribution", Setting((), (symmetric,)), third)
    return chain.use("q and −q are equally likely", Integer(0), symmetric=Integer(1) / 2).obligation()


substitute_query = Definition(
    "substitute", IndexedBase("c^*")[c], 2 * variance * kappa[t, c] / weight_mean, free=(c,)
)
norm = Hypothesis("norm", dot(kappa[t, c], kappa[t, c]), size)
STEP = ({t: 2, K: 2, c: 1, e: 1}, {t: 3, K: 3, c: 2, e: 3})


def _read_off(value: Expr) -> Obligation:
    """a·c* is the least-squares guess for every column a."""
    named = Hypothesis("overlap", dot(S[t - 1, c], kappa[t, c]), overlap)
    setting = Setting((substitute_query,), (named,), (variance,), (size,), nonempty=(K, t), instances=STEP)
    chain = Chain("reading any column with c*", setting, dot(S[t - 1, c], IndexedBase("c^*")[c]))
    factor = 2 * variance / weight_mean
    chain = chain.unfold("insert it", factor * dot(S[t - 1, c], kappa[t, c]), "substitute")
    return chain.use("the overlap of column and key", value, overlap=factor).obligation()


def _eigenvalue(value: Expr) -> Obligation:
    """The transition (1 − 1/t)I − (1/t)κc*ᵀ applied to κ."""
    setting = Setting((substitute_query,), (norm,), (variance,), (size,), nonempty=(K, t), instances=STEP)
    start = (1 - 1 / t) * kappa[t, e] - kappa[t, e] * dot(IndexedBase("c^*")[c], kappa[t, c]) / t
    chain = Chain("the transition along the centred key", setting, start)
    factor = 2 * variance / weight_mean
    square = dot(kappa[t, c], kappa[t, c])
    inserted = (1 - 1 / t - factor * square / t) * kappa[t, e]
    chain = chain.unfold("insert c*", inserted, "substitute")
    after = value.subs(x, variance * size) * kappa[t, e]
    return chain.use("the norm", after, norm=-factor * kappa[t, e] / t).obligation()


def _across() -> Obligation:
    """The transition applied to a vector orthogonal to κ."""
    orthogonal = Hypothesis("orthogonal", dot(kappa[t, c], vector[c]), 0)
    setting = Setting(
        (substitute_query,), (orthogonal,), (variance,), (size,), nonempty=(K, t), instances=STEP
    )
    start = (1 - 1 / t) * vector[e] - kappa[t, e] * dot(IndexedBase("c^*")[c], vector[c]) / t
    chain = Chain("the transition across the centred key", setting, start)
    factor = -2 * variance / weight_mean * kappa[t, e] / t
    inserted = (1 - 1 / t) * vector[e] + factor * dot(kappa[t, c], vector[c])
    chain = chain.unfold("insert c*", inserted, "substitute")
    return chain.use("nothing is erased", (1 - 1 / t) * vector[e], orthogonal=factor).obligation()


eigenvalue = 1 - 1 / t - 2 / t * x / (1 + x)


def _range(lowest: Expr) -> tuple[Obligation, ...]:
    setting = Setting(nonnegative=(x,), nonempty=(t,), instances=({t: 2}, {t: 5}))
    upper = Chain("below 1 − 1/t, or equal to it at x = 0", setting, (1 - 1 / t) - eigenvalue)
    upper = upper.drop("x is not negative", Integer(0), 2 * x / (t * (1 + x)))
    lower = Chain("its distance from the lower end", setting, eigenvalue - lowest)
    lower = lower.rearrange("a positive number", 2 / (t * (1 + x)))
    bottom = Chain("the lower end is at least −1/2 from t = 2 on", setting, lowest + Integer(1) / 2)
    bottom = bottom.rearrange("over 2t", 3 * (t - 2) / (2 * t))
    return upper.obligation(), lower.obligation(), bottom.obligation()


def parts() -> tuple[Part, ...]:
    """Moments, minimiser, and the eigenvalue with it."""
    return (
        Part(
            r"For $q\sim N(0,s^2I)$ and $w=(1+q\cdot\kappa)^2$: $E[w]=1+s^2\|\kappa\|^2$ and"
            r" $E[w\,(a\cdot q)]=2s^2(a\cdot\kappa)$ for every $a$, so $E[wq]=2s^2\kappa$; mean and"
            r" covariance are given, and odd moments vanish because $-q$ has the same distribution.",
            (_weights(), _weighted_read(2 * variance * overlap), _odd()),
        ),
        Part(
            r"For every column $a$ of the old state and every guess $z$ for $a\cdot c$:"
            r" $E[w(a\cdot q-z)^2]-E[w(a\cdot q-z^*)^2]=(1+s^2\|\kappa\|^2)(z-z^*)^2\ge0$ with"
            r" $z^*=2s^2(a\cdot\kappa)/(1+s^2\|\kappa\|^2)$: the minimiser is unique.",
            (_excess(best).obligation(), _least()),
        ),
        Part(
            r"$c^*=2s^2\kappa/(1+s^2\|\kappa\|^2)$ gives $a\cdot c^*=z^*$ for all columns at once; summed"
            r" over the columns of $A^\top$ it minimises $E[w\|A(q-c)\|^2]$.",
            (_read_off(best),),
        ),
        Part(
            r"The transition $(1-\tfrac1t)I-\tfrac1t\kappa c^{*\top}$, symmetric since $c^*\parallel\kappa$,"
            r" has the eigenvalue $\lambda=1-\tfrac1t-\tfrac2t\tfrac x{1+x}$, $x=s^2\|\kappa\|^2$, along"
            r" $\kappa$ and $1-\tfrac1t$ across it.",
            (_eigenvalue(eigenvalue), _across()),
        ),
        Part(
            r"$1-\tfrac3t<\lambda\le1-\tfrac1t$ for every $x\ge0$, and $1-\tfrac3t\ge-\tfrac12$ for"
            r" $t\ge2$: stable whatever the data.",
            _range(1 - 3 / t),
        ),
    )


CLAIM = Claim(
    id="gdn.least-squares-query",
    title="The substitute query of least mean-square error is a shrunken key, and it is stable",
    statement=(
        r"For $q\sim N(0,s^2I)$ the substitute $c$ that minimises the mean-square cost of one step,"
        r" $E[(1+q\cdot\kappa)^2\|A(q-c)\|^2]$, is $c^*=2s^2\kappa/(1+s^2\|\kappa\|^2)$ (unique as far as"
        r" $A$ sees it), in general not $\kappa$. With it the transition's eigenvalue along $\kappa$ is"
        r" $1-\tfrac1t-\tfrac2t\tfrac x{1+x}$, $x=s^2\|\kappa\|^2$, in $(1-\tfrac3t,1-\tfrac1t]$: stable"
        r" for every $t\ge2$ and all data."
    ),
    source="new: completes article A, section 2",
    status=Status.NEW,
    scope="one step, given the old state; every t ≥ 2, every width, every s > 0 and κ",
    variables=(
        Variable("q", "random query with distribution $N(0,s^2I)$"),
        Variable(r"\kappa", r"\mathbb{R}^K"),
        Variable("A", r"old state as a map from queries to outputs; $a$ is a column of $A^\top$"),
        Variable("s", "standard deviation of a query channel, a real number > 0"),
    ),
    assumptions=(
        Assumption("mean 0 and covariance s²I are what N(0, s²I) means; it is symmetric about 0"),
        Assumption(
            "the expectation is linear and the moments up to order 4 exist; it is written as a weighted sum"
        ),
        Assumption("κ and the old state do not depend on the query"),
    ),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant("factor 2 lost", "half the cross moment", lambda: (_weighted_read(variance * overlap),)),
        Mutant(
            "the key itself",
            "κ as the substitute: the excess is then no square",
            lambda: (_excess(overlap).obligation(),),
        ),
        Mutant(
            "eigenvalue of the key",
            "the eigenvalue that the substitute κ gives",
            lambda: (_eigenvalue(1 - 1 / t - x / t),),
        ),
        Mutant("half the read", "a column read at half its guess", lambda: (_read_off(best / 2),)),
        Mutant("narrower", "the eigenvalue claimed above 1 − 2/t", lambda: _range(1 - 2 / t)),
    ),
    remark=(
        "c* equals κ only where s²(2 − ‖κ‖²) = 1. Any symmetric distribution of covariance s²I gives the same"
        " c*. Whether it helps end to end is a measurement (gdn.is-it-better)."
    ),
)

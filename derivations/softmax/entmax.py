"""Tsallis entropy between softmax and sparsemax: at α = 3/2 the weights are squares.

Written in y_j = √a_j, the objective at α = 3/2 is a cubic in every coordinate, and what a coordinate costs
more than the candidate max(0, z − θ), z = s/2, is a square times something non-negative. The support comes
from sorted scores: C_k = Σ_{j≤k}(z_j − z_k)² does not decrease, and the support is where it is below 1.
"""

from sympy import Expr, IndexedBase, Integer, Rational, Sum, symbols

from derivations.softmax import _divergence as divergence
from derivations.softmax import _tsallis as tsallis
from derivations.softmax._bounds import tangent_of_exp
from derivations.softmax._symbols import j, k, n, over_tokens, s
from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

r, theta, t, x, level, mean, width, step, lam = symbols(r"r \theta t x u m w e \lambda")
a, y, z, lead = (IndexedBase(name) for name in ("a", "y", "z", "h"))
CONSTANT = Rational(4, 3)


def _objective(roots: IndexedBase) -> Expr:
    """F in the roots: Σ −y²s + (4/3)(y³ − y²), from −Σ as − (4/3)Σ(a − a^{3/2})."""
    return over_tokens(-(roots[j] ** 2) * s[j] + CONSTANT * (roots[j] ** 3 - roots[j] ** 2))


def _stationary(after: Expr) -> Obligation:
    """Where the derivative in one root of the Lagrangian, over 2y, vanishes."""
    zero = Hypothesis("stationarity", -s[k] + CONSTANT * (Rational(3, 2) * y[k] - 1) + lam, 0)
    named = Definition("threshold", theta, lam / 2 - Rational(2, 3))
    setting = Setting((named,), (zero,), instances=({k: 1},))
    chain = Chain("the root of a positive weight", setting, y[k])
    chain = chain.use("solve for it", s[k] / 2 - lam / 2 + Rational(2, 3), stationarity=Rational(1, 2))
    return chain.unfold("name the threshold", after, "threshold").obligation()


def _slope() -> Obligation:
    setting = Setting(instances=({},))
    cost = -(x**2) * level + CONSTANT * (x**3 - x**2) + lam * x**2
    chain = Chain("one coordinate of the Lagrangian", setting, cost)
    after = 2 * x * (-level + CONSTANT * (Rational(3, 2) * x - 1) + lam)
    return chain.differentiate("a cubic", after, x).obligation()


def _reduced() -> Obligation:
    """Equal totals turn the objective into one with θ: the constants are those of the simplex."""
    total = Hypothesis("simplex", over_tokens(y[j] ** 2), 1)
    setting = Setting((), (total,), nonempty=(n,), instances=({n: 2}, {n: 3}))
    chain = Chain("the objective on the simplex", setting, _objective(y))
    cubic = over_tokens(CONSTANT * y[j] ** 3 - 2 * (s[j] / 2 - theta) * y[j] ** 2)
    constant = -2 * theta - CONSTANT
    chain = chain.rearrange("bring in the threshold", cubic + constant * over_tokens(y[j] ** 2))
    return chain.use("the weights sum to 1", cubic + constant, simplex=constant).obligation()


def _cost(root: Expr, advantage: Expr) -> Expr:
    return CONSTANT * root**3 - 2 * advantage * root**2


def _inside(factor: Expr) -> Obligation:
    """t = z − θ >= 0: x costs more than t by (2/3)(x − t)²(2x + t)."""
    setting = Setting(nonnegative=(x, t))
    chain = Chain("inside the support", setting, _cost(x, t) - _cost(t, t))
    terms = Rational(2, 3) * (x - t) ** 2 * (factor * x + t)
    chain = chain.rearrange("t is a double root", terms)
    return chain.drop("a square times a non-negative number", Integer(0), terms).obligation()


def _outside() -> Obligation:
    """t = z − θ = −u <= 0: x costs more than 0."""
    setting = Setting(nonnegative=(x, level))
    chain = Chain("outside the support", setting, _cost(x, -level))
    terms = CONSTANT * x**3, 2 * level * x**2
    chain = chain.rearrange("both terms are non-negative", sum(terms))
    return chain.drop("so 0 is best", Integer(0), *terms).obligation()


def _deviations(centre: Expr) -> Expr:
    return Sum((z[j] - centre) ** 2, (j, 1, r))


def _completed() -> tuple[Definition, Hypothesis]:
    mean_of = Definition("mean", mean, Sum(z[j], (j, 1, r)) / r)
    spread = Hypothesis("width", width**2, (1 - _deviations(Sum(z[j], (j, 1, r)) / r)) / r)
    return mean_of, spread


def _square_completed(at: Expr, after: Expr) -> Obligation:
    """Σ_{j≤r}(z_j − c)² − 1 = r((c − m)² − w²), with w² = (1 − Σ(z_j − m)²)/r."""
    mean_of, spread = _completed()
    setting = Setting((mean_of,), (spread,), nonempty=(r,), instances=({r: 1}, {r: 3}))
    chain = Chain("the mass above a level, less 1", setting, _deviations(at) - 1)
    centre = Sum(z[j], (j, 1, r)) / r
    chain = chain.rearrange(
        "complete the square", r * (at - centre) ** 2 - r * ((1 - _deviations(centre)) / r)
    )
    chain = chain.use("the width", r * (at - centre) ** 2 - r * width**2, width=r)
    return chain.unfold("name the mean", after, "mean").obligation()


def _threshold() -> Obligation:
    mean_of, spread = _completed()
    value = Definition("threshold", theta, mean - width)
    setting = Setting((value, mean_of), (spread,), nonempty=(r,), instances=({r: 1}, {r: 3}))
    centre = Sum(z[j], (j, 1, r)) / r
    chain = Chain("the mass above the threshold", setting, _deviations(theta))
    chain = chain.unfold("insert it", _deviations(centre) + r * width**2, "threshold", "mean")
    return chain.use("the width was chosen for this", Integer(1), width=r).obligation()


def _increasing(after: Expr) -> Obligation:
    sorted_ = Definition("next score", z[k + 1], z[k] - step)
    above = Definition("lead", lead[j], z[j] - z[k], free=(j,))
    setting = Setting((above, sorted_), nonnegative=(lead, step), nonempty=(k,), instances=({k: 1}, {k: 3}))
    newer, older = Sum((z[j] - z[k + 1]) ** 2, (j, 1, k + 1)), Sum((z[j] - z[k]) ** 2, (j, 1, k))
    chain = Chain("C of the next token minus C", setting, newer - older)
    cut = Sum((z[j] - z[k + 1]) ** 2, (j, 1, k))
    chain = chain.split("the next token adds nothing to its own", cut - older, k + 1, k)
    terms = Sum(step**2 + 2 * step * lead[j], (j, 1, k))
    chain = chain.unfold("leads grow by the same step", terms, "next score", "lead")
    return chain.drop("no term is negative", after, terms).obligation()


def _square_entropy(after: Expr) -> Obligation:
    """α = 2: −Σ as − ½Σ(a − a²) on the simplex."""
    total = Hypothesis("simplex", over_tokens(a[j]), 1)
    setting = Setting((), (total,), nonempty=(n,), instances=({n: 2}, {n: 3}))
    entropy = (over_tokens(a[j]) - over_tokens(a[j] ** 2)) / 2
    chain = Chain("the objective at α = 2", setting, -over_tokens(a[j] * s[j]) - entropy)
    return chain.use("the weights sum to 1", after, simplex=-Rational(1, 2)).obligation()


SPARSEMAX = -over_tokens(a[j] * s[j]) + over_tokens(a[j] ** 2) / 2


def parts() -> tuple[Part, ...]:
    """Stationary point, optimality, threshold, support, and the two ends α = 1 and α = 2."""
    return (
        Part(
            r"With $y_j=\sqrt{a_j}$ a coordinate of the Lagrangian $-y^2s+\frac43(y^3-y^2)+\lambda y^2$ has"
            r" the derivative $2y(-s+\frac43(\frac32y-1)+\lambda)$: a positive root is $y=s/2-\theta$ with"
            r" $\theta=\lambda/2-2/3$.",
            (_slope(), _stationary(s[k] / 2 - theta)),
        ),
        Part(
            r"On the simplex $F=\sum_jf_j(y_j)-2\theta-\frac43$ with $f_j(y)=\frac43y^3-2(z_j-\theta)y^2$,"
            r" $z=s/2$. For $t=z_j-\theta\ge0$ every $x\ge0$ costs $f_j(x)-f_j(t)=\frac23(x-t)^2(2x+t)\ge0$"
            r" more than $t$, and 0 only at $x=t$; for $z_j-\theta=-u\le0$ it costs $\frac43x^3+2ux^2\ge0$,"
            r" and 0 only at $x=0$. So $a_j=\max(0,s_j/2-\theta)^2$, when these sum to 1, is the only"
            r" minimiser.",
            (_reduced(), _inside(Integer(2)), _outside()),
        ),
        Part(
            r"If the support is $1,\dots,r$, then $\theta=m-w$ with $m=\frac1r\sum_{j\le r}z_j$ and"
            r" $w=\sqrt{(1-\sum_{j\le r}(z_j-m)^2)/r}$: there $\sum_{j\le r}(z_j-\theta)^2=1$.",
            (_threshold(),),
        ),
        Part(
            r"For scores sorted downwards $C_k=\sum_{j\le k}(z_j-z_k)^2$ starts at 0 and does not decrease."
            r" Let $r$ be the last $k$ with $C_k<1$. Since $\sum_{j\le r}(z_j-c)^2-1=r((c-m)^2-w^2)$ for"
            r" every $c$, $C_r<1$ says $|z_r-m|<w$ (so $w$ is real and $\theta<z_r$), and $C_{r+1}\ge1$ says"
            r" $m-z_{r+1}\ge w$ (so $z_{r+1}\le\theta$): exactly $1,\dots,r$ lie above $\theta$.",
            (_increasing(Integer(0)), _square_completed(x, r * ((x - mean) ** 2 - width**2))),
        ),
        Part(
            r"$\alpha=2$: on the simplex the objective is that of sparsemax,"
            r" $-\sum_ja_js_j+\frac12\|a\|^2$, less $\frac12$.",
            (_square_entropy(SPARSEMAX - Rational(1, 2)),),
        ),
        Part(
            r"$\alpha=1+\epsilon\to1^+$: one weight $a=e^{-L}$ has Tsallis term within $\epsilon"
            r" aL(1+L)\le5\epsilon$ below Shannon's $aL$, so $F_1\le F_\alpha\le F_1+5n\epsilon$ on the"
            r" simplex and every minimiser $a$ of $F_\alpha$ has $F_1(a)-F_1(p)\le5n\epsilon$. By"
            r" softmax.entropic-ot that is $\mathrm{KL}(a\|p)$ with $p=\mathrm{softmax}(s)$. It is at least"
            r" each of its terms $a\ln a-a\ln p+p-a\ge(\sqrt a-\sqrt p)^2$ (equal where $a=0$), so"
            r" $(\sqrt{a_j}-\sqrt{p_j})^2\le5n\epsilon$ for every $j$: $a\to p$.",
            (
                *tangent_of_exp(),
                tsallis.not_above(),
                tsallis.not_far_below(RATE),
                *tsallis.bounded(),
                tsallis.minimisers(),
                divergence.interior(),
                divergence.boundary(),
                divergence.one_term(),
                tsallis.roots(1),
            ),
        ),
    )


RATE = tsallis.epsilon * tsallis.weight * tsallis.L * (1 + tsallis.L)

CLAIM = Claim(
    id="softmax.entmax",
    title="Tsallis entropy between softmax and sparsemax: at α = 3/2 the weights are squares",
    statement=(
        r"Let $H_\alpha(a)=\frac1{\alpha(\alpha-1)}\sum_j(a_j-a_j^\alpha)$. On the simplex"
        r" $-\sum_ja_js_j-H_{3/2}(a)$ has the unique minimiser $a_j=\max(0,z_j-\theta)^2$, $z=s/2$; for"
        r" scores sorted downwards the support is $1,\dots,r$ with $r$ the last $k$ for which $\sum_{j\le"
        r" k}(z_j-z_k)^2<1$, and $\theta=m-\sqrt{(1-\sum_{j\le r}(z_j-m)^2)/r}$ with $m=\frac1r\sum_{j\le"
        r" r}z_j$. $\alpha=2$ gives sparsemax, $\alpha\to1^+$ softmax: every minimiser $a$ for $\alpha>1$ has"
        r" $(\sqrt{a_j}-\sqrt{p_j})^2\le5n(\alpha-1)$ with $p=\mathrm{softmax}(s)$."
    ),
    source="article A, section 1; Peters, Niculae and Martins, Sparse sequence-to-sequence models (2019)",
    status=Status.AS_PRINTED,
    scope="every n ≥ 1, all real scores (temperature 1); the limit for α > 1, with its rate",
    variables=(
        Variable("n", r"number of tokens, an integer $\ge1$"),
        Variable("s", r"scores, $\mathbb{R}^n$"),
        Variable("a", "the simplex"),
        Variable(r"\alpha", r"order of the entropy, $1<\alpha\le2$"),
    ),
    assumptions=(
        Assumption("a_j ≥ 0 and Σ a_j = 1"),
        Assumption("for threshold and support the tokens are numbered so that scores do not increase"),
    ),
    asked="C",
    parts=parts,
    mutants=(
        Mutant("wrong double root", "a cost of (2/3)(x − t)²(x + t)", lambda: (_inside(Integer(1)),)),
        Mutant("root of s", "a root of s − θ", lambda: (_stationary(s[k] - theta),)),
        Mutant(
            "no square",
            "a completed square without the width",
            lambda: (_square_completed(x, r * (x - mean) ** 2),),
        ),
        Mutant(
            "constant lost",
            "sparsemax's objective without its constant",
            lambda: (_square_entropy(SPARSEMAX),),
        ),
        Mutant(
            "too close",
            "entropies that differ by ε²aL(1 + L) at most",
            lambda: (tsallis.not_far_below(tsallis.epsilon * RATE),),
        ),
        Mutant("nearer roots", "terms of at least 2(√a − √p)²", lambda: (tsallis.roots(2),)),
    ),
    remark="The general weight is ((α − 1)(s_j − θ'))^{1/(α − 1)}: a power that grows without bound as α"
    " falls to 1, where it becomes the exponential.",
)

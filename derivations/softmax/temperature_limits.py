"""Cold softmax is uniform on the largest scores, hot softmax uniform on all, with explicit rates.

Both limits are squeezed between rational bounds by e^x >= 1 + x. Cold: r tokens share the largest score M,
the other q have scores M − Δ − d_j; the reciprocal weight of a largest one exceeds r by at most qτ/Δ. Hot:
at τ = D + t, with D the spread of the scores, every weight lies between t/(nτ) and τ/(nt).
"""

from sympy import Expr, IndexedBase, Integer, Rational, Sum, exp, symbols

from derivations.softmax._bounds import number, tangent_of_exp
from derivations.softmax._symbols import IN_RANGE, SIZES, j, k, n, over_tokens, p, s, softmax, tau
from verify.derive import Chain, Definition, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

r, q, top, lead, spread, t, over = symbols(r"r q M \Delta D t f")
lag, g, w, h = (IndexedBase(name) for name in ("d", "g", "w", "h"))
others = Sum(exp((top - lead - lag[j]) / tau), (j, 1, q))
normaliser = r * exp(top / tau) + others
behind = Sum(exp(-(lead + lag[j]) / tau), (j, 1, q))
at_lag = Definition("excess", g[j], exp(lag[j] / tau) - 1 - lag[j] / tau, free=(j,))
at_lead = Definition("excess at the lead", over, exp(lead / tau) - 1 - lead / tau)


def _cold() -> Setting:
    return Setting(
        (at_lag, at_lead),
        positive=(tau, lead, r),
        nonnegative=(lag, g, over),
        nonempty=(r,),
        order=((0, q), (1, k), (k, q)),
        instances=({r: 1, q: 2, k: 1}, {r: 2, q: 3, k: 2}),
    )


def _largest(count: Expr) -> Obligation:
    chain = Chain("the reciprocal of a largest weight, less r", _cold(), normaliser / exp(top / tau) - count)
    chain = chain.rearrange("divide by the largest exponential", behind)
    return chain.drop("exponentials are positive", Integer(0), behind).obligation()


def _exponential_rate(rate: Expr) -> Obligation:
    chain = Chain("q·e^{−Δ/τ} bounds that", _cold(), q * rate - behind)
    terms = Sum(exp(-(lead + lag[j]) / tau) * (g[j] + lag[j] / tau), (j, 1, q))
    chain = chain.unfold("factor out e^{d/τ} − 1", terms, "excess")
    return chain.drop("no term is negative", Integer(0), terms).obligation()


def _linear_rate() -> Obligation:
    chain = Chain("τ/Δ bounds e^{−Δ/τ}", _cold(), tau / lead - exp(-lead / tau))
    left = exp(-lead / tau) * tau / lead * (1 + over)
    chain = chain.unfold("factor out e^{Δ/τ} − Δ/τ", left, "excess at the lead")
    return chain.drop("nothing is negative", Integer(0), left).obligation()


def _other(excess: Expr) -> tuple[Obligation, Obligation, Obligation]:
    largest = exp(top / tau) / normaliser
    chain = Chain(
        "another weight over a largest one", _cold(), exp((top - lead - lag[k]) / tau) / normaliser / largest
    )
    ratio = chain.rearrange("the normaliser cancels", exp(-lead / tau) * exp(-lag[k] / tau)).obligation()
    share = Chain("a largest weight is at most 1/r", _cold(), 1 / r - largest)
    left = others / (r * normaliser)
    share = share.rearrange("what the others take", left)
    fades = Chain("e^{−d/τ} is at most 1", _cold(), 1 - exp(-lag[k] / tau))
    rest = exp(-lag[k] / tau) * excess
    fades = fades.unfold("factor out e^{d/τ} − 1", rest, "excess")
    return (
        ratio,
        share.drop("it is not negative", Integer(0), left).obligation(),
        fades.drop("no factor is negative", Integer(0), rest).obligation(),
    )


def _hot(sign: int, bound: Expr) -> Obligation:
    """sign·(1/p_k − n·bound) >= 0 at τ = D + t; w_j is how far the scores are from their spread."""
    heat = Definition("temperature", spread, tau - t)
    room = Definition("room", w[j], spread + sign * (s[j] - s[k]), free=(j,))
    difference = sign * (s[j] - s[k]) / tau
    excess = Definition("excess", h[j], exp(difference) - 1 - difference, free=(j,))
    setting = Setting(
        (softmax, excess, room, heat), (), (tau, t), (w, h), nonempty=(n,), order=IN_RANGE, instances=SIZES
    )
    side = "at least" if sign > 0 else "at most"
    chain = Chain(f"the reciprocal weight is {side} the bound", setting, sign * (1 / p[k] - n * bound))
    powers = over_tokens(exp((s[j] - s[k]) / tau))
    chain = chain.unfold("insert the weight", sign * (powers - n * bound), "softmax")
    factor = Integer(1) if sign > 0 else exp((s[j] - s[k]) / tau) * tau / t
    terms = over_tokens(factor * (h[j] + w[j] / tau))
    chain = chain.unfold("collect the excess and the room", terms, "excess", "room", "temperature")
    return chain.drop("no term is negative", Integer(0), terms).obligation()


def _at(scores: str, temperature: str, weight: Expr, **bounds: str) -> Obligation:
    label = f"scores 3, 3, 1 at temperature {temperature}: the weight of {scores}"
    return number(label, weight, {tau: temperature}, **bounds)


first = 1 / (2 + exp(-2 / tau))
third = exp(-2 / tau) * first


def parts() -> tuple[Part, ...]:
    """Cold: rate for the largest and for the others; hot: both bounds; numbers."""
    return (
        Part(
            r"Cold. With $r$ largest scores $M$ and $q$ others $M-\Delta-d_j$ ($d_j\ge0$):"
            r" $0\le1/p_{\max}-r\le q\,e^{-\Delta/\tau}\le q\tau/\Delta$, so $p_{\max}\to1/r$ as"
            r" $\tau\to0^+$.",
            (*tangent_of_exp(), _largest(r), _exponential_rate(exp(-lead / tau)), _linear_rate()),
        ),
        Part(
            r"Every other weight is $e^{-(\Delta+d_k)/\tau}\,p_{\max}$ with $p_{\max}\le1/r$ and"
            r" $e^{-d_k/\tau}\le1$, at most $\frac\tau{r\Delta}$: it tends to 0.",
            (*tangent_of_exp(), *_other(g[k] + lag[k] / tau), _linear_rate()),
        ),
        Part(
            r"Hot. If all scores lie within $D$ of one another and $\tau=D+t$ with $t>0$, then"
            r" $\frac t{n\tau}\le p_k\le\frac\tau{nt}$ for every $k$: $p_k\to1/n$ as $\tau\to\infty$.",
            (*tangent_of_exp(), _hot(1, t / tau), _hot(-1, tau / t)),
        ),
        Part(
            r"Scores $3,3,1$: at $\tau=1/10$ the first two weights are within $10^{-8}$ of $\frac12$ and the"
            r" third is below $10^{-8}$; at $\tau=1000$ all are within $10^{-3}$ of $\frac13$.",
            (
                _at("a 3", "1/10", first, above="49999999/100000000", below="1/2"),
                _at("the 1", "1/10", third, above="0", below="1/100000000"),
                _at("a 3", "1000", first - Rational(1, 3), above="-1/1000", below="1/1000"),
                _at("the 1", "1000", third - Rational(1, 3), above="-1/1000", below="1/1000"),
            ),
        ),
    )


CLAIM = Claim(
    id="softmax.temperature-limits",
    title="Cold softmax is uniform on the largest scores, hot softmax uniform on all, with explicit rates",
    statement=(
        r"Let $p=\mathrm{softmax}(s/\tau)$. As $\tau\to0^+$ it tends to the uniform weights on the $r$"
        r" largest scores, with $0\le1/p_{\max}-r\le(n-r)e^{-\Delta/\tau}\le(n-r)\tau/\Delta$, where $\Delta$"
        r" is the lead of the largest over the next score. As $\tau\to\infty$ it tends to the uniform weights"
        r" on all: $\frac{\tau-D}{n\tau}\le p_k\le\frac\tau{n(\tau-D)}$ for $\tau>D$, the spread of the"
        r" scores."
    ),
    source="article A, section 1",
    status=Status.AS_PRINTED,
    scope="every n ≥ 1, all real scores; cold with any number of ties and of others, rates at every τ",
    variables=(
        Variable("n", r"number of tokens, an integer $\ge1$; $q=n-r$"),
        Variable("s", r"scores, $\mathbb{R}^n$"),
        Variable(r"\tau", "temperature, a real number > 0"),
        Variable(r"\Delta", "lead of the largest scores over the next, a real number > 0"),
        Variable("D", "largest score minus smallest"),
    ),
    assumptions=(Assumption("where all scores are equal (q = 0) the cold weights are uniform at every τ"),),
    asked="CB",
    parts=parts,
    mutants=(
        Mutant("one winner", "ties that do not share", lambda: (_largest(Integer(1)),)),
        Mutant("no decay", "the excess of e^{d/τ} over its tangent left out", lambda: _other(lag[k] / tau)),
        Mutant("too fast", "a rate of e^{−2Δ/τ}", lambda: (_exponential_rate(exp(-2 * lead / tau)),)),
        Mutant(
            "bounds exchanged", "the upper bound of the weight as a lower one", lambda: (_hot(1, tau / t),)
        ),
        Mutant(
            "not yet",
            "weights within 10⁻³ of uniform at temperature 100",
            lambda: (_at("the 1", "100", third - Rational(1, 3), above="-1/1000"),),
        ),
    ),
    remark="Cold is exponentially fast in 1/τ, hot only linearly: the two limits are not symmetric.",
)

"""Weights dilute like 1/N at bounded scores; keeping a share needs a gap of order ln N, not of order N.

The statement that fails: to keep its weight against N − 1 rivals a token's score must lead by a gap
proportional to N.

Why one would believe it: the rivals' total mass is proportional to N.

The catch: the mass a score brings is exponential in it, so the gap need only follow the logarithm of the
rivals' mass: it is ln((N − 1)c/(1 − c)) exactly, and 2·ln N suffices from a small N on.
"""

from sympy import Expr, IndexedBase, Integer, Sum, exp, log, symbols

from derivations.softmax._bounds import number, tangent_of_exp
from derivations.softmax._divergence import tangent
from derivations.softmax._symbols import IN_RANGE, SIZES, j, k, n, over_tokens, p, s, softmax
from derivations.softmax._symbols import tau as temperature
from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

spread, delta, r, score, u, tail, t, x = symbols(r"D \Delta r s_1 u g t x")
omega, kappa, big, length, surplus = symbols(r"\omega \kappa N R m")
w, g = IndexedBase("w"), IndexedBase("g")
unit_temperature = Definition("softmax", p[k], softmax.rhs.subs(temperature, 1), free=(k,))
over_tangent = Definition("excess", tail, exp(u) - 1 - u)


def _bounded_scores(sign: int, bound: Expr) -> Obligation:
    """sign·(bound − 1/p_k) >= 0, from e^w − 1 = w + g with w, g >= 0."""
    room = Definition("room", w[j], spread - sign * (s[j] - s[k]), free=(j,))
    excess = Definition("excess", g[j], exp(w[j]) - 1 - w[j], free=(j,))
    setting = Setting(
        (unit_temperature, excess, room), nonnegative=(w, g), nonempty=(n,), order=IN_RANGE, instances=SIZES
    )
    side = "below" if sign > 0 else "above"
    chain = Chain(f"the weight from {side}", setting, sign * (bound - 1 / p[k]))
    inverse = over_tokens(exp(s[j] - s[k]))
    chain = chain.unfold("the reciprocal weight", sign * (bound - inverse), "softmax")
    factor = exp(s[j] - s[k]) if sign > 0 else exp(-spread)
    terms = over_tokens(factor * (g[j] + w[j]))
    chain = chain.unfold("factor out e^w − 1 = w + (e^w − 1 − w)", terms, "excess", "room")
    return chain.drop("every term is at least 0", Integer(0), terms).obligation()


def _leading_weight() -> Obligation:
    setting = Setting(nonempty=(r,), instances=({r: 1}, {r: 3}))
    rivals = Sum(exp(score - delta), (j, 1, r))
    chain = Chain("the weight that leads r equal rivals", setting, exp(score) / (exp(score) + rivals))
    return chain.rearrange("divide by its own exponential", 1 / (1 + r * exp(-delta))).obligation()


def _exact_gap(value: Expr) -> Obligation:
    at = Definition("gap", delta, log(r * omega))
    chain = Chain("the weight at the gap", Setting((at,), positive=(r, omega)), 1 / (1 + r * exp(-delta)))
    return chain.unfold("insert the gap", value, "gap").obligation()


def _beyond(sign: int, after: Expr) -> Obligation:
    """1/c − 1/p at the gap moved by +u, or 1/p − 1/c at the gap moved by −u."""
    at = Definition("gap", delta, log(r * omega) + sign * u)
    setting = Setting((at, over_tangent), positive=(r, omega), nonnegative=(u, tail))
    start = sign * (1 / (omega / (1 + omega)) - (1 + r * exp(-delta)))
    chain = Chain(f"a gap {'larger' if sign > 0 else 'smaller'} by u", setting, start)
    factor = exp(-u) if sign > 0 else Integer(1)
    chain = chain.unfold("insert the gap", factor * (exp(u) - 1) / omega, "gap")
    chain = chain.unfold("e^u − 1 = u + (e^u − 1 − u)", factor * (u + tail) / omega, "excess")
    dropped = (factor * u / omega, factor * tail / omega) if after == 0 else (tail / omega,)
    return chain.drop("nothing dropped is negative", after, *dropped).obligation()


def _between() -> tuple[Obligation, Obligation]:
    above = Definition("rivals", r, big - 1)
    upper = Chain("N·ω exceeds e^Δ", Setting((above,), nonnegative=(omega,)), big * omega - r * omega)
    upper = upper.unfold("one rival fewer than tokens", omega, "rivals")
    below = Definition("rivals", r, 1 + t), Definition("tokens", big, r + 1)
    lower = Chain(
        "e^Δ is at least N·ω/2",
        Setting((*reversed(below),), nonnegative=(omega, t)),
        r * omega - big * omega / 2,
    )
    lower = lower.unfold("one rival at least", t * omega / 2, "tokens", "rivals")
    return (
        upper.drop("the odds are positive", Integer(0), omega).obligation(),
        lower.drop("no term is negative", Integer(0), t * omega / 2).obligation(),
    )


twice_the_logarithm = Definition("gap", delta, 2 * log(big))


def _shortfall(setting: Setting) -> Chain:
    """1/c − 1/p at the gap 2·ln N has the sign of N² − rω."""
    start = 1 / (omega / (1 + omega)) - (1 + r * exp(-delta))
    chain = Chain("1/c minus the reciprocal weight at the gap 2·ln N", setting, start)
    return chain.unfold("insert the gap", (big**2 - r * omega) / (omega * big**2), "gap")


def _sign() -> Obligation:
    return _shortfall(Setting((twice_the_logarithm,), positive=(big, omega))).obligation()


def _twice_the_logarithm() -> Obligation:
    """1/c − 1/p >= 0 at the gap 2·ln N, when N² = rω + m."""
    enough = Hypothesis("surplus", big**2, r * omega + surplus)
    setting = Setting((twice_the_logarithm,), (enough,), positive=(big, omega), nonnegative=(surplus,))
    chain = _shortfall(setting)
    left = surplus / (omega * big**2)
    chain = chain.use("the surplus", left, surplus=1 / (omega * big**2))
    return chain.drop("it is not negative", Integer(0), left).obligation()


def _surplus(title: str, tokens: Expr, odds: Expr, after: Expr, *terms: Expr) -> Obligation:
    """N² − (N − 1)ω where N and ω are given by non-negative t and x."""
    given = Definition("tokens", big, tokens), Definition("odds", omega, odds)
    setting = Setting(given, nonnegative=(t, x))
    chain = Chain(title, setting, big**2 - (big - 1) * omega)
    chain = chain.unfold("insert both", after + sum(terms), "tokens", "odds")
    return (chain.drop("no term is negative", after, *terms) if terms else chain).obligation()


def _outgrown(after: Expr) -> Obligation:
    """κN − 2·ln N at N = R² with R = 4/κ + t, from R − 1 − ln R >= 0."""
    above = Definition("tangent", tail, length - 1 - log(length))
    start = Definition("from here on", t, length - 4 / kappa)
    setting = Setting((start, above), positive=(length, kappa), nonnegative=(t, tail))
    chain = Chain("a proportional gap minus 2·ln N", setting, kappa * length**2 - 2 * log(length**2))
    terms = 4 * tail, kappa * t * length
    chain = chain.unfold("4R against 4·ln R", after + sum(terms), "from here on", "tangent")
    return chain.drop("no term is negative", after, *terms).obligation()


def _disproportion(below: str) -> Obligation:
    """Δ(1024) − (1024/2)·Δ(2) at c = 9/10, ω = 9."""
    label = "c = 9/10: the gap at N = 1024 is far below 512 times the gap at N = 2"
    term = log((big - 1) * omega) - big / 2 * log(omega)
    return number(label, term, {big: "1024", omega: "9"}, below=below)


def _threshold(tokens: str, **bound: str) -> Obligation:
    label = f"c = 9/10, N = {tokens}: the weight at the gap 2·ln N"
    return number(label, 1 / (1 + (big - 1) * exp(-2 * log(big))), {big: tokens}, **bound)


def _suffices() -> tuple[Obligation, ...]:
    """At the gap 2·ln N, for every N ≥ 2 if ω ≤ 4, and for every N ≥ ω − 1 if ω ≥ 2."""
    return (
        _twice_the_logarithm(),
        _surplus("ω = 4 − x, N = 2 + t", 2 + t, 4 - x, Integer(0), t**2, x + t * x),
        _surplus("ω = 2 + x, N = ω − 1 + t", 1 + x + t, 2 + x, Integer(1), t**2, t * x),
    )


def parts() -> tuple[Part, ...]:
    """Bounded scores, the exact gap, its growth, the threshold N₀, and the printed statement refuted."""
    return (
        Part(
            r"$Ne^D-1/p_k\ge0$ and $1/p_k-Ne^{-D}\ge0$ when all scores lie within $D=M-m$ of one another:"
            r" $e^{-D}/N\le p_k\le e^D/N$.",
            (
                *tangent_of_exp(),
                _bounded_scores(1, n * exp(spread)),
                _bounded_scores(-1, n * exp(-spread)),
            ),
        ),
        Part(
            r"A token that leads $r=N-1$ equal rivals by $\Delta$ has weight $1/(1+re^{-\Delta})$. With the"
            r" odds $\omega=c/(1-c)$ it is $c=\omega/(1+\omega)$ at $\Delta=\ln(r\omega)$; at a gap larger"
            r" by $u\ge0$ it is at least $c$; at a gap smaller by $u>0$ it is less, since $1/p-1/c\ge"
            r" u/\omega$.",
            (
                _leading_weight(),
                _exact_gap(omega / (1 + omega)),
                *tangent_of_exp(),
                _beyond(1, Integer(0)),
                _beyond(-1, u / omega),
            ),
        ),
        Part(
            r"It grows like $\ln N$: $N\omega/2\le e^\Delta=(N-1)\omega\le N\omega$ for $N\ge2$.",
            _between(),
        ),
        Part(
            r"A gap of $2\ln N$ suffices exactly when $N^2\ge(N-1)\omega$, since"
            r" $1/c-1/p=(N^2-(N-1)\omega)/(\omega N^2)$ there. For $\omega\le4$ ($c\le4/5$) that is every"
            r" $N\ge2$, since $N^2-(N-1)\omega=(N-2)^2+(N-1)(4-\omega)$; for $\omega\ge2$ it is every"
            r" $N\ge\omega-1$; for $\omega>4$ the quadratic is $4-\omega<0$ at $N=\omega-2$. So the least"
            r" $N_0(c)$ for $\omega>4$, the larger root $\frac12(\omega+\sqrt{\omega^2-4\omega})$ of the"
            r" quadratic rounded up, lies above $\omega-2$ and is at most $\lceil\omega-1\rceil$; it is"
            r" $\omega-1$ where $\omega$ is an integer: 8 at $c=9/10$.",
            (
                _sign(),
                *_suffices(),
                _surplus("ω = 4 + x, N = ω − 2", 2 + x, 4 + x, -x),
                _threshold("8", above="9/10"),
                _threshold("7", below="9/10"),
            ),
        ),
        Part(
            r"The gap must grow in proportion to $N$ (printed): instead $2\ln N$ suffices, as above, and"
            r" every $\kappa N$ exceeds it by at least 4 once $N\ge16/\kappa^2$.",
            (
                *_suffices(),
                tangent(),
                _outgrown(Integer(4)),
                _disproportion("-1000"),
            ),
            refutes=True,
        ),
    )


CLAIM = Claim(
    id="softmax.dilution",
    title="Weights dilute like 1/N at bounded scores; keeping a share needs a gap of order ln N, not of"
    " order N",
    statement=(
        r"Scores within $D$ of one another give $e^{-D}/N\le p_j\le e^D/N$. To keep a weight of at least $c$"
        r" against $N-1$ equal rivals a token must lead by at least $\ln((N-1)c/(1-c))$, which is at most"
        r" $\ln N+\ln\frac c{1-c}$ and at least that minus $\ln2$. A gap of $2\ln N$ suffices for every"
        r" $N\ge2$ if $c\le4/5$, and for every $N\ge\frac c{1-c}-1$ otherwise; every line $\kappa N$ exceeds"
        r" it by at least 4 once $N\ge16/\kappa^2$."
    ),
    source="article A, section 1",
    status=Status.CORRECTED,
    scope="every N ≥ 2, every 0 < c < 1, all real scores, temperature 1 (at τ all gaps are multiplied by τ)",
    variables=(
        Variable("N", r"number of tokens, an integer $\ge2$; $r=N-1$ rivals"),
        Variable("c", r"(0, 1)"),
        Variable(r"\omega", r"odds $c/(1-c)>0$"),
        Variable("D", r"largest score minus smallest, $\ge0$"),
        Variable(r"\kappa", r"slope of a proportional gap, a real number > 0"),
    ),
    assumptions=(
        Assumption("the rivals have equal scores (any others that are lower only help the leader)"),
    ),
    asked="KCB",
    parts=parts,
    mutants=(
        Mutant("no N", "a bound without the number of tokens", lambda: (_bounded_scores(1, exp(spread)),)),
        Mutant("odds for share", "the weight ω at the gap", lambda: (_exact_gap(omega),)),
        Mutant("late", "a leader that needs 10/11 at N = 8", lambda: (_threshold("8", above="10/11"),)),
        Mutant("too much", "a proportional gap that is always ahead by 5", lambda: (_outgrown(Integer(5)),)),
        Mutant(
            "proportional after all",
            "a gap at 1024 above 512 times that at 2",
            lambda: (_disproportion("-2000"),),
        ),
    ),
    remark="The rivals' total mass is proportional to N, but mass is exponential in the score: the gap"
    " follows its logarithm.",
)

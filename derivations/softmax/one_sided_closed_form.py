"""With both marginals fixed the minimiser is a two-sided scaling, and row softmax is not one.

Entropic transport with scores s_il and K = e^{s/τ}: a stationary point is diag(u)·K·diag(w), and a matrix of
that form with the right row and column sums is the only minimiser. Fixing the rows alone gives w = 1 and the
closed form of softmax; the second marginal is then whatever comes out.
"""

from sympy import Expr, IndexedBase, Integer, Rational, Sum, exp, log, symbols

from derivations.softmax import _divergence as divergence
from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.derive.tree import tree
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

i, k, l, n, m = symbols("i k l n m")  # noqa: E741
tau, lam, mu = symbols(r"\tau \lambda \mu")
x, score, root = symbols("x s r")
s, q, p, eta, gap, u, w, a, b = (
    IndexedBase(name) for name in ("s", "Q", "P", r"\eta", "g", "u", "w", "a", "b")
)
SIZES = ({n: 2, m: 2}, {n: 2, m: 3})


def _all(summand: Expr) -> Sum:
    return Sum(summand, (l, 1, m), (i, 1, n))


scaled = Definition("scaling", p[i, l], u[i] * exp(s[i, l] / tau) * w[l], free=(i, l))
dual = tau * (Sum(a[i] * log(u[i]), (i, 1, n)) + Sum(b[l] * log(w[l]), (l, 1, m)))


def _slope(after: Expr) -> Obligation:
    setting = Setting(positive=(x, tau))
    lagrangian = -x * score + tau * x * log(x) + lam * x + mu * x
    chain = Chain("one entry's part of the Lagrangian", setting, lagrangian)
    return chain.differentiate("product rule", after, x).obligation()


def _stationary(after: Expr) -> Obligation:
    zero = Hypothesis("stationarity", -score + tau * (log(x) + 1) + lam + mu, 0)
    setting = Setting((), (zero,), positive=(x, tau))
    chain = Chain("the entry at which the derivative vanishes", setting, x)
    return chain.exponentiate("solve for ln x", after, uses={"stationarity": 1 / tau}).obligation()


def _rows_only(after: Expr) -> Obligation:
    """w = 1: the row sum 1 determines u, and the row is a softmax."""
    power = exp(s[i, l] / tau)
    unit = Hypothesis("row sum", Sum(u[i] * power, (l, 1, m)), 1)
    setting = Setting(
        (), (unit,), (tau,), nonempty=(m,), order=((1, k), (k, m)), instances=({m: 2, i: 1, k: 1},)
    )
    own, total = exp(s[i, k] / tau), Sum(power, (l, 1, m))
    chain = Chain("a row scaled to sum 1", setting, u[i] * own)
    return chain.use("the row sum determines the scaling", after, **{"row sum": own / total}).obligation()


def _marginals(family: IndexedBase) -> tuple[Definition, Definition]:
    rows = Definition("row sums", a[i], Sum(family[i, l], (l, 1, m)), free=(i,))
    columns = Definition("column sums", b[l], Sum(family[i, l], (i, 1, n)), free=(l,))
    return rows, columns


def _setting(*definitions: Definition) -> Setting:
    return Setting(definitions, positive=(u, w, tau), nonempty=(n, m), instances=SIZES)


def _cost(factor: Expr) -> Obligation:
    """F(Q) − D = τΣ(η − Q ln P) for every Q with the marginals a and b; D does not depend on Q."""
    setting = _setting(*_marginals(q), scaled)
    start = -_all(q[i, l] * s[i, l]) + tau * _all(eta[i, l]) - dual
    chain = Chain("the cost of any matrix with these marginals, less D", setting, start)
    after = factor * _all(eta[i, l] - q[i, l] * log(p[i, l]))
    return chain.unfold("read off ln P", after, "row sums", "column sums", "scaling").obligation()


def _own_cost() -> Obligation:
    """F(P) = D."""
    setting = _setting(*_marginals(p), scaled)
    start = -_all(p[i, l] * s[i, l]) + tau * _all(p[i, l] * log(p[i, l])) - dual
    chain = Chain("the cost of the scaling itself, less D", setting, start)
    return chain.unfold(
        "its logarithms cancel", Integer(0), "row sums", "column sums", "scaling"
    ).obligation()


def _excess() -> Obligation:
    """Σ(η − Q ln P) >= 0 for equal totals, as a sum of g_il >= 0."""
    term = Definition("gap", gap[i, l], eta[i, l] - q[i, l] * log(p[i, l]) + p[i, l] - q[i, l], free=(i, l))
    totals = Hypothesis("equal totals", _all(q[i, l]), _all(p[i, l]))
    setting = Setting((term,), (totals,), (p,), (gap,), nonempty=(n, m), instances=SIZES)
    relative = _all(eta[i, l] - q[i, l] * log(p[i, l]))
    chain = Chain("the excess is not negative", setting, relative)
    chain = chain.use("equal totals", relative + _all(p[i, l]) - _all(q[i, l]), **{"equal totals": 1})
    chain = chain.unfold("collect the terms", _all(gap[i, l]), "gap")
    return chain.drop("every term is at least 0", Integer(0), _all(gap[i, l])).obligation()


def _certificate(label: str, target: Expr, terms: tuple[tuple[Expr | int, Expr], ...]) -> Obligation:
    data = {
        "equations": [tree(equation) for _, equation in terms],
        "multipliers": [tree(multiplier) for multiplier, _ in terms],
        "target": tree(target),
    }
    return Obligation("polynomial-certificate", label, "E", data)


def _rows_alone(first_column: Expr | int) -> Obligation:
    """K = (3 1; 1 1): rows scaled to sum 1 contradict a first column that sums to 1."""
    one, two = symbols("u_1 u_2")
    terms: tuple[tuple[Expr | int, Expr], ...] = (
        (4, 3 * one + two - first_column),
        (-3, 4 * one - 1),
        (-2, 2 * two - 1),
    )
    return _certificate("no row scaling alone has both marginals", Integer(1), terms)


def _cross_ratio(ratio: int) -> Obligation:
    """x² = 3(1 − x)² for the entry x of the two-sided scaling (x, 1 − x; 1 − x, x) of K = (3 1; 1 1)."""
    u1, u2, w1, w2 = symbols("u_1 u_2 w_1 w_2")
    terms: tuple[tuple[Expr | int, Expr], ...] = (
        (x, x - 3 * u1 * w1),
        (3 * u1 * w1, x - u2 * w2),
        (-3 * (1 - x), 1 - x - u1 * w2),
        (-3 * u1 * w2, 1 - x - u2 * w1),
    )
    return _certificate("the entry solves x² = 3(1 − x)²", x**2 - ratio * (1 - x) ** 2, terms)


def _value() -> Obligation:
    three = Hypothesis("root", root**2, 3)
    chain = Chain(
        "x = (3 − √3)/2", Setting((), (three,)), ((3 - root) / 2) ** 2 - 3 * (1 - (3 - root) / 2) ** 2
    )
    return chain.use("r is a square root of 3", Integer(0), root=-Rational(1, 2)).obligation()


ENTRY = (3 - root) / 2
"""x in the example, with r² = 3."""


def _factors(second: Expr) -> tuple[Obligation, ...]:
    """Entry 21 of u = (1, u₂), w = (x/3, 1 − x) is 1 − x, and x and 1 − x are positive."""
    three = (Hypothesis("root", root**2, 3),)
    entry = Chain(
        "entry 21 less 1 − x", Setting((), three, nonzero=(root - 1,)), second * ENTRY / 3 + ENTRY - 1
    )
    entry = entry.use("r is a square root of 3", Integer(0), root=-1 / (3 * (root - 1)))
    setting = Setting((), three, positive=(root,))
    own = Chain("x is positive", setting, ENTRY)
    own = own.use("(3 − r)(3 + r) = 6", 3 / (3 + root), root=-1 / (2 * (3 + root)))
    other = Chain("1 − x is positive", setting, 1 - ENTRY)
    other = other.use("(r − 1)(r + 1) = 2", 1 / (1 + root), root=1 / (2 * (1 + root)))
    return entry.obligation(), own.obligation(), other.obligation()


def parts() -> tuple[Part, ...]:
    """Stationary points, optimality of a scaling, uniqueness, and the 2×2 case."""
    scaling = exp(-lam / tau - Rational(1, 2)) * exp(score / tau) * exp(-mu / tau - Rational(1, 2))
    return (
        Part(
            r"With multipliers $\lambda_i$, $\mu_l$ for rows and columns the Lagrangian's derivative in one"
            r" positive entry is $-s+\tau(\ln x+1)+\lambda+\mu$; it vanishes only for"
            r" $x=e^{-\lambda/\tau-1/2}\,e^{s/\tau}\,e^{-\mu/\tau-1/2}$, that is"
            r" $P=\mathrm{diag}(u)K\mathrm{diag}(w)$.",
            (_slope(-score + tau * (log(x) + 1) + lam + mu), _stationary(scaling)),
        ),
        Part(
            r"With the rows alone fixed to sum 1 ($w=1$) the row sum determines $u$, and the row is"
            r" $\mathrm{softmax}(s_i/\tau)$.",
            (_rows_only(exp(s[i, k] / tau) / Sum(exp(s[i, l] / tau), (l, 1, m))),),
        ),
        Part(
            r"Let $P=\mathrm{diag}(u)K\mathrm{diag}(w)$ have row sums $a$ and column sums $b$. For every"
            r" $Q\ge0$ with the same sums $F(Q)-F(P)=\tau\sum_{i,l}(\eta_{il}-Q_{il}\ln P_{il})$, where"
            r" $\eta=Q\ln Q$ or 0; $F(P)=\tau(\sum_ia_i\ln u_i+\sum_lb_l\ln w_l)$.",
            (_cost(tau), _own_cost()),
        ),
        Part(
            r"That excess is $\tau\sum_{i,l}g_{il}$ with $g=\eta-Q\ln P+P-Q\ge0$, and $g=0$ only where $Q=P$"
            r" (as in softmax.entropic-ot): $P$ is the only minimiser.",
            (divergence.tangent(1), divergence.interior(), divergence.boundary(), _excess()),
        ),
        Part(
            r"$K=\begin{pmatrix}3&1\\1&1\end{pmatrix}$, all four sums 1: row softmax is"
            r" $\begin{pmatrix}3/4&1/4\\1/2&1/2\end{pmatrix}$ with column sums $5/4$ and $3/4$, and no"
            r" scaling of the rows alone has both marginals.",
            (_rows_alone(1),),
        ),
        Part(
            r"There the minimiser is $\begin{pmatrix}x&1-x\\1-x&x\end{pmatrix}$ with $x^2=3(1-x)^2$,"
            r" so $x=(3-\sqrt3)/2$, the root in $(0,1)$. It has the form: $u=(1,\tfrac x{1-x})$ and"
            r" $w=(\tfrac x3,1-x)$ are positive, and entry 21 is $\tfrac{x^2}{3(1-x)}=1-x$.",
            (_cross_ratio(3), _value(), *_factors(ENTRY / (1 - ENTRY))),
        ),
    )


CLAIM = Claim(
    id="softmax.one-sided-closed-form",
    title="With both marginals fixed the minimiser is a two-sided scaling, and row softmax is not one",
    statement=(
        r"Minimise $F(P)=-\sum_{i,l}P_{il}s_{il}+\tau\sum_{i,l}P_{il}\ln P_{il}$ over $P\ge0$ with given row"
        r" and column sums. A stationary point is $\mathrm{diag}(u)K\mathrm{diag}(w)$ with $K=e^{s/\tau}$,"
        r" and a matrix of this form with the given sums is the only minimiser. With the rows alone fixed"
        r" $w=1$, which is softmax; with both, row softmax violates the column sums already for"
        r" $K=\begin{pmatrix}3&1\\1&1\end{pmatrix}$, where the minimiser's first entry is"
        r" $(3-\sqrt3)/2$."
    ),
    source="article A, section 1; Cuturi, Sinkhorn distances (2013), lemma 2",
    status=Status.AS_PRINTED,
    scope="every number of rows and columns, every τ > 0, all real scores; the example is 2×2",
    variables=(
        Variable("s", r"scores, $\mathbb{R}^{n\times m}$"),
        Variable(r"\tau", "temperature, a real number > 0"),
        Variable("a, b", "row and column sums, > 0, of equal total"),
        Variable("u, w", r"scalings, positive, $\mathbb{R}^n$ and $\mathbb{R}^m$"),
    ),
    assumptions=(
        Assumption("0·ln 0 = 0"),
        Assumption(
            "that u and w exist for all positive marginals of equal total is Sinkhorn's theorem; it is not"
            " used: what is shown concerns a matrix that has the form"
        ),
    ),
    asked="CE",
    parts=parts,
    mutants=(
        Mutant(
            "column forgotten",
            "an entry without its column's factor",
            lambda: (_stationary(exp(-lam / tau - 1) * exp(score / tau)),),
        ),
        Mutant("no temperature", "the excess without τ", lambda: (_cost(Integer(1)),)),
        Mutant(
            "what comes out",
            "a first column that sums to 5/4, which row softmax has",
            lambda: (_rows_alone(Rational(5, 4)),),
        ),
        Mutant("no row factor", "a scaling of the columns alone", lambda: _factors(Integer(1))),
        Mutant("wrong ratio", "an entry with x² = (1 − x)²", lambda: (_cross_ratio(1),)),
    ),
    remark="One marginal decouples the rows, and each is a softmax; two marginals couple all entries.",
)

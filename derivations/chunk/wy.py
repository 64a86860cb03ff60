"""A product of erase factors is the identity minus a compact product: WY form with UT rows.

Applied to an arbitrary vector x, so for every K and any keys. y_t is x after the first t factors and u_t what
factor t takes off along its key; the vectors add up to x − Σ_j k_j u_j by induction, and inserting that into
u_t gives the rows of a unit lower triangular system.
"""

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from verify.derive import Chain, Definition, Induction, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

a, b, e, j, t, K = symbols("a b e j t K")
k, x, y, u, w, beta, delta = (IndexedBase(name) for name in ("k", "x", "y", "u", "w", r"\beta", r"\Delta"))
SIZES = ({t: 1, a: 1, K: 2}, {t: 3, a: 2, K: 2})


def _after(last: Expr, channel: Expr) -> Expr:
    return x[channel] - Sum(k[j, channel] * u[j], (j, 1, last))


def _dot(left: Expr, right: Expr) -> Sum:
    return Sum(left * right, (e, 1, K))


taken = Definition("what factor t takes off", u[t], beta[t] * _dot(k[t, e], y[t - 1, e]))


def _compact(sign: int) -> Obligation:
    rhs = x[a] + sign * Sum(k[j, a] * u[j], (j, 1, t))
    goal = Induction("a product of erase factors on a vector", t, Integer(0), y[t, a], rhs, free=(a,))
    start = Definition("no factor", y[0, a], x[a], (a,))
    base = Chain("no factor", Setting((start,), instances=({a: 1},)), y[0, a])
    base = base.unfold("an empty sum", goal.rhs.subs(t, 0), "no factor")
    step_taken = Definition("factor", y[t, a], y[t - 1, a] - k[t, a] * u[t], (a,))
    setting = Setting((step_taken, goal.hypothesis), order=((1, t),), instances=SIZES)
    step = Chain("one factor more", setting, y[t, a])
    step = step.unfold("the newest factor", y[t - 1, a] - k[t, a] * u[t], "factor")
    older = goal.rhs.subs(t, t - 1) - k[t, a] * u[t]
    step = step.unfold("the factors before", older, "induction hypothesis")
    return goal.obligation(base, step.split("it joins the sum", rhs, t, t - 1))


def _factor() -> Obligation:
    setting = Setting((taken,), instances=SIZES)
    erased = y[t - 1, a] - beta[t] * k[t, a] * _dot(k[t, e], y[t - 1, e])
    chain = Chain("one erase factor", setting, erased)
    return chain.unfold("what it takes off", y[t - 1, a] - k[t, a] * u[t], taken.name).obligation()


def _row(last: Expr) -> Obligation:
    before = Definition("the factors before", y[t - 1, e], _after(t - 1, e), (e,))
    setting = Setting((taken, before), order=((1, t),), instances=SIZES)
    chain = Chain("row t of the triangular system", setting, u[t])
    chain = chain.unfold("what is taken off", taken.rhs, taken.name)
    earlier = Sum(_dot(k[t, e], k[j, e]) * u[j], (j, 1, last))
    after = beta[t] * (_dot(k[t, e], x[e]) - earlier)
    return chain.unfold("insert the vector so far", after, "the factors before").obligation()


def _solution() -> Obligation:
    """The rows of W = (I + L)⁻¹Diag(β)K, applied to x, satisfy the same system."""
    earlier = Sum(_dot(k[t, e], k[j, e]) * w[j, b], (j, 1, t - 1))
    row = Definition("row of W", w[t, b], beta[t] * (k[t, b] - earlier), (b,))
    setting = Setting((row,), order=((1, t),), instances=({t: 1, K: 2}, {t: 3, K: 2}))
    chain = Chain("row t of W on x", setting, Sum(w[t, b] * x[b], (b, 1, K)))
    on_x = Sum(_dot(k[t, e], k[j, e]) * Sum(w[j, b] * x[b], (b, 1, K)), (j, 1, t - 1))
    after = beta[t] * (Sum(k[t, b] * x[b], (b, 1, K)) - on_x)
    return chain.unfold("row of W", after, "row of W").obligation()


def _unique() -> Obligation:
    row = Definition("row", delta[t], -beta[t] * Sum(_dot(k[t, e], k[j, e]) * delta[j], (j, 1, t - 1)))
    earlier = Definition("earlier rows agree", delta[j], Integer(0), free=(j,), guards=((j, t - 1),))
    setting = Setting((row, earlier), order=((1, t),), instances=({t: 1, K: 2}, {t: 3, K: 2}))
    chain = Chain("two solutions that agree on earlier rows agree on this one", setting, delta[t])
    chain = chain.unfold("subtract the two rows", row.rhs, "row")
    return chain.unfold("earlier rows agree", Integer(0), "earlier rows agree").obligation()


def parts() -> tuple[Part, ...]:
    """The compact product, its rows, their solution."""
    return (
        Part(
            r"With $y_0=x$, $u_t=\beta_tk_t^\top y_{t-1}$ and $y_t=(I-\beta_tk_tk_t^\top)y_{t-1}$:"
            r" $y_t=x-\sum_{j\le t}k_ju_j$ for every $t\ge0$ (induction on $t$).",
            (_factor(), _compact(-1)),
        ),
        Part(
            r"The $u_t$ satisfy $u_t=\beta_t\big(k_t^\top x-\sum_{j<t}(k_t^\top k_j)u_j\big)$, that is"
            r" $(I+L)u=\mathrm{Diag}(\beta)Kx$ with $L=\mathrm{tril}(\mathrm{Diag}(\beta)KK^\top,-1)$ and"
            r" the keys"
            r" as rows of $K$.",
            (_row(t - 1),),
        ),
        Part(
            r"So does $Wx$ with $W=(I+L)^{-1}\mathrm{Diag}(\beta)K$, row by row, and the system has one"
            r" solution."
            r" Hence $\prod_{i\le t}(I-\beta_ik_ik_i^\top)=I-K^\top W$ (later factors to the left).",
            (_solution(), _unique()),
        ),
    )


CLAIM = Claim(
    id="chunk.wy",
    title="A product of erase factors is the identity minus a compact product: WY form with UT rows",
    statement=(
        r"For any keys $k_1,\dots,k_t\in\mathbb{R}^d$, the rows of $K$, and any $\beta_i$:"
        r" $(I-\beta_tk_tk_t^\top)\cdots(I-\beta_1k_1k_1^\top)=I-K^\top W$ with"
        r" $W=(I+\mathrm{tril}(\mathrm{Diag}"
        r"(\beta)KK^\top,-1))^{-1}\mathrm{Diag}(\beta)K$."
    ),
    source="article A, section 4",
    status=Status.AS_PRINTED,
    scope="every number of factors, every width, any real keys and strengths",
    variables=(
        Variable("t", r"number of factors, an integer $\ge0$"),
        Variable("k_i", r"\mathbb{R}^d"),
        Variable(r"\beta_i", r"\mathbb{R}"),
        Variable("x", r"any vector, $\mathbb{R}^d$"),
    ),
    assumptions=(Assumption("exact arithmetic; no condition on the lengths of the keys"),),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant("sign", "the compact product added to the identity", lambda: (_compact(1),)),
        Mutant("not strict", "the triangular part with its diagonal", lambda: (_row(t),)),
        Mutant("two short", "the sum over earlier keys ending at t − 2", lambda: (_row(t - 2),)),
    ),
    remark=(
        "With decays between the factors the same holds with decayed keys (chunk.equals-recurrent). The name"
        " WY"
        " is that of the compact product of Householder-like factors, UT that of the unit triangular form."
    ),
)

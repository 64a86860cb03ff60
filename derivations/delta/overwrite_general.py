"""What the delta rule keeps of a value after any number of later writes.

Every later write carries what was written on: w_j = k_j, w_t = (I − β_t k_t k_tᵀ)w_{t−1}, and the state is
the sum of β_j w_j v_jᵀ. Reading a query q, the share of v_1 is β_1 q·w: a product of matrices in general. In
closed form: later writes to one key multiply up, later writes to mutually orthogonal keys add up.
"""

from sympy import Expr, IndexedBase, Integer, Sum, Symbol, symbols

from verify.derive import Chain, Definition, Hypothesis, Induction, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

a, c, e, j, t, K = symbols("a c e j t K")
rho = Symbol(r"\rho")
k, v, S, w, p, q, beta, left, gram, overlap = (
    IndexedBase(name) for name in ("k", "v", "S", "w", "p", "q", r"\beta", "g", "G", r"\rho")
)
carried, later = IndexedBase("w"), IndexedBase("u")
SIZES = ({t: 2, K: 2, a: 1, c: 1}, {t: 3, K: 2, a: 2, c: 1})


def _dot(left_side: Expr, right_side: Expr) -> Sum:
    return Sum(left_side * right_side, (e, 1, K))


def _state(newest: int) -> Obligation:
    """S_t = Σ_{j≤t} β_j w_{j,t} v_jᵀ, entry (a, c)."""
    rhs = Sum(beta[j] * w[j, t, a] * v[j, c], (j, 1, t))
    goal = Induction("the state in what its writes became", t, Integer(0), S[t, a, c], rhs, free=(a,))
    zero = Definition("zero state", S[0, a, c], Integer(0), (a,))
    base = Chain("no write", Setting((zero,), instances=({a: 1, c: 1},)), S[0, a, c])
    base = base.unfold("an empty sum", goal.rhs.subs(t, 0), "zero state")
    held = _dot(k[t, e], S[t - 1, e, c])
    write = Definition(
        "write", S[t, a, c], S[t - 1, a, c] - beta[t] * k[t, a] * (held - newest * v[t, c]), (a,)
    )
    fresh = Definition("fresh", w[t, t, a], k[t, a], (a,))
    erased = w[j, t - 1, a] - beta[t] * k[t, a] * _dot(k[t, e], w[j, t - 1, e])
    later = Definition("carried on", w[j, t, a], erased, (j, a), ((j, t - 1),))
    setting = Setting((write, goal.hypothesis, later, fresh), order=((1, t),), instances=SIZES)
    step = Chain("one write more", setting, S[t, a, c])
    step = step.unfold("the newest write", write.rhs, "write")
    old = goal.rhs.subs(t, t - 1)
    read = Sum(k[t, e] * old.subs(a, e), (e, 1, K))
    after = old - beta[t] * k[t, a] * read + newest * beta[t] * k[t, a] * v[t, c]
    step = step.unfold("the state so far", after, "induction hypothesis")
    before = Sum(beta[j] * w[j, t, a] * v[j, c], (j, 1, t - 1))
    step = step.unfold("each part is carried on", before + newest * beta[t] * k[t, a] * v[t, c], "carried on")
    step = step.unfold("the newest is fresh", before + newest * beta[t] * w[t, t, a] * v[t, c], "fresh")
    return goal.obligation(base, step.split("it joins the sum", rhs, t, t - 1))


def _read() -> Obligation:
    known = Definition("state", S[t, e, c], Sum(beta[j] * w[j, t, e] * v[j, c], (j, 1, t)), (e,))
    setting = Setting((known,), order=((1, t),), instances=SIZES)
    chain = Chain("reading a query", setting, _dot(q[e], S[t, e, c]))
    after = Sum(beta[j] * _dot(q[e], w[j, t, e]) * v[j, c], (j, 1, t))
    return chain.unfold("exchange the sums", after, "state").obligation()


def _one_key(factor: Expr) -> Obligation:
    """Later writes all to the unit key p: w_t = k_1 − ρ(1 − g_t)p with g_t = Π_{1<i≤t}(1 − β_i)."""
    rhs = k[1, a] - rho * (1 - left[t]) * p[a]
    goal = Induction("later writes to one key", t, Integer(1), carried[t, a], rhs, free=(a,))
    start = (
        Definition("before", carried[1, a], k[1, a], (a,)),
        Definition("no factor", left[1], Integer(1)),
    )
    base = Chain("no later write", Setting(start, instances=({a: 1},)), carried[1, a])
    base = base.unfold("nothing erased", goal.rhs.subs(t, 1), "before", "no factor")
    erased = carried[t - 1, a] - beta[t] * p[a] * _dot(p[e], carried[t - 1, e])
    write = Definition("write", carried[t, a], erased, (a,))
    more = Definition("one factor more", left[t], factor * left[t - 1])
    unit = Hypothesis("unit", _dot(p[e], p[e]), 1)
    meets = Hypothesis("overlap", _dot(p[e], k[1, e]), rho)
    sizes = ({t: 3, K: 2, a: 1}, {t: 4, K: 2, a: 2})
    setting = Setting((write, goal.hypothesis, more), (unit, meets), order=((2, t),), instances=sizes)
    step = Chain("one later write more", setting, carried[t, a])
    step = step.unfold("the erase", erased, "write")
    gone = rho * (1 - left[t - 1])
    inside = _dot(p[e], k[1, e]) - gone * _dot(p[e], p[e])
    so_far = k[1, a] - gone * p[a]
    step = step.unfold("what was left", so_far - beta[t] * p[a] * inside, "induction hypothesis")
    found = so_far - beta[t] * p[a] * (rho - gone)
    step = step.use("unit key and overlap", found, overlap=-beta[t] * p[a], unit=beta[t] * p[a] * gone)
    return goal.obligation(base, step.unfold("one factor more", rhs, "one factor more"))


def _one_key_share(square: Expr) -> Obligation:
    known = Definition("left", carried[t, e], k[1, e] - rho * (1 - left[t]) * p[e], (e,))
    unit = Hypothesis("unit", _dot(k[1, e], k[1, e]), 1)
    meets = Hypothesis("overlap", _dot(p[e], k[1, e]), rho)
    setting = Setting((known,), (unit, meets), instances=({t: 2, K: 2}, {t: 3, K: 3}))
    chain = Chain(
        "share of the first value, reading its key", setting, beta[1] * _dot(k[1, e], carried[t, e])
    )
    gone = rho * (1 - left[t])
    inserted = beta[1] * (_dot(k[1, e], k[1, e]) - gone * _dot(p[e], k[1, e]))
    chain = chain.unfold("insert what is left", inserted, "left")
    after = beta[1] * (1 - square * (1 - left[t]))
    return chain.use("unit key and overlap", after, unit=beta[1], overlap=-beta[1] * gone).obligation()


def _orthogonal(newest: Expr) -> Obligation:
    """Mutually orthogonal later keys u_j: w_t = k_1 − Σ_{1<j≤t} β_j ρ_j u_j with ρ_j = u_j·k_1.

    The later keys are their own family, so that being orthogonal says nothing about k_1.
    """
    rhs = k[1, a] - Sum(beta[j] * overlap[j] * later[j, a], (j, 2, t))
    goal = Induction("later writes to orthogonal keys", t, Integer(1), carried[t, a], rhs, free=(a,))
    start = Definition("before", carried[1, a], k[1, a], (a,))
    base = Chain("no later write", Setting((start,), instances=({a: 1},)), carried[1, a])
    base = base.unfold("nothing erased", goal.rhs.subs(t, 1), "before")
    erased = carried[t - 1, a] - beta[t] * later[t, a] * _dot(later[t, e], carried[t - 1, e])
    definitions = (
        Definition("write", carried[t, a], erased, (a,)),
        goal.hypothesis,
        Definition("overlap", overlap[t], _dot(later[t, e], k[1, e])),
        Definition("product of later keys", gram[t, j], _dot(later[t, e], later[j, e]), (j,)),
        Definition("orthogonal", gram[t, j], Integer(0), (j,), ((j, t - 1),)),
    )
    sizes = ({t: 3, K: 2, a: 1}, {t: 4, K: 2, a: 2})
    setting = Setting(definitions, order=((2, t),), instances=sizes)
    step = Chain("one later write more", setting, carried[t, a])
    step = step.unfold("the erase", erased, "write")
    before = k[1, a] - Sum(beta[j] * overlap[j] * later[j, a], (j, 2, t - 1))
    others = Sum(beta[j] * overlap[j] * _dot(later[t, e], later[j, e]), (j, 2, t - 1))
    inside = _dot(later[t, e], k[1, e]) - others
    step = step.unfold("what was left", before - beta[t] * later[t, a] * inside, "induction hypothesis")
    mixed = Sum(beta[j] * overlap[j] * gram[t, j], (j, 2, t - 1))
    named = before - beta[t] * later[t, a] * (overlap[t] - mixed)
    step = step.unfold("name the products", named, "overlap", "product of later keys")
    step = step.unfold("later keys are orthogonal", before - newest * overlap[t] * later[t, a], "orthogonal")
    return goal.obligation(base, step.split("it joins the sum", rhs, t, t - 1))


def _orthogonal_share() -> Obligation:
    known = Definition(
        "left", carried[t, e], k[1, e] - Sum(beta[j] * overlap[j] * later[j, e], (j, 2, t)), (e,)
    )
    named = Definition("overlap", overlap[j], _dot(later[j, e], k[1, e]), (j,))
    unit = Hypothesis("unit", _dot(k[1, e], k[1, e]), 1)
    setting = Setting((known, named), (unit,), instances=({t: 2, K: 2}, {t: 3, K: 2}))
    chain = Chain(
        "share of the first value, reading its key", setting, beta[1] * _dot(k[1, e], carried[t, e])
    )
    others = Sum(beta[j] * overlap[j] * _dot(later[j, e], k[1, e]), (j, 2, t))
    chain = chain.unfold("insert what is left", beta[1] * (_dot(k[1, e], k[1, e]) - others), "left")
    squares = Sum(beta[j] * overlap[j] ** 2, (j, 2, t))
    chain = chain.unfold("name the overlaps", beta[1] * (_dot(k[1, e], k[1, e]) - squares), "overlap")
    return chain.use("unit key", beta[1] * (1 - squares), unit=beta[1]).obligation()


def parts() -> tuple[Part, ...]:
    """The state, the read, and the two closed forms."""
    return (
        Part(
            r"From the zero state, $S_t=\sum_{j\le t}\beta_jw_{j\to t}v_j^\top$ with $w_{j\to j}=k_j$ and"
            r" $w_{j\to t}=(I-\beta_tk_tk_t^\top)w_{j\to t-1}$, for any keys, strengths and values"
            r" (induction on $t$).",
            (_state(1),),
        ),
        Part(
            r"So reading $q$ gives $\sum_j\beta_j(q\cdot w_{j\to t})v_j$: the share of $v_1$ is"
            r" $\beta_1\,q^\top(I-\beta_tk_tk_t^\top)\cdots(I-\beta_2k_2k_2^\top)k_1$.",
            (_read(),),
        ),
        Part(
            r"If all later writes go to one unit key $p$ with $\rho=p\cdot k_1$, then $w_{1\to"
            r" t}=k_1-\rho(1-g_t)p$"
            r" with $g_t=\prod_{1<i\le t}(1-\beta_i)$, and reading the unit key $k_1$ keeps the share"
            r" $\beta_1(1-\rho^2(1-g_t))$ of $v_1$: for one later write $\beta_1(1-\beta_2\rho^2)$, for"
            r" writes to $k_1$"
            r" itself the product $\beta_1\prod_{1<i\le t}(1-\beta_i)$.",
            (_one_key(1 - beta[t]), _one_key_share(rho**2)),
        ),
        Part(
            r"If the later keys are mutually orthogonal, with any overlaps $\rho_j=k_j\cdot k_1$ (below the"
            r" later keys are $u_j$), $w_{1\to t}=k_1-\sum_{1<j\le t}\beta_j\rho_jk_j$,"
            r" and the share is $\beta_1(1-\sum_{1<j\le t}\beta_j\rho_j^2)$.",
            (_orthogonal(beta[t]), _orthogonal_share()),
        ),
    )


CLAIM = Claim(
    id="delta.overwrite-general",
    title="What the delta rule keeps of a value after any number of later writes",
    statement=(
        r"From the zero state the delta rule reads $o=\sum_j\beta_j(q\cdot w_{j\to t})v_j$ with"
        r" $w_{j\to t}=\prod_{j<i\le t}(I-\beta_ik_ik_i^\top)k_j$. Reading the unit key $k_1$, the share of"
        r" $v_1$ is"
        r" $\beta_1\big(1-\rho^2(1-\prod_{1<i\le t}(1-\beta_i))\big)$ when all later writes go to one unit"
        r" key of"
        r" overlap $\rho$, and $\beta_1(1-\sum_{1<j\le t}\beta_j\rho_j^2)$ when the later keys are mutually"
        r" orthogonal."
    ),
    source="new",
    status=Status.NEW,
    scope="every number of writes, every K and V, all real strengths; the closed forms for the keys they"
    " name",
    variables=(
        Variable("t", r"number of writes, an integer $\ge1$"),
        Variable("k_j", r"keys, $\mathbb{R}^K$"),
        Variable("u_j", r"the later keys $k_j$, $j>1$, where they are mutually orthogonal, $\mathbb{R}^K$"),
        Variable("v_j", r"values, one coordinate at a time"),
        Variable(r"\beta_j", r"\mathbb{R}"),
        Variable("q", r"query, $\mathbb{R}^K$"),
    ),
    assumptions=(
        Assumption("zero initial state"),
        Assumption("closed forms: ‖k_1‖ = 1; ‖p‖ = 1 for writes to one key"),
    ),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant("value not written", "a write that erases only", lambda: (_state(0),)),
        Mutant("share kept", "the factor β in place of 1 − β", lambda: (_one_key(beta[t]),)),
        Mutant("ρ for ρ²", "the share with ρ in place of its square", lambda: (_one_key_share(rho),)),
        Mutant("full strength", "orthogonal writes with strength 1", lambda: (_orthogonal(Integer(1)),)),
    ),
    remark=(
        "For keys in general position the share is a product of matrices, not of numbers: an erase along one"
        " key"
        " brings back part of what an earlier erase along another took away."
    ),
)

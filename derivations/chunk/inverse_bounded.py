"""The inverse inside a chunk is bounded by the write strength, whatever the chunk size.

Column j of (I + L)⁻¹ is found by carrying k_j through the steps after j: w_j = k_j, w_i = (I − β_i k_i k_iᵀ)
Diag(α_i)w_{i−1}. What step i erases, M_i = −β_i k_iᵀ(α_i ⊙ w_{i−1}), satisfies the rows of the triangular
system with 1 on the diagonal, so it is the entry (i, j) of the inverse; and each step is a contraction, so
the vector never grows and |M_i| ≤ β_i. Large numbers in a chunk come from the algorithm, never from the
problem.
"""

from typing import Any

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from derivations.kda import _contraction as contraction
from verify.derive import Chain, Definition, Induction, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

j, t, r, c, e, f, K = symbols("j t r c e f K")
k, w, x, M = (IndexedBase(name) for name in ("k", "w", "x", "M"))
D, alpha, beta, room = (IndexedBase(name) for name in ("D", r"\alpha", r"\beta", "h"))
LATER: dict[str, Any] = {
    "nonempty": (K,),
    "order": ((j + 1, t),),
    "instances": ({j: 0, t: 3, K: 2, c: 1}, {j: 2, t: 3, K: 2, c: 2}),
}
start = Definition("start", w[j, c], k[j, c], (c,))
no_decay = Definition("no decay yet", D[t, t, c], Integer(1), free=(t, c))
one_decay = Definition(
    "one more decay", D[r, t, c], alpha[t, c] * D[r, t - 1, c], free=(r, c), guards=((r, t - 1),)
)
read_back = Sum(k[t, e] * alpha[t, e] * w[t - 1, e], (e, 1, K))
entry = Definition("entry", M[t], -beta[t] * read_back)


def _vector(last: Expr, channel: Expr) -> Expr:
    tokens = Sum(D[r, last, channel] * k[r, channel] * M[r], (r, j + 1, last))
    return D[j, last, channel] * k[j, channel] + tokens


def _step() -> Obligation:
    setting = Setting((entry,), **LATER)
    stepped = alpha[t, c] * w[t - 1, c] - beta[t] * k[t, c] * read_back
    chain = Chain("one step on the carried vector", setting, stepped)
    return chain.unfold(
        "name what it erases", alpha[t, c] * w[t - 1, c] + k[t, c] * M[t], "entry"
    ).obligation()


def _unrolled(newest: int) -> Obligation:
    goal = Induction("the carried vector", t, j, w[t, c], _vector(t, c))
    base = Chain(
        "before any step", Setting((start, no_decay), instances=({j: 0, c: 1}, {j: 2, c: 2})), w[j, c]
    )
    base = base.unfold("the key itself", _vector(j, c), "start", "no decay yet")
    recurrence = Definition("step", w[t, c], alpha[t, c] * w[t - 1, c] + newest * k[t, c] * M[t])
    setting = Setting((recurrence, goal.hypothesis, one_decay, no_decay), **LATER)
    step = Chain("one step more", setting, w[t, c])
    step = step.unfold("decay and erase", recurrence.rhs, "step")
    added = k[t, c] * M[t]
    step = step.unfold("the steps before", alpha[t, c] * _vector(t - 1, c) + added, "induction hypothesis")
    earlier = D[j, t, c] * k[j, c] + Sum(D[r, t, c] * k[r, c] * M[r], (r, j + 1, t - 1))
    step = step.unfold("every product takes one more decay", earlier + added, "one more decay")
    step = step.unfold("the newest has not decayed", earlier + D[t, t, c] * added, "no decay yet")
    return goal.obligation(base, step.split("it joins the sum", _vector(t, c), t, t - 1))


def _row(diagonal: int) -> Obligation:
    """Row t, column j of (I + L)M is 0 for t > j, with M_jj = 1."""

    def score(token: Expr) -> Expr:
        return beta[t] * Sum(k[t, f] * D[token, t, f] * k[token, f], (f, 1, K))

    carried = Definition("carried", w[t - 1, c], _vector(t - 1, c), free=(c,))
    setting = Setting((entry, carried, one_decay), **LATER)
    total = M[t] + diagonal * score(j) + Sum(score(r) * M[r], (r, j + 1, t - 1))
    chain = Chain("one row of (I + L)M, below the diagonal", setting, total)
    inserted = -beta[t] * read_back + diagonal * score(j) + Sum(score(r) * M[r], (r, j + 1, t - 1))
    chain = chain.unfold("what the step erases", inserted, "entry")
    return chain.unfold(
        "the carried vector, decayed once more", Integer(0), "carried", "one more decay"
    ).obligation()


def _read_bound(most: int) -> Obligation:
    """‖w‖² ≥ ‖α ⊙ w‖² for decays at most 1."""
    spared = Definition("room below 1", room[t, e], most - alpha[t, e], (e,))
    setting = Setting(
        (spared,), nonnegative=(alpha, room), nonempty=(K,), instances=({K: 2, t: 1}, {K: 3, t: 2})
    )
    before, after = (Sum(z**2, (e, 1, K)) for z in (w[t - 1, e], alpha[t, e] * w[t - 1, e]))
    faded = Sum(room[t, e] * (1 + alpha[t, e]) * w[t - 1, e] ** 2, (e, 1, K))
    chain = Chain("squared length before the decay", setting, before)
    chain = chain.unfold("what the decay takes away", after + faded, "room below 1")
    return chain.drop("it is not negative", after, faded).obligation()


def _entry_bound() -> Obligation:
    read, rest = symbols("y z")
    spared = Definition("room", rest, 1 - read**2)
    found = Definition("found", M[t], -beta[t] * read)
    setting = Setting((spared, found), nonnegative=(rest,), instances=({t: 1},))
    chain = Chain("the squared strength", setting, beta[t] ** 2)
    chain = chain.unfold("the entry and the rest", M[t] ** 2 + beta[t] ** 2 * rest, "room", "found")
    return chain.drop("the rest is not negative", M[t] ** 2, beta[t] ** 2 * rest).obligation()


def parts() -> tuple[Part, ...]:
    """The entries of the inverse, the length of the carried vector, the bound."""
    return (
        Part(
            r"With $w_j=k_j$, $w_t=(I-\beta_tk_tk_t^\top)\mathrm{Diag}(\alpha_t)w_{t-1}$ and"
            r" $M_t=-\beta_t\,k_t^\top(\alpha_t\odot w_{t-1})$: $w_t=D_{j\to t}\odot k_j+\sum_{j<r\le"
            r" t}(D_{r\to t}"
            r"\odot k_r)M_r$ for every $t\ge j$.",
            (_step(), _unrolled(1)),
        ),
        Part(
            r"Hence $M_t+L_{tj}+\sum_{j<r<t}L_{tr}M_r=0$ with $L_{tr}=\beta_tk_t^\top(D_{r\to t}\odot k_r)$:"
            r" with"
            r" $M_j=1$ this is column $j$ of $(I+L)M=I$, and a unit lower triangular system has one"
            r" solution. So"
            r" $M_t$ is the entry $(t,j)$ of $(I+L)^{-1}$.",
            (_row(1),),
        ),
        Part(
            r"For unit keys, $\beta\in[0,2]$ and decays in $[0,1]$ no step lengthens $w$:"
            r" $\|w_{t-1}\|\le\|k_j\|=1$.",
            (contraction.one_step(Integer(1)), contraction.telescope(), contraction.never_longer()),
        ),
        Part(
            r"So $(k_t^\top(\alpha_t\odot w_{t-1}))^2\le\|k_t\|^2\|\alpha_t\odot w_{t-1}\|^2\le1$ and"
            r" $|M_t|\le\beta_t\le2$.",
            (contraction.cauchy_schwarz(), _read_bound(1), _entry_bound()),
        ),
    )


CLAIM = Claim(
    id="chunk.inverse-bounded",
    title="The inverse inside a chunk is bounded by the write strength, whatever the chunk size",
    statement=(
        r"For unit keys, $\beta_i\in[0,2]$ and decays in $[0,1]^K$ the entry $(i,j)$, $i>j$, of $(I+L)^{-1}$"
        r" with"
        r" $L_{ij}=\beta_ik_i^\top(D_{j\to i}\odot k_j)$ is $-\beta_i\,k_i^\top\mathrm{Diag}(\alpha_i)\big("
        r"\prod_{j<r<i}(I-\beta_rk_rk_r^\top)\mathrm{Diag}(\alpha_r)\big)k_j$ (later factors to the left),"
        r" and its"
        r" size is at most $\beta_i$, for every chunk size."
    ),
    source="new",
    status=Status.NEW,
    scope="every chunk size, every K; the bound for unit keys, β in [0, 2] and decays in [0, 1]",
    variables=(
        Variable("j, t", r"column and row, tokens of one chunk with $j\le t$"),
        Variable("k_t", r"unit key, $\mathbb{R}^K$"),
        Variable(r"\beta_t", r"write strength, $[0,2]$"),
        Variable(r"\alpha_t", r"decay, $[0,1]^K$; $D_{j\to t}$ is the product after token $j$ up to $t$"),
    ),
    assumptions=(
        Assumption(
            "the formula for the entries needs no condition; the bound needs unit keys, β ∈ [0, 2], α ∈ [0,"
            " 1]"
        ),
        Assumption("exact arithmetic"),
    ),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant("write sign", "the carried vector with the erase added", lambda: (_unrolled(-1),)),
        Mutant("column of −I", "a row of the system with −1 on the diagonal", lambda: (_row(-1),)),
        Mutant("growing decay", "decays up to 2 claimed not to lengthen", lambda: (_read_bound(2),)),
        Mutant(
            "β up to 3", "one step with 3 − β as the room", lambda: (contraction.one_step(Integer(1), 3),)
        ),
    ),
    remark=(
        "The last decay Diag(α_i) belongs to the entry: the key of row i reads after its own decay. Products"
        " of"
        " powers of L, as in a Neumann series, do become large (kda.neumann-exact-unstable)."
    ),
)

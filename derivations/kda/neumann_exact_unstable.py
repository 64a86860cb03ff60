"""Inverting a chunk by a Neumann product is exact, and its intermediate numbers are huge.

Exact, because all factors are polynomials in one nilpotent matrix: (I + N)(I − N)(I + N²)…(I + N^{C/2})
telescopes to I − N^C = I. Unstable, because with equal unit keys and strength β the powers have the entries
β^m·binom(d − 1, m − 1) at distance d below the diagonal, while the inverse has −β(1 − β)^{d−1}, at most β in
size. The large entries must cancel to almost nothing, and a float that holds a large number holds it only to
its last bit. Forward substitution meets no number larger than the partial sums of the answer.
"""

from math import comb
from typing import Any

from sympy import Expr, IndexedBase, Integer, Sum, Symbol, symbols

from verify.derive import Chain, Definition, Induction, Setting
from verify.derive.tree import tree
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

r, m, d, l, i, j, t = symbols("r m d l i j t")  # noqa: E741
beta = Symbol(r"\beta")
power, partial, binomial, count, hockey, inverse, decay = (
    IndexedBase(name) for name in ("x", "Q", "b", "c", "H", "M", "g")
)
N, P, error, total, rounding, carried = (IndexedBase(name) for name in ("N", "P", "E", "s", r"\rho", "G"))


def _telescopes(factor_sign: int) -> Obligation:
    """(1 + N)·(1 − N)(1 + N²)…(1 + N^{2^{r−1}}) = 1 − N^{2^r}, with x[s] = N^{2^s}."""
    square = Definition("squaring", power[r], power[r - 1] ** 2)
    goal = Induction("the product telescopes", r, Integer(1), partial[r], 1 - power[r])
    first = Definition("first factors", partial[1], (1 + power[0]) * (1 - power[0]))
    once = Definition("first square", power[1], power[0] ** 2)
    base = Chain("(1 + N)(1 − N)", Setting((first, once)), partial[1])
    base = base.unfold("the two factors", 1 - power[0] ** 2, "first factors")
    base = base.unfold("name the square", 1 - power[1], "first square")
    more = Definition("one factor more", partial[r], partial[r - 1] * (1 + factor_sign * power[r - 1]))
    setting = Setting((more, goal.hypothesis, square), order=((2, r),), instances=({r: 2}, {r: 4}))
    step = Chain("one factor more", setting, partial[r])
    step = step.unfold("the factor", more.rhs, "one factor more")
    step = step.unfold("the factors before", 1 - power[r - 1] ** 2, "induction hypothesis")
    return goal.obligation(base, step.unfold("name the square", 1 - power[r], "squaring"))


def _nilpotent(last: Expr) -> Obligation:
    """Entry (i, j) of N^m = N·N^{m−1} vanishes for i − j < m, if that of N^{m−1} does for l − j < m − 1."""
    zero = Definition("earlier power", P[l, j], Integer(0), free=(l,), guards=((l, last),))
    setting = Setting((zero,), order=((i, j + m - 1),), instances=({i: 3, j: 1, m: 3}, {i: 2, j: 2, m: 1}))
    chain = Chain("one entry of the next power", setting, Sum(N[i, l] * P[l, j], (l, 1, i - 1)))
    return chain.unfold("every summand has a vanishing factor", Integer(0), "earlier power").obligation()


def _hockey_stick(index: Expr) -> Obligation:
    """Σ_{l<d} binom(l − 1, m − 1) = binom(d − 1, m), from Pascal's rule."""
    summed = Sum(binomial[l - 1, m - 1], (l, 1, d - 1))
    named = Definition("sum", hockey[d], summed, (d,))
    goal = Induction(
        "the sum along a diagonal of Pascal's triangle", d, Integer(1), hockey[d], binomial[index, m]
    )
    zero = Definition("outside the triangle", binomial[0, m], Integer(0))
    base = Chain("d = 1", Setting((named, zero), instances=({m: 1}, {m: 3})), hockey[1])
    base = base.unfold("an empty sum", Integer(0), "sum")
    base = base.unfold("binom(0, m) = 0 for m ≥ 1", goal.rhs.subs(d, 1), "outside the triangle")
    pascal = Definition("Pascal", binomial[d - 1, m], binomial[d - 2, m - 1] + binomial[d - 2, m])
    split = Definition("last term", hockey[d], hockey[d - 1] + binomial[d - 2, m - 1])
    setting = Setting(
        (split, goal.hypothesis, pascal), order=((2, d),), instances=({d: 2, m: 1}, {d: 4, m: 2})
    )
    step = Chain("one term more", setting, hockey[d])
    step = step.unfold("the last term", split.rhs, "last term")
    before = goal.rhs.subs(d, d - 1) + binomial[d - 2, m - 1]
    step = step.unfold("the terms before", before, "induction hypothesis")
    return goal.obligation(base, step.unfold("Pascal's rule", goal.rhs, "Pascal"))


def _counts() -> Obligation:
    """Entries of N^m over β^m: c[m, d] = Σ_{l<d} c[m − 1, l] = binom(d − 1, m − 1)."""
    goal = Induction("entries of the powers", m, Integer(1), count[m, d], binomial[d - 1, m - 1], free=(d,))
    one = Definition("N itself", count[1, d], Integer(1), (d,))
    corner = Definition("binom(n, 0)", binomial[d, 0], Integer(1), (d,))
    base = Chain("m = 1", Setting((one, corner), instances=({d: 1}, {d: 3})), count[1, d])
    base = base.unfold("all entries are β", Integer(1), "N itself")
    base = base.unfold("binom(d − 1, 0) = 1", goal.rhs.subs(m, 1), "binom(n, 0)")
    product = Definition("product", count[m, d], Sum(count[m - 1, l], (l, 1, d - 1)), (d,))
    stick = Definition("diagonal", hockey[d], binomial[d - 1, m - 1], (d,))
    named = Definition("sum", hockey[d], Sum(binomial[l - 1, m - 2], (l, 1, d - 1)), (d,))
    sizes = ({m: 2, d: 3}, {m: 3, d: 4})
    setting = Setting((product, goal.hypothesis, stick, named), order=((2, m),), instances=sizes)
    step = Chain("one power more", setting, count[m, d])
    step = step.unfold("multiply by N", product.rhs, "product")
    step = step.unfold("the power before", named.rhs, "induction hypothesis")
    step = step.unfold("name the sum", hockey[d], "sum")
    return goal.obligation(base, step.unfold("sum along a diagonal", goal.rhs, "diagonal"))


def _inverse(entry: Expr) -> Obligation:
    """M[d] = −β − βΣ_{0<l<d} M[l] is −β(1 − β)^{d−1}; g[d] = (1 − β)^{d−1}."""
    goal = Induction("entries of the inverse", d, Integer(1), inverse[d], entry)
    start = Definition("no factor", decay[1], Integer(1))
    row = Definition("row", inverse[d], -beta - beta * Sum(inverse[l], (l, 1, d - 1)), (d,))
    base = Chain("d = 1", Setting((start, row)), inverse[1])
    base = base.unfold("an empty sum", -beta, "row").unfold("no factor", entry.subs(d, 1), "no factor")
    last = Definition("two rows", inverse[d], inverse[d - 1] - beta * inverse[d - 1])
    factor = Definition("one factor more", decay[d], (1 - beta) * decay[d - 1])
    setting = Setting((last, goal.hypothesis, factor), order=((2, d),), instances=({d: 2}, {d: 4}))
    step = Chain("one row more", setting, inverse[d])
    step = step.unfold("subtract two rows", last.rhs, "two rows")
    step = step.unfold("the row before", (1 - beta) * entry.subs(d, d - 1), "induction hypothesis")
    return goal.obligation(base, step.unfold("one factor more", entry, "one factor more"))


def _two_rows() -> Obligation:
    rows = Definition("row", inverse[d], -beta - beta * Sum(inverse[l], (l, 1, d - 1)), (d,))
    setting = Setting((rows,), order=((2, d),), instances=({d: 2}, {d: 4}))
    inside = Sum(inverse[l], (l, 1, d - 1))
    chain = Chain("two rows of the system", setting, -beta - beta * inside)
    before = Sum(inverse[l], (l, 1, d - 2))
    chain = chain.split("the last summand", -beta - beta * before - beta * inverse[d - 1], d - 1, d - 2)
    return chain.rearrange(
        "the row before, and its own entry", (-beta - beta * before) - beta * inverse[d - 1]
    ).obligation()


def _errors(sign: int) -> Obligation:
    """With E[t] = ρ[t] − β s[t − 1] and s[t] = s[t − 1] + E[t]: s[t] = Σ_{r≤t} G[r, t] ρ[r]."""
    goal_rhs = Sum(carried[r, t] * rounding[r], (r, 1, t))
    goal = Induction("sum of the errors of the first t rows", t, Integer(0), total[t], goal_rhs)
    none = Definition("no row yet", total[0], Integer(0))
    base = Chain("no row yet", Setting((none,)), total[0]).unfold(
        "nothing to sum", goal_rhs.subs(t, 0), "no row yet"
    )
    row = Definition("row", error[t], rounding[t] + sign * beta * total[t - 1])
    more = Definition("one row more", total[t], total[t - 1] + error[t])
    fresh = Definition("fresh", carried[t, t], Integer(1))
    later = Definition("carried", carried[r, t], (1 - beta) * carried[r, t - 1], (r,), ((r, t - 1),))
    setting = Setting((more, row, goal.hypothesis, later, fresh), order=((1, t),), instances=({t: 2}, {t: 4}))
    step = Chain("one row more", setting, total[t])
    step = step.unfold("its error", (1 - beta) * total[t - 1] + rounding[t], "one row more", "row")
    older = (1 - beta) * goal_rhs.subs(t, t - 1) + rounding[t]
    step = step.unfold("the rows before", older, "induction hypothesis")
    before = Sum(carried[r, t] * rounding[r], (r, 1, t - 1))
    step = step.unfold("every factor gains one", before + rounding[t], "carried")
    step = step.unfold("the newest is fresh", before + carried[t, t] * rounding[t], "fresh")
    return goal.obligation(base, step.split("it joins the sum", goal_rhs, t, t - 1))


def _size(distance: int, exponent: int, above: int, label: str, at: str = "9/10") -> Obligation:
    """An entry of a power at a strength, against a bound; exact at strength 1, where it is an integer."""
    strength = Symbol("beta")
    term = tree(comb(distance - 1, exponent - 1) * strength**exponent)
    data: dict[str, Any] = {"term": term, "values": {"beta": at}, "above": str(above)}
    return Obligation("inequality", label, "E" if at == "1" else "B", data)


def parts() -> tuple[Part, ...]:
    """The product is exact; its factors' entries; the inverse's; what a float keeps; the other way."""
    return (
        Part(
            r"$(I+N)(I-N)(I+N^2)(I+N^4)\cdots(I+N^{2^{r-1}})=I-N^{2^r}$ for every $r\ge1$: all factors are"
            r" polynomials in $N$, so the identity of polynomials holds for matrices. With $N^C=0$ and"
            r" $C=2^r$"
            r" the product after $I+N$ is the inverse.",
            (_telescopes(1),),
        ),
        Part(
            r"For $N$ strictly lower triangular the entries $(i,j)$ of $N^m$ with $i-j<m$ vanish (by"
            r" induction"
            r" on $m$); for size $C$ all do at $m=C$.",
            (_nilpotent(j + m - 2),),
        ),
        Part(
            r"Equal unit keys without decay give $N_{ij}=\beta$ for $j<i$, and then"
            r" $(N^m)_{ij}=\beta^m\binom{i-j-1}"
            r"{m-1}$ for every $m\ge1$.",
            (_hockey_stick(d - 1), _counts()),
        ),
        Part(
            r"The inverse has the entries $-\beta(1-\beta)^{i-j-1}$, at most $\beta$ in size for"
            r" $\beta\in[0,2]$ (chunk.inverse-bounded).",
            (_two_rows(), _inverse(-beta * decay[d])),
        ),
        Part(
            r"At $C=16$ the factor $N^8$ has an entry $3432\beta^8$, at $C=64$ the factor $N^{32}$ has"
            r" $\binom{62}{31}\beta^{32}>10^{17}\beta^{32}$. At $\beta=9/10$ these exceed $2^{10}$ and"
            r" $2^{53}$,"
            r" where neighbouring numbers are $8$ apart in bfloat16, $1$ in float16, and $2^{30}$ in"
            r" float32, $2$"
            r" in float64: the entries of the inverse are at most $0.9$.",
            (
                _size(15, 8, 2**10, "C = 16: the entry (16, 1) of N⁸ at β = 9/10 exceeds 2¹⁰"),
                _size(63, 32, 10**17, "C = 64: binom(62, 31), the entry at β = 1, exceeds 10¹⁷", "1"),
                _size(63, 32, 2**53, "C = 64: the entry (64, 1) of N³² at β = 9/10 exceeds 2⁵³"),
            ),
        ),
        Part(
            r"Forward substitution: if row $t$ is rounded by $\rho_t$, the error of the entry is"
            r" $E_t=\rho_t-\beta\sum_{r<t}(1-\beta)^{t-1-r}\rho_r$, so at most"
            r" $(1+\beta(t-1))\max_r|\rho_r|$ for"
            r" $\beta\in[0,2]$: it grows at most linearly with the chunk.",
            (_errors(-1),),
        ),
    )


CLAIM = Claim(
    id="kda.neumann-exact-unstable",
    title="Inverting a chunk by a Neumann product is exact, and its intermediate numbers are huge",
    statement=(
        r"For $N$ strictly lower triangular of size $C=2^r$,"
        r" $(I+N)^{-1}=(I-N)(I+N^2)(I+N^4)\cdots(I+N^{C/2})$. With equal unit keys and strength $\beta$,"
        r" $(N^m)_{ij}=\beta^m\binom{i-j-1}{m-1}$, up to $3432\,\beta^8$ at $C=16$ and above"
        r" $10^{17}\beta^{32}$ at $C=64$, while the inverse has the entries $-\beta(1-\beta)^{i-j-1}$, at"
        r" most"
        r" $\beta$ in size for $\beta\in[0,2]$. For $\beta\in[0,2]$ forward substitution errs by at most"
        r" $1+\beta(C-1)$ times the largest rounding of a row."
    ),
    source="new",
    status=Status.NEW,
    scope="the formulas for every C, m and real β; the figures at β = 9/10, C = 16 and 64",
    variables=(
        Variable("N", "strictly lower triangular matrix"),
        Variable("C", r"size of the chunk, a power of two, $2^r$"),
        Variable(r"\beta", r"write strength, $\mathbb{R}$"),
        Variable("d", r"distance $i-j$ below the diagonal, $1\le d<C$"),
        Variable("m", r"power, an integer $\ge1$"),
    ),
    assumptions=(
        Assumption("entries of the powers: equal unit keys, one strength, no decay"),
        Assumption(
            "Pascal's rule with binom(n, 0) = 1 and binom(0, m) = 0 for m ≥ 1; a sum is its last term plus"
            " the rest"
        ),
        Assumption("forward substitution: exact β; all rounding of a row is counted in ρ_t"),
    ),
    asked="KEB",
    parts=parts,
    mutants=(
        Mutant("factor sign", "a later factor I − N²", lambda: (_telescopes(-1),)),
        Mutant("one term more", "the diagonal sum as binom(d, m)", lambda: (_hockey_stick(d),)),
        Mutant("inverse sign", "the inverse's entries with +β", lambda: (_inverse(beta * decay[d]),)),
        Mutant("error sign", "a row that adds earlier errors", lambda: (_errors(1),)),
        Mutant("one digit more", "binom(62, 31) above 10¹⁸", lambda: (_size(63, 32, 10**18, "mutant", "1"),)),
        Mutant("too large", "3432·0.9⁸ above 2¹¹", lambda: (_size(15, 8, 2**11, "mutant"),)),
    ),
    remark=(
        "A test at β = 1 can hide the loss: there all powers have integer entries, which float32 holds"
        " exactly up to 2²⁴. The entry of the product that is wrong need not be the one that is large: in"
        " every power all diagonals are mixed."
    ),
)

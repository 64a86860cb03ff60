"""Tiling leaves the score work quadratic and makes the memory linear.

Multiplications are counted tile by tile: whatever the tile sizes, the tiles cover the T×T score matrix
once. What is kept is one running triple per query and the tiles at hand.
"""

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from verify.derive import Chain, Definition, Hypothesis, Induction, Setting
from verify.derive.tree import tree
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

i, j, T, d, r, c, m, n = symbols("i j T d r c m n")
causal = IndexedBase("N")
SIZES = ({m: 2, n: 3}, {m: 3, n: 2})


def _tiles(after: Expr) -> Obligation:
    rows, columns = Hypothesis("rows", r * m, T), Hypothesis("columns", c * n, T)
    setting = Setting((), (rows, columns), nonempty=(m, n), instances=SIZES)
    tile = Sum(Sum(r * c * d, (j, 1, n)), (i, 1, m))
    chain = Chain("multiplications for all scores, tile by tile", setting, tile)
    chain = chain.rearrange("count the tiles", (r * m) * (c * n) * d)
    return chain.use("the tiles cover the matrix", after, rows=c * n * d, columns=T * d).obligation()


def _in_integers(power: int) -> Obligation:
    """T = r·m and T = c·n imply r·m·c·n·d = T²·d, as a polynomial certificate."""
    data = {
        "equations": [tree(r * m - T), tree(c * n - T)],
        "multipliers": [tree(c * n * d), tree(T * d)],
        "target": tree(r * m * c * n * d - T**power * d),
    }
    return Obligation("polynomial-certificate", "the tiles' work is T²d exactly", "E", data)


def _causal(rhs: Expr) -> Obligation:
    goal = Induction("multiplications under a causal mask", T, Integer(0), causal[T], rhs)
    start = Definition("no token", causal[0], Integer(0))
    base = Chain("no token", Setting((start,)), causal[0]).unfold("no work", rhs.subs(T, 0), "no token")
    one = Definition("one more token", causal[T], causal[T - 1] + T * d)
    setting = Setting((one, goal.hypothesis), order=((1, T),), instances=({T: 2}, {T: 5}))
    step = Chain("one more token", setting, causal[T])
    step = step.unfold("it scores T keys", one.rhs, "one more token")
    return goal.obligation(base, step.unfold("the work so far", rhs, "induction hypothesis"))


def _doubling() -> Obligation:
    chain = Chain("twice the tokens", Setting(instances=({},)), (2 * T) ** 2 * d)
    return chain.rearrange("four times the work", 4 * (T**2 * d)).obligation()


def _memory(after: Expr) -> Obligation:
    """Running maximum, sum and d outputs per query; one tile of scores at a time."""
    setting = Setting(nonempty=(T,), instances=({T: 4},))
    chain = Chain("numbers kept", setting, Sum(1 + 1 + d, (i, 1, T)) + r * c)
    return chain.rearrange("d + 2 per query, one tile", after).obligation()


def parts() -> tuple[Part, ...]:
    """Work by tiles, under a mask, doubling, and memory."""
    return (
        Part(
            r"With tiles of $r\times c$ scores, $T=rm=cn$, the scores take $mn\cdot rcd=T^2d$"
            r" multiplications, whatever the tile sizes.",
            (_tiles(T**2 * d), _in_integers(2)),
        ),
        Part(
            r"With a causal mask and nothing wasted they take $\sum_{t\le T}td=\frac{T(T+1)}2d$.",
            (_causal(T * (T + 1) / 2 * d),),
        ),
        Part(r"Twice the tokens take four times the multiplications.", (_doubling(),)),
        Part(
            r"What is kept besides inputs is $T(d+2)+rc$ numbers, linear in $T$ for fixed tiles, against"
            r" $T^2$ for the whole score matrix.",
            (_memory(T * (d + 2) + r * c),),
        ),
    )


CLAIM = Claim(
    id="flash.not-linear-cost",
    title="Tiling leaves the score work quadratic and makes the memory linear",
    statement=(
        r"Tiled exact attention over $T$ tokens of head width $d$ takes $T^2d$ multiplications for its scores"
        r" ($\frac{T(T+1)}2d$ under a causal mask), for every tile size that divides $T$; it keeps"
        r" $T(d+2)+rc$ numbers instead of $T^2$."
    ),
    source="article C",
    status=Status.AS_PRINTED,
    scope="every T, d and tile size that divides T; scores only (the value product takes as many again)",
    variables=(
        Variable("T, d", "tokens and head width, integers ≥ 1"),
        Variable("r, c", "rows and columns of a tile, integers ≥ 1"),
        Variable("m, n", r"tiles in each direction, $T=rm=cn$"),
    ),
    assumptions=(
        Assumption("one score takes d multiplications; every unmasked score is computed once"),
        Assumption("exact softmax attention by tiles; no score is skipped"),
    ),
    asked="E",
    parts=parts,
    mutants=(
        Mutant("linear", "the work as T·d", lambda: (_tiles(T * d),)),
        Mutant("linear, in integers", "the certificate with T for T²", lambda: (_in_integers(1),)),
        Mutant(
            "strict mask", "the causal count without the diagonal", lambda: (_causal(T * (T - 1) / 2 * d),)
        ),
        Mutant("whole matrix", "memory that keeps all scores", lambda: (_memory(T * (d + 2) + T**2),)),
    ),
    remark=(
        "What tiling saves is traffic and memory; the wall clock improves because those were the bottleneck."
    ),
)

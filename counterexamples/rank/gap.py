"""Features of rank m miss the softmax matrix by a certified distance."""

from fractions import Fraction
from typing import Any

from sympy import Expr, IndexedBase, Rational, Sum, symbols

from verify.derive import Chain, Hypothesis, Setting
from verify.model.claim import Assumption, Claim, Counterexample, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

i, j, l, n = symbols("i j l n")  # noqa: E741
inverse, y, score, other, x = (IndexedBase(name) for name in ("C", "y", "A", "B", "x"))

QUERIES = [str(Fraction(2 * place - 11, 2)) for place in range(12)]
KEYS = [str(Fraction(2 * place - 11, 4)) for place in range(12)]
FLOORS = (
    ((0, 11), Fraction(66, 100)),
    ((0, 5, 11), Fraction(64, 1000)),
    ((0, 1, 6, 11), Fraction(239, 10000)),
    ((0, 1, 5, 6, 10, 11), Fraction(263, 100000)),
    (tuple(range(12)), Fraction(47, 10**7)),
)
"""For each rank m a block of m + 1 tokens and the certified distance."""


def _inverse_bound(sign: int) -> Obligation:
    """‖C‖_F²‖y‖² ≥ ‖Cy‖²: row by row, the defect is a sum of squares."""
    setting = Setting(nonempty=(n,), instances=({n: 2},))
    squares = Sum(inverse[i, j] ** 2, (j, 1, n), (i, 1, n))
    image = Sum(Sum(inverse[i, j] * y[j], (j, 1, n)) ** 2, (i, 1, n))
    minor = (inverse[i, j] * y[l] + sign * inverse[i, l] * y[j]) ** 2
    defect = Rational(1, 2) * Sum(minor, (l, 1, n), (j, 1, n), (i, 1, n))
    chain = Chain("Cauchy and Schwarz in every row", setting, squares * Sum(y[l] ** 2, (l, 1, n)))
    chain = chain.rearrange("Lagrange's identity in every row", image + defect)
    return chain.drop("squares", image, defect).obligation()


def _seen(kept: Expr) -> Obligation:
    """On a vector that the other matrix sends to 0 the difference is the matrix itself; entry i."""
    null = Hypothesis("null vector", Sum(other[i, j] * x[j], (j, 1, n)), 0)
    setting = Setting((), (null,), instances=({n: 2, i: 1}, {n: 3, i: 2}))
    start = Sum((score[i, j] - other[i, j]) * x[j], (j, 1, n))
    chain = Chain("the difference on the null vector", setting, start)
    return chain.use(
        "B sends it to 0", kept * Sum(score[i, j] * x[j], (j, 1, n)), **{"null vector": -1}
    ).obligation()


def _floor(tokens: tuple[int, ...], distance: Fraction) -> Obligation:
    data: dict[str, Any] = {
        "queries": QUERIES,
        "keys": KEYS,
        "rows": list(tokens),
        "columns": list(tokens),
        "below": str(1 / distance**2),
    }
    rank = len(tokens) - 1
    label = f"12 tokens, rank {rank}: the distance is more than {distance}"
    return Obligation("inverse-norm", label, "B", data)


def parts() -> tuple[Part, ...]:
    """The bound for every size, and its value for twelve tokens."""
    return (
        Part(
            r"$\|Cy\|\le\|C\|_F\|y\|$; with $C=A^{-1}$ and $y=Ax$: $\|Ax\|\ge\|x\|/\|A^{-1}\|_F$.",
            (_inverse_bound(-1),),
        ),
        Part(
            r"If $A$ is a block of $m+1$ rows and columns and $B$ the same block of a matrix of rank at most"
            r" $m$, some"
            r" $x\ne0$ has $Bx=0$ (rank.finite-feature), and $(A-B)x=Ax$. So both the spectral and the"
            r" Frobenius norm of"
            r" $A-B$, and of the whole difference, are at least $1/\|A^{-1}\|_F$.",
            (_seen(Rational(1)),),
        ),
        Part(
            r"Twelve tokens, $q_i=i-\frac{11}2$, $k_j=\frac12(j-\frac{11}2)$ for $i,j=0,\dots,11$: the"
            r" softmax matrix is more"
            r" than $0.66$ from rank 1, $0.064$ from rank 2, $0.0239$ from rank 3, $0.00263$ from rank 5 and"
            r" $4.7\cdot10^{-6}$ from rank 11.",
            tuple(_floor(tokens, distance) for tokens, distance in FLOORS),
        ),
    )


CLAIM = Claim(
    id="rank.gap",
    title="Features of rank m miss the softmax matrix by a certified distance",
    statement=(
        r"Every matrix of rank at most $m$ is at spectral (and so at Frobenius) distance at least"
        r" $1/\|A^{-1}\|_F$ from a"
        r" matrix with an invertible block $A$ of $m+1$ rows and columns; with values $V=I$ this is the"
        r" error of the output."
        r" For twelve tokens and scalar queries and keys the distance from the softmax matrix exceeds $0.66$"
        r" at $m=1$,"
        r" $0.0239$ at $m=3$ and $4.7\cdot10^{-6}$ at $m=11$."
    ),
    source="article A, section 3",
    status=Status.AS_PRINTED,
    scope="the bound for every n and m; the figures for n = 12 and these queries and keys",
    variables=(
        Variable("A", r"an invertible block of the matrix, $\mathbb{R}^{(m+1)\times(m+1)}$"),
        Variable("B", "the same block of any matrix of rank at most m"),
        Variable("C", r"$A^{-1}$"),
        Variable("x, y", r"vectors, $\mathbb{R}^{m+1}$"),
    ),
    assumptions=(
        Assumption(
            "a block of a matrix of rank at most m has rank at most m, and no larger norm than the matrix"
        ),
        Assumption("this is a lower bound on Eckart and Young's exact distances, not their value"),
    ),
    asked="KB",
    parts=parts,
    mutants=(
        Mutant("sign", "the minors with a plus", lambda: (_inverse_bound(1),)),
        Mutant("twice", "the image counted twice", lambda: (_seen(Rational(2)),)),
        Mutant("larger floor", "0.67 claimed for rank 1", lambda: (_floor((0, 11), Fraction(67, 100)),)),
    ),
    remark="Every choice of block gives a bound; spread-out tokens give a better one than neighbours.",
    counterexample=Counterexample(
        fails=(
            "$m$ features can come as close to the softmax matrix as one likes, full rank or not, "
            "since its small singular values hardly count."
        ),
        believed=(
            "For smooth scores the singular values do fall quickly, and below rounding they do not matter."
        ),
        catch=(
            "Quickly is not at once. For every block of $m+1$ rows and columns the distance to rank "
            r"$m$ is at least $1/\|\mathrm{block}^{-1}\|$, and that number can be enclosed."
        ),
        gap=(
            "For twelve tokens certainly more than $0.66$ at $m=1$, $0.0239$ at $m=3$, $0.00263$ at "
            "$m=5$ and $0.0000047$ at $m=11$."
        ),
        witness=(
            "12 tokens, rank 1: the distance is more than 33/50",
            "12 tokens, rank 2: the distance is more than 8/125",
            "12 tokens, rank 3: the distance is more than 239/10000",
            "12 tokens, rank 5: the distance is more than 263/100000",
            "12 tokens, rank 11: the distance is more than 47/10000000",
        ),
        smallest=(
            "Of all blocks with the same rows and columns these give the best floor (exhaustive "
            "search in floating point, certified afterwards). The floors are below the exact "
            "distances, by a factor of about 1.02 at m = 11 and 2.7 at m = 1."
        ),
        repair=(
            "State the floor with $m$. With values $V=I$ the output is the matrix itself, so it is "
            "an error of the output."
        ),
        repaired_by=("rank.gap",),
        search="counterexamples.rank._search:blocks",
    ),
)

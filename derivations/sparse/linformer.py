"""Projecting tokens to k slots is exact only for weight rows in the projection's row space.

If a row of weights is a combination of the projection's rows, the output is that combination of the
projected values, and conversely: a row off the row space reads a history that the projection cannot see.
Every matrix that factors through the slots loses what the slots lose, so a full-rank weight matrix keeps a
distance: for two tokens at least |det A|/‖A‖.
"""

from sympy import Expr, IndexedBase, Integer, Sum, exp, symbols

from verify.derive import Chain, Definition, Setting
from verify.derive.tree import tree
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

i, j, l, n, k = symbols("i j l n k")  # noqa: E741
a, projection, share, v, slot, z, rest = (IndexedBase(x) for x in ("a", "F", "b", "v", "y", "z", "r"))
a11, a12, a21, a22, z1, z2, g = symbols("a_11 a_12 a_21 a_22 z_1 z_2 g")
SIZES = ({n: 3, k: 2, j: 1, l: 1}, {n: 4, k: 1, j: 2, l: 1})
NONEMPTY = (n, k)


def _tokens(summand: Expr) -> Sum:
    return Sum(summand, (j, 1, n))


def _slots(summand: Expr) -> Sum:
    return Sum(summand, (l, 1, k))


def _exact(after: Expr) -> Obligation:
    row = Definition("row", a[j], _slots(share[l] * projection[l, j]), free=(j,))
    setting = Setting((row,), nonempty=NONEMPTY, instances=SIZES)
    chain = Chain("a weight row in the row space", setting, _tokens(a[j] * v[j]))
    return chain.unfold("exchange the sums", after, "row").obligation()


def _residual(after: Expr) -> Obligation:
    """The history v = residual, orthogonal to the row space, is read as ‖residual‖² and projected to 0."""
    definitions = (
        Definition("residual", a[j], rest[j] + _slots(share[l] * projection[l, j]), free=(j,)),
        Definition("slots of the residual", slot[l], _tokens(projection[l, j] * rest[j]), free=(l,)),
        Definition("orthogonal", slot[l], Integer(0), free=(l,)),
    )
    setting = Setting(definitions, nonempty=NONEMPTY, instances=SIZES)
    chain = Chain("a weight row off the row space reads its residual", setting, _tokens(a[j] * rest[j]))
    seen = _tokens(rest[j] ** 2) + _slots(share[l] * slot[l])
    chain = chain.unfold("insert the row", seen, "residual", "slots of the residual")
    return chain.unfold("the slots hold nothing", after, "orthogonal").obligation()


def _unseen(after: Expr | int) -> Obligation:
    """Whatever is read from the slots vanishes on histories that the slots lose."""
    definitions = (
        Definition("slots", slot[l], _tokens(projection[l, j] * z[j]), free=(l,)),
        Definition("lost", slot[l], Integer(0), free=(l,)),
    )
    setting = Setting(definitions, nonempty=NONEMPTY, instances=SIZES)
    chain = Chain(
        "a read of slots that hold nothing", setting, _tokens(_slots(share[l] * projection[l, j]) * z[j])
    )
    chain = chain.unfold("exchange the sums", _slots(share[l] * slot[l]), "slots")
    return chain.unfold("the slots hold nothing", after, "lost").obligation()


def _floor(weight: Expr) -> Obligation:
    """‖A‖²·‖Az‖² >= det(A)²·‖z‖² for 2×2, so that ‖A − M‖ >= ‖Az‖/‖z‖ >= |det A|/‖A‖ when Mz = 0."""
    first, second = a11 * z1 + a12 * z2, a21 * z1 + a22 * z2
    norm = a11**2 + a12**2 + a21**2 + a22**2
    determinant = a11 * a22 - a12 * a21
    chain = Chain("two tokens, one slot", Setting(instances=({},)), norm * (first**2 + second**2))
    squares = (a22 * second + a12 * first) ** 2 + (a11 * first + a21 * second) ** 2
    below = weight * determinant**2 * (z1**2 + z2**2)
    chain = chain.rearrange("Cauchy–Schwarz with its remainder", below + squares)
    return chain.drop("squares are not negative", below, squares).obligation()


def _frobenius() -> Obligation:
    """‖E‖²‖z‖² >= ‖Ez‖² for a 2×2 matrix E = A − M."""
    e11, e12, e21, e22 = symbols("e_11 e_12 e_21 e_22")
    norm = e11**2 + e12**2 + e21**2 + e22**2
    chain = Chain("a matrix norm bounds a matrix", Setting(instances=({},)), norm * (z1**2 + z2**2))
    image = (e11 * z1 + e12 * z2) ** 2 + (e21 * z1 + e22 * z2) ** 2
    spare = (e11 * z2 - e12 * z1) ** 2 + (e21 * z2 - e22 * z1) ** 2
    chain = chain.rearrange("Lagrange's identity", image + spare)
    return chain.drop("squares are not negative", image, spare).obligation()


def _number(low: str) -> Obligation:
    """det²/‖A‖² for the softmax of the scores ((g, 0), (0, g)): ((p, 1 − p), (1 − p, p))."""
    own, other = exp(g) / (1 + exp(g)), 1 / (1 + exp(g))
    floor = (own**2 - other**2) ** 2 * (2 * own**2 + 2 * other**2) ** (-1)
    data = {"term": tree(floor), "values": {"g": "2"}, "above": low}
    return Obligation("inequality", "the squared floor at a score gap of 2", "B", data)


def parts() -> tuple[Part, ...]:
    """Exactness both ways, what no slot sees, and the floor for two tokens."""
    return (
        Part(
            r"If a row of weights is $a=\sum_lb_lF_l$, then $\sum_ja_jv_j=\sum_lb_l(FV)_l$: the projected"
            r" history gives the output exactly.",
            (_exact(_slots(share[l] * _tokens(projection[l, j] * v[j]))),),
        ),
        Part(
            r"Otherwise write $a=r+\sum_lb_lF_l$ with $Fr=0$, $r\ne0$: the history $v=r$ is projected to 0"
            r" and is to be read as $a\cdot r=\|r\|^2\ne0$, so no reader of the slots is exact.",
            (_residual(_tokens(rest[j] ** 2)),),
        ),
        Part(
            r"Every weight matrix $BF$ realised through $k$ slots satisfies $BFz=0$ whenever $Fz=0$, and by"
            r" rank.finite-feature its rank is at most $k$, whatever the query.",
            (_unseen(0),),
        ),
        Part(
            r"For $n=2$, $k=1$ every matrix $M$ realised so has $\|A-M\|_F\ge|\det A|/\|A\|_F$: for $z\ne0$"
            r" with $Mz=0$, $\|A-M\|\|z\|\ge\|Az\|$ and $\|A\|\|Az\|\ge|\det A|\|z\|$.",
            (_frobenius(), _floor(Integer(1))),
        ),
        Part(
            r"Softmax of the scores $\begin{pmatrix}2&0\\0&2\end{pmatrix}$ is so at a distance above $0.6$"
            r" from every matrix realised with one slot.",
            (_number("36/100"),),
        ),
    )


CLAIM = Claim(
    id="sparse.linformer",
    title="Projecting tokens to k slots is exact only for weight rows in the projection's row space",
    statement=(
        r"Let $F\in\mathbb R^{k\times n}$ project a history to $k$ slots. A row of attention weights $a$ is"
        r" read exactly from $FV$ for every $V$ iff it lies in the row space of $F$; the realised weight"
        r" matrix has rank at most $k$. For two tokens and one slot the error is at least $|\det A|/\|A\|_F$"
        r" in the Frobenius norm, above 0.6 for softmax of scores that differ by 2."
    ),
    source="article C; article B, section 2",
    status=Status.AS_PRINTED,
    scope="every n, k and projection for exactness and rank; the floor for n = 2, k = 1",
    variables=(
        Variable("n, k", "tokens and slots, integers ≥ 1"),
        Variable("F", r"\mathbb{R}^{k\times n}"),
        Variable("a", r"one row of weights, $\mathbb{R}^n$"),
        Variable("v", r"one coordinate of the values, $\mathbb{R}^n$"),
    ),
    assumptions=(
        Assumption(
            r"a row is a part in the row space of $F$ and a part $r$ with $Fr=0$ (orthogonal complement)"
        ),
        Assumption("the projection does not depend on the query"),
        Assumption("rank is the dimension of the image; k vectors span at most k dimensions"),
    ),
    asked="KB",
    parts=parts,
    mutants=(
        Mutant(
            "projection forgotten",
            "the combination applied to the sum of the values",
            lambda: (_exact(_slots(share[l]) * _tokens(v[j])),),
        ),
        Mutant("read as zero", "the residual read as 0", lambda: (_residual(Integer(0)),)),
        Mutant("seen", "a read of empty slots that returns something", lambda: (_unseen(_slots(share[l])),)),
        Mutant("twice the floor", "a floor of twice the determinant", lambda: (_floor(Integer(4)),)),
        Mutant("floor of 0.7", "the distance above 0.7", lambda: (_number("49/100"),)),
    ),
    remark=(
        "With n tokens and distinct one-dimensional queries the score exponentials have full rank"
        " (rank.exponential-full), so the floor is never 0 there; rank.gap states it by singular values."
    ),
)

"""Normalising the rows of a score matrix does not change its rank."""

from fractions import Fraction
from typing import Any

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.model.claim import Assumption, Claim, Counterexample, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

i, j, n = symbols("i j n")
score, weight, c, total = (IndexedBase(name) for name in ("E", "P", "c", "Z"))
SIZES: dict[str, Any] = {"positive": (total,), "instances": ({n: 2, i: 1}, {n: 3, i: 2})}
normalised = Definition("weight", weight[i, j], score[i, j] / total[i], (j,))


def _row(matrix: IndexedBase) -> Expr:
    return Sum(matrix[i, j] * c[j], (j, 1, n))


def _scaled(factor: Expr) -> Obligation:
    chain = Chain("one entry of Pc", Setting((normalised,), **SIZES), _row(weight))
    return chain.unfold("take the normaliser out", factor * _row(score), "weight").obligation()


def _same_kernel(power: int) -> tuple[Obligation, Obligation]:
    """Ec = 0 gives Pc = 0 and the other way round, entry i."""
    scores_vanish = Hypothesis("Ec = 0", _row(score), 0)
    weights_vanish = Hypothesis("Pc = 0", _row(weight), 0)
    forward = Chain("Pc where Ec = 0", Setting((normalised,), (scores_vanish,), **SIZES), _row(weight))
    forward = forward.unfold("take the normaliser out", _row(score) / total[i], "weight")
    forward = forward.use("Ec = 0", Integer(0), **{"Ec = 0": 1 / total[i]})
    back = Chain("Ec where Pc = 0", Setting((normalised,), (weights_vanish,), **SIZES), _row(score))
    back = back.unfold("put the normaliser in", total[i] ** power * _row(weight), "weight")
    return forward.obligation(), back.use("Pc = 0", Integer(0), **{"Pc = 0": total[i] ** power}).obligation()


SCORES = ((1, 1, 2), (1, 2, 3), (2, 3, 5))
"""Positive scores of rank 2: the last row is the sum of the others."""


def _ranks(rank: int) -> tuple[Obligation, Obligation]:
    """The scores and their normalised rows."""
    weights = [[Fraction(x, sum(row)) for x in row] for row in SCORES]
    scores, normal = ([[str(x) for x in row] for row in rows] for rows in (SCORES, weights))
    return (
        Obligation("determinant", "three tokens: scores of rank 2", "E", {"matrix": scores, "rank": 2}),
        Obligation(
            "determinant", "three tokens: their normalised rows", "E", {"matrix": normal, "rank": rank}
        ),
    )


def parts() -> tuple[Part, ...]:
    """One entry, the two kernels, and an example."""
    return (
        Part(r"$(Pc)_i=(Ec)_i/Z_i$ with $Z_i>0$, for every $c$.", (_scaled(1 / total[i]),)),
        Part(
            r"So $Pc=0$ iff $Ec=0$: the kernels agree, and with them the ranks ($n'$ minus the dimension of"
            r" the kernel).",
            _same_kernel(1),
        ),
        Part(
            r"The scores $(1,1,2),(1,2,3),(2,3,5)$ have rank 2, and so have their normalised rows"
            r" $(\frac14,\frac14,\frac12),(\frac16,\frac13,\frac12),(\frac15,\frac3{10},\frac12)$.",
            _ranks(2),
        ),
    )


CLAIM = Claim(
    id="rank.softmax-same",
    title="Normalising the rows of a score matrix does not change its rank",
    statement=r"For $P_{ij}=E_{ij}/Z_i$ with $Z_i>0$, $P$ and $E$ have one kernel and one rank.",
    source="article A, section 3",
    status=Status.AS_PRINTED,
    scope="every n × n', every matrix E, all positive normalisers (those of softmax among them)",
    variables=(
        Variable("E", r"scores, e.g. $e^{q_i\cdot k_j}$, $\mathbb{R}^{n\times n'}$"),
        Variable("Z_i", "normaliser of row i, > 0"),
        Variable("c", r"any vector, $\mathbb{R}^{n'}$"),
    ),
    assumptions=(Assumption("rank is the number of columns minus the dimension of the kernel"),),
    asked="K",
    parts=parts,
    mutants=(
        Mutant("multiplied", "the weights as Z times the scores", lambda: (_scaled(total[i]),)),
        Mutant("squared", "the normaliser put in twice", lambda: _same_kernel(2)),
        Mutant("rank lost", "the normalised rows claimed to have rank 1", lambda: _ranks(1)),
    ),
    remark="A causal mask is another matter: it changes entries, and a triangular matrix with a positive"
    " diagonal has full"
    " rank whatever the scores.",
    counterexample=Counterexample(
        fails=(
            "Row normalisation makes the weights of softmax depend on one another (every row sums to "
            r"1), so the weight matrix has a smaller rank than $e^{QK^\top}$, and fewer features "
            "suffice for it."
        ),
        believed=r"The $n$ conditions $\sum_jP_{ij}=1$ take $n$ degrees of freedom away.",
        catch=(
            r"They are one vector equation, $P1=1$. $P$ is $\mathrm{Diag}(1/Z)$ times the score "
            "matrix with positive $Z$, and a vector is sent to 0 by one iff by the other."
        ),
        gap="0: the two ranks are equal, for every score matrix (2 and 2 in the example).",
        witness=(
            "Pc where Ec = 0",
            "Ec where Pc = 0",
            "three tokens: scores of rank 2",
            "three tokens: their normalised rows",
        ),
        smallest="The statement fails for every score matrix, by proof, so any would do; the example of three"
        " tokens was made by hand.",
        repair="Rank statements carry over: full rank for $e^{q_ik_j}$ is full rank for softmax.",
        repaired_by=("rank.softmax-same", "rank.exponential-full"),
    ),
)

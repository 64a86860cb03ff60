"""Normalising the rows of a score matrix does not change its rank.

The statement that fails: row normalisation makes the weights of softmax depend on one another (every row
sums to 1), so the weight matrix has a smaller rank than e^{QKᵀ}, and fewer features suffice for it.

Why one would believe it: the n conditions Σ_j P_ij = 1 take n degrees of freedom away.

The catch: they are one vector equation, P1 = 1. P is Diag(1/Z) times the score matrix with positive Z, and a
vector is sent to 0 by one iff by the other.

The repair: rank statements carry over: full rank for e^{q_ik_j} is full rank for softmax.
"""

from typing import Any

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
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


def parts() -> tuple[Part, ...]:
    """One entry, and the two kernels."""
    return (
        Part(r"$(Pc)_i=(Ec)_i/Z_i$ with $Z_i>0$, for every $c$.", (_scaled(1 / total[i]),)),
        Part(
            r"So $Pc=0$ iff $Ec=0$: the kernels agree, and with them the ranks ($n'$ minus the dimension of"
            r" the kernel).",
            _same_kernel(1),
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
    ),
    remark="A causal mask is another matter: it changes entries, and a triangular matrix with a positive"
    " diagonal has full"
    " rank whatever the scores.",
)

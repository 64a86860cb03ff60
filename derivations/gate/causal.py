"""A causal gate pays at least half the distance between the states two continuations want.

Two continuations with one prefix get one gate, so one state s; the states they would have wanted are w₁ and
w₂. The mean of the two squared errors is a quarter of the squared distance plus the squared distance of s
from the middle.
"""

from sympy import Expr, IndexedBase, Integer, Rational, Sum, symbols

from verify.derive import Chain, Definition, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

e, n = symbols("e n")
s, w1, w2 = (IndexedBase(name) for name in ("s", "w1", "w2"))
SIZES = ({n: 2}, {n: 3})


def _square(vector: Expr) -> Sum:
    return Sum(vector**2, (e, 1, n))


DISTANCE = _square(w1[e] - w2[e])


def _mean(quarter: Expr) -> Obligation:
    chain = Chain("mean of the two squared errors", Setting(nonempty=(n,), instances=SIZES), _errors())
    off = _square(s[e] - (w1[e] + w2[e]) / 2)
    chain = chain.rearrange("complete the square", quarter * DISTANCE + off)
    return chain.drop("the middle is best", quarter * DISTANCE, off).obligation()


def _errors() -> Expr:
    return Rational(1, 2) * (_square(s[e] - w1[e]) + _square(s[e] - w2[e]))


def _attained(weight: Expr) -> Obligation:
    middle = Definition("middle", s[e], weight * w1[e] + (1 - weight) * w2[e], (e,))
    chain = Chain("squared error of the middle", Setting((middle,), instances=SIZES), _square(s[e] - w2[e]))
    return chain.unfold("insert the middle", DISTANCE / 4, "middle").obligation()


def _largest(share: str) -> Obligation:
    text = f"""(set-logic QF_LRA)
(declare-const first Real)(declare-const second Real)(declare-const distance Real)
(assert (>= (* 0.5 (+ first second)) (* 0.25 distance)))
(assert (< first (* {share} distance)))
(assert (< second (* {share} distance)))
(check-sat)
"""
    label = "the larger of two numbers is at least their mean"
    return Obligation("smt", label, "S", {"smtlib": text, "expect": "unsat", "logic": "QF_LRA"})


def parts() -> tuple[Part, ...]:
    """The mean error, the larger one, and where it is attained."""
    return (
        Part(
            r"For every state $s$:"
            r" $\frac12(\|s-w_1\|^2+\|s-w_2\|^2)=\frac14\|w_1-w_2\|^2+\|s-\frac12(w_1+w_2)\|^2"
            r"\ge\frac14\|w_1-w_2\|^2$.",
            (_mean(Rational(1, 4)),),
        ),
        Part(
            r"So the larger of the two squared errors is at least $\frac14\|w_1-w_2\|^2$, the larger error"
            r" at least half"
            r" the distance.",
            (_largest("0.25"),),
        ),
        Part(
            r"Attained by $s=\frac12(w_1+w_2)$, where both errors are half the distance (the other by"
            r" exchanging"
            r" $w_1$ and $w_2$).",
            (_attained(Rational(1, 2)),),
        ),
    )


CLAIM = Claim(
    id="gate.causal",
    title="A causal gate pays at least half the distance between the states two continuations want",
    statement=(
        r"Two continuations with the same prefix get the same gates on it, hence the same state $s$. If they"
        r" want the"
        r" states $w_1$ and $w_2$, then $\max_i\|s-w_i\|\ge\frac12\|w_1-w_2\|$, with equality at the middle."
    ),
    source="article A, section 3",
    status=Status.AS_PRINTED,
    scope="states of every dimension n ≥ 1, Euclidean or Frobenius norm",
    variables=(
        Variable("s", r"the state both continuations find, $\mathbb{R}^n$"),
        Variable("w_1, w_2", r"the states they want, $\mathbb{R}^n$"),
    ),
    assumptions=(Assumption("the gates are functions of the prefix only (causal, deterministic)"),),
    asked="KS",
    parts=parts,
    mutants=(
        Mutant("half", "the mean at least half the squared distance", lambda: (_mean(Rational(1, 2)),)),
        Mutant("not the middle", "a state at w₂", lambda: (_attained(Integer(0)),)),
        Mutant("more than half", "the larger error claimed above half", lambda: (_largest("0.26"),)),
    ),
    remark="The bound is attained only if the gates can reach the middle; what is shown holds for any gates.",
)

"""A first-order expansion of softmax leaves the hull of the values once a logit exceeds 1.

Two tokens with logits (x, −x) and values (1, −1): the exact output is tanh x, the expanded weights ½(1 ± x)
give x. The difference x − tanh x has the derivative tanh²x, and x³/3 − x + tanh x has (x − tanh x)(x + tanh
x).
"""

from typing import Any

from sympy import Expr, Rational, Symbol, exp, symbols

from verify.derive import Chain, Definition, Setting
from verify.derive.tree import tree
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

x = Symbol("x")
up, down, th = symbols("p_1 p_2 h")
tanh = (exp(x) - exp(-x)) / (exp(x) + exp(-x))
weights = (
    Definition("first weight", up, exp(x) / (exp(x) + exp(-x))),
    Definition("second weight", down, exp(-x) / (exp(x) + exp(-x))),
)
name = Definition("name", th, tanh)


def _exact() -> Obligation:
    chain = Chain("the exact output", Setting(weights), up * 1 + down * (-1))
    return chain.unfold("the two weights", tanh, "first weight", "second weight").obligation()


def _expanded(sign: int) -> Obligation:
    half = Rational(1, 2)
    first = (Definition("first", up, half * (1 + x)), Definition("second", down, half * (1 + sign * x)))
    chain = Chain("the expanded output", Setting(first), up - down)
    return chain.unfold("the expanded weights", x, "first", "second").obligation()


def _first_order() -> Obligation:
    """The derivative of the first weight; at x = 0 it is 2·½·½ = ½."""
    chain = Chain("slope of the first weight", Setting(weights), weights[0].rhs)
    slope = 2 * weights[0].rhs * weights[1].rhs
    return chain.differentiate("quotient rule", slope, x).obligation()


def _slope(title: str, function: Expr, slope: Expr) -> Obligation:
    chain = Chain(title, Setting((name,)), function)
    plain = slope.subs(th, tanh)
    chain = chain.differentiate("term by term", plain, x)
    return chain.unfold("name tanh x", slope, "name").obligation()


def _hull(limit: str) -> Obligation:
    text = f"""(set-logic QF_LRA)
(declare-const x Real)
(assert (not (= (or (< (* 0.5 (+ 1.0 x)) 0.0) (< (* 0.5 (- 1.0 x)) 0.0)) (or (> x {limit}) (< x (-
{limit})))))) (check-sat)
"""
    label = "an expanded weight is negative exactly when |x| exceeds the limit"
    return Obligation("smt", label, "S", {"smtlib": text, "expect": "unsat", "logic": "QF_LRA"})


def _value(above: str, below: str) -> Obligation:
    data: dict[str, Any] = {"term": tree(tanh), "values": {"x": "2"}, "above": above, "below": below}
    return Obligation("inequality", "tanh 2", "B", data)


def parts() -> tuple[Part, ...]:
    """Both outputs, the hull, and the size of the error."""
    return (
        Part(
            r"Logits $(x,-x)$ and values $(1,-1)$: softmax gives $\tanh x$; the weights to first order at"
            r" $x=0$,"
            r" $\frac12(1\pm x)$, give $x$ (the slope of the first weight is $2p_1p_2$, at $0$ equal to"
            r" $\frac12$).",
            (_exact(), _first_order(), _expanded(-1)),
        ),
        Part(
            r"The expanded weights leave $[0,1]$, and the output the hull $[-1,1]$, exactly when $|x|>1$; at"
            r" $x=2$ they"
            r" are $3/2$ and $-1/2$, and the output is $2$ against $\tanh2=0.964\dots$",
            (_hull("1.0"), _value("964/1000", "965/1000")),
        ),
        Part(
            r"$0\le x-\tanh x\le x^3/3$ for $x\ge0$: both differences vanish at $0$, their derivatives are"
            r" $\tanh^2x$ and"
            r" $(x-\tanh x)(x+\tanh x)$, at least $0$ for $x\ge0$ (the second by the first).",
            (
                _slope("slope of x − tanh x", x - tanh, th**2),
                _slope("slope of x³/3 − x + tanh x", x**3 / 3 - x + tanh, (x - th) * (x + th)),
            ),
        ),
    )


CLAIM = Claim(
    id="expansion.leaves-hull",
    title="A first-order expansion of softmax leaves the hull of the values once a logit exceeds 1",
    statement=(
        r"For logits $(x,-x)$ and values $(1,-1)$ softmax attention gives $\tanh x$ and its first-order"
        r" expansion at"
        r" $x=0$ gives $x$, with weights $\frac12(1\pm x)$: $3/2$ and $-1/2$ at $x=2$. For $x\ge0$,"
        r" $0\le x-\tanh x\le x^3/3$; the hull is left exactly when $|x|>1$."
    ),
    source="article A, section 3",
    status=Status.AS_PRINTED,
    scope="all real x (the error bound for x ≥ 0; both sides are odd)",
    variables=(Variable("x", r"half the difference of the two logits, $\mathbb{R}$"),),
    assumptions=(
        Assumption(
            "mean value theorem: a function that vanishes at 0 and has a derivative ≥ 0 for x ≥ 0 is ≥ 0"
            " there",
            cited=True,
        ),
    ),
    asked="KB",
    parts=parts,
    mutants=(
        Mutant("weights", "both expanded weights equal", lambda: (_expanded(1),)),
        Mutant("slope", "x − tanh x with the slope tanh x", lambda: (_slope("mutant", x - tanh, th),)),
        Mutant("limit", "the hull left only beyond 2", lambda: (_hull("2.0"),)),
        Mutant("value", "tanh 2 above 0.965", lambda: (_value("965/1000", "1"),)),
    ),
    remark="The weights still sum to 1: a normalised expansion is not a mean.",
)

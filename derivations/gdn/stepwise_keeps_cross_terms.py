"""Expanding each self weight keeps products of first-order terms that the full expansion drops.

Three tokens, scores ε·s_j. The stepwise weights are the survival product of gdn.survival-product with every
self weight to first order. Against the exact weight both expansions agree in value and slope at ε = 0 and
differ from it, and from each other, in the curvature: both errors are of second order.
"""

from typing import Any

from sympy import Expr, Integer, Rational, exp, symbols

from derivations.gdn._bounds import bounded
from verify.derive import Chain, Definition, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

scale = symbols("epsilon")
scores = symbols("s_1 s_2 s_3")
first, second, third = scores
mean = (first + second + third) / 3
delta_2, delta_3 = (second - first) / 2, third - mean
cross = delta_2 * delta_3
equal = Definition("equal logits", scale, Integer(0))
POWERS = [exp(scale * score) for score in scores]
TOTAL = POWERS[0] + POWERS[1] + POWERS[2]
MIXED = first * POWERS[0] + second * POWERS[1] + third * POWERS[2]
SQUARED = first**2 * POWERS[0] + second**2 * POWERS[1] + third**2 * POWERS[2]
spread = (first**2 + second**2 + third**2) / 3 - mean**2


def _share(time: int, delta: Expr | int) -> Expr:
    return (1 + scale * delta) / time


def _stepwise(token: int) -> Expr:
    """a_j times the survival through the later tokens, every a_i to first order; a_1 = 1."""
    shares = (Integer(1), _share(2, delta_2), _share(3, delta_3))
    weight = shares[token - 1]
    for later in shares[token:]:
        weight = weight * (1 - later)
    return weight


def _full(token: int) -> Expr:
    return (1 + scale * (scores[token - 1] - mean)) / 3


def _kept(token: int, after: Expr) -> Obligation:
    chain = Chain(f"token {token}: stepwise minus full", Setting(), _stepwise(token) - _full(token))
    return chain.rearrange("constant and linear terms cancel", after).obligation()


def _slope(token: int) -> Expr:
    score, power = scores[token - 1], POWERS[token - 1]
    return power * (score / TOTAL - MIXED / TOTAL**2)


def _curvature(token: int) -> Expr:
    score, power = scores[token - 1], POWERS[token - 1]
    drift = -SQUARED / TOTAL**2 + 2 * MIXED**2 / TOTAL**3
    return power * (score**2 / TOTAL - 2 * score * MIXED / TOTAL**2 + drift)


def _derivatives(token: int) -> Obligation:
    chain = Chain(
        f"token {token}: the exact weight twice differentiated", Setting(), POWERS[token - 1] / TOTAL
    )
    chain = chain.differentiate("its slope", _slope(token), scale)
    return chain.differentiate("its curvature", _curvature(token), scale).obligation()


def _at_zero(title: str, before: Expr, after: Expr | int) -> Obligation:
    chain = Chain(title, Setting((equal,)), before)
    return chain.unfold("every exponential is 1", Integer(0) + after, "equal logits").obligation()


def _expansion(token: int, curvature: Expr) -> tuple[Obligation, ...]:
    deviation = scores[token - 1] - mean
    return (
        _derivatives(token),
        _at_zero(f"token {token}: value", POWERS[token - 1] / TOTAL, Rational(1, 3)),
        _at_zero(f"token {token}: slope", _slope(token), deviation / 3),
        _at_zero(f"token {token}: curvature", _curvature(token), curvature),
    )


def _differentiated_expansions() -> tuple[Obligation, ...]:
    """Slope and curvature of both expansions; the cross terms carry all of the curvature."""
    found = []
    for token, sign in ((1, 1), (2, -1), (3, 0)):
        for name, weight, second_order in (
            ("full", _full(token), Integer(0)),
            ("stepwise", _stepwise(token), sign * cross / 3),
        ):
            slope = (scores[token - 1] - mean) / 3 + scale * second_order
            chain = Chain(f"token {token}: the {name} weight twice differentiated", Setting(), weight)
            chain = chain.differentiate("its slope", slope, scale)
            found.append(chain.differentiate("its curvature", second_order, scale).obligation())
    return tuple(found)


def _compared(values: tuple[int, int, int], size: str, *, better: bool) -> Obligation:
    """Squared error of the full expansion minus that of the stepwise one, first token."""
    exact = POWERS[0] / TOTAL
    term = (exact - _full(1)) ** 2 - (exact - _stepwise(1)) ** 2
    given: dict[Any, Any] = {scale: size, **dict(zip(scores, values, strict=True))}
    side = {"above": "0"} if better else {"below": "0"}
    word = "stepwise is closer" if better else "full is closer"
    return bounded(f"first token, scores {values} times {size}: {word}", term, given, **side)


def parts() -> tuple[Part, ...]:
    """The cross terms, the exact weight, the order of both errors, and who is closer."""
    return (
        Part(
            r"At $t=3$ with $\delta_i=s_i-\tfrac1i\sum_{j\le i}s_j$ the stepwise weights minus the full ones"
            r" are $\tfrac{\varepsilon^2}6\delta_2\delta_3$, $-\tfrac{\varepsilon^2}6\delta_2\delta_3$ and"
            r" $0$ for tokens 1, 2, 3: exactly the product of first-order terms, and their sum stays 1.",
            tuple(_kept(token, sign * scale**2 * cross / 6) for token, sign in ((1, 1), (2, -1), (3, 0))),
        ),
        Part(
            r"The exact weight of token $j$ has at $\varepsilon=0$ the value $\tfrac13$, the slope"
            r" $\tfrac13(s_j-\bar s)$ and the curvature $\tfrac13((s_j-\bar s)^2-\mathrm{var}(s))$.",
            tuple(
                item
                for token in (1, 2, 3)
                for item in _expansion(token, ((scores[token - 1] - mean) ** 2 - spread) / 3)
            ),
        ),
        Part(
            r"Both expansions have that value and slope; their curvatures are $0$ (full) and"
            r" $\tfrac13\delta_2\delta_3,\,-\tfrac13\delta_2\delta_3,\,0$ (stepwise). So both errors are of"
            r" second order, with coefficients that differ by $\tfrac16\delta_2\delta_3$.",
            _differentiated_expansions(),
        ),
        Part(
            r"What is kept can help or hurt: with scores $\tfrac14(0,1,2)$ the stepwise weight of the first"
            r" token is closer to the exact one, with $\tfrac1{16}(2,1,-3)$ the full one is.",
            (_compared((0, 1, 2), "1/4", better=True), _compared((2, 1, -3), "1/16", better=False)),
        ),
    )


CLAIM = Claim(
    id="gdn.stepwise-keeps-cross-terms",
    title="Expanding each self weight keeps products of first-order terms that the full expansion drops",
    statement=(
        r"With scores $\varepsilon s_j$ and every self weight to first order,"
        r" $a_i\approx\tfrac1i(1+\varepsilon\delta_i)$, the survival product keeps products of first-order"
        r" terms. At $t=3$ the weights are those of the full expansion plus"
        r" $\tfrac{\varepsilon^2}6\delta_2\delta_3(1,-1,0)$; both expansions have the exact weight's value"
        r" and slope at $\varepsilon=0$, and both errors are of second order."
    ),
    source="article A, section 2",
    status=Status.AS_PRINTED,
    scope="t = 3, all real scores",
    variables=(
        Variable(r"\varepsilon", r"scale of the scores, $\mathbb{R}$"),
        Variable("s_1,s_2,s_3", r"scores, $\mathbb{R}$"),
        Variable(r"\delta_i", r"score of token $i$ minus the mean over $j\le i$"),
    ),
    assumptions=(Assumption("one query, so that all self weights share its scores"),),
    asked="C",
    parts=parts,
    mutants=(
        Mutant("nothing kept", "the two expansions claimed equal", lambda: (_kept(1, Integer(0)),)),
        Mutant("sign flipped", "the cross term of token 2 with +", lambda: (_kept(2, scale**2 * cross / 6),)),
        Mutant(
            "variance forgotten",
            "the exact curvature without the variance",
            lambda: _expansion(1, (first - mean) ** 2 / 3),
        ),
        Mutant(
            "always better",
            "stepwise claimed closer where it is not",
            lambda: (_compared((2, 1, -3), "1/16", better=True),),
        ),
    ),
    remark=(
        "Keeping second-order terms is not the same as having the right ones: the exact curvature also has"
        " squares. How this averages out is measured in gdn.is-it-better."
    ),
)

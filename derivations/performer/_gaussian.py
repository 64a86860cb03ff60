"""What the claims share: squared norms by coordinate, and two expectations under the normal law, derived.

The generating function by completing the square and shifting. The characteristic function, where the shift
would be imaginary, by M'(t) = μt‖z‖²M(t) for M(t) = E e^{λt w·z} with λ² = μ: the identities hold for every
constant λ; λ = i is the one used.
"""

from typing import Any

from sympy import Expr, IndexedBase, Integer, Sum, exp, symbols

from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.model.claim import Assumption, Variable
from verify.model.evidence import Obligation, Part

b, c, d, m, t = symbols("b c d m t")
q, k, w, z, first = (IndexedBase(name) for name in ("q", "k", "w", "z", "E"))
mass, unit, square, mean, slope, factor, factor_slope = symbols("C lambda mu M Mdot F Fdot")
SIZES: tuple[dict[Any, int], ...] = ({d: 1}, {d: 3})


def coordinates(summand: Expr) -> Sum:
    """Σ over the d coordinates."""
    return Sum(summand, (c, 1, d))


own = coordinates(q[c] ** 2) + coordinates(k[c] ** 2)
"""‖q‖² + ‖k‖²."""
together = coordinates((q[c] + k[c]) ** 2)
"""‖q + k‖²."""
apart = coordinates((q[c] - k[c]) ** 2)
"""‖q − k‖²."""
product = coordinates(q[c] * k[c])
"""q·k."""

DENSITY = Assumption(
    r"$N(0,I_d)$ has the density $Ce^{-\|w\|^2/2}$ on $\mathbb R^d$; $C$ is what makes its total mass 1"
)
TRANSLATION = Assumption("an integral over the whole space is linear and does not change under translation")
CALCULUS = Assumption(
    r"for the cosine: $e^{ix}=\cos x+i\sin x$; the integral over $\mathbb R$"
    r" of the derivative of a function that vanishes at both ends is 0; derivatives in $t$ may be taken"
    r" inside the integral (the integrands are dominated by $(1+\|w\|)^2$ times the density)"
)
VARIABLES = (
    Variable("q, k", r"\mathbb{R}^d"),
    Variable("d, m", "width and number of features, integers ≥ 1"),
    Variable("w_i", "independent, $N(0,I_d)$"),
)


squared = coordinates(z[c] ** 2)
"""‖z‖²."""
reading = coordinates(w[c] * z[c])
"""w·z."""
density = mass * exp(-coordinates(w[c] ** 2) / 2)


def shifted(norms: Expr = squared / 2) -> Obligation:
    """The density times e^{w·z} is a constant times the density around z."""
    setting = Setting(nonempty=(d,), instances=SIZES)
    chain = Chain("density times exp w·z", setting, density * exp(reading))
    moved = mass * exp(-coordinates((w[c] - z[c]) ** 2) / 2)
    return chain.rearrange("complete the square", exp(norms) * moved).obligation()


def _by_parts() -> Obligation:
    """What integrates to 0: E w_b e^{λt w·z} = λt z_b E e^{λt w·z}."""
    at = tuple({**sizes, b: 1} for sizes in SIZES)
    setting = Setting(order=((1, b), (b, d)), nonempty=(d,), instances=at)
    chain = Chain("density times exp λt w·z", setting, density * exp(unit * t * reading))
    after = (unit * t * z[b] - w[b]) * density * exp(unit * t * reading)
    return chain.differentiate("both exponents", after, w[b]).obligation()


def _inside() -> Obligation:
    """What stands under the integral of M'(t)."""
    setting = Setting(nonempty=(d,), instances=SIZES)
    chain = Chain("exp λt w·z as time goes on", setting, exp(unit * t * reading))
    after = unit * reading * exp(unit * t * reading)
    return chain.differentiate("chain rule", after, t).obligation()


def _growth(after: Expr) -> Obligation:
    parts = Definition("by parts", first[c], unit * t * z[c] * mean, (c,))
    setting = Setting((parts,), (Hypothesis("square", unit**2, square),), nonempty=(d,), instances=SIZES)
    chain = Chain("the derivative of M", setting, unit * coordinates(z[c] * first[c]))
    chain = chain.unfold("by parts", unit**2 * t * squared * mean, "by parts")
    return chain.use("λ² = μ", after, square=t * squared * mean).obligation()


def _constant() -> tuple[Obligation, Obligation]:
    """M(t)e^{−μt²‖z‖²/2} does not change."""
    setting = Setting(nonempty=(d,), instances=SIZES)
    damping = exp(-square * t**2 * squared / 2)
    chain = Chain("the damping factor", setting, damping)
    damped = chain.differentiate("chain rule", -square * t * squared * damping, t).obligation()
    definitions = (
        Definition("M′", slope, square * t * squared * mean),
        Definition("F′", factor_slope, -square * t * squared * factor),
    )
    setting = Setting(definitions, nonempty=(d,), instances=SIZES)
    chain = Chain("the derivative of M·F", setting, slope * factor + mean * factor_slope)
    return damped, chain.unfold("the two cancel", Integer(0), "M′", "F′").obligation()


def imaginary(after: Expr) -> Obligation:
    """From the constant product to the expectation, with μ = −1."""
    minus = Definition("imaginary", square, Integer(-1))
    setting = Setting((minus,), nonempty=(d,), instances=SIZES)
    chain = Chain("M(1) = M(0)/F(1) with M(0) = 1", setting, exp(-square * squared / 2) ** -1)
    return chain.unfold("λ = i", after, "imaginary").obligation()


def generating_function() -> Part:
    """The generating function."""
    return Part(
        r"$\mathbb E\,e^{w\cdot z}=e^{\|z\|^2/2}$ for $w\sim N(0,I_d)$:"
        r" $e^{w\cdot z}Ce^{-\|w\|^2/2}=e^{\|z\|^2/2}\,Ce^{-\|w-z\|^2/2}$, and the density around $z$ has"
        r" total mass 1.",
        (shifted(),),
    )


def characteristic_function() -> Part:
    """The characteristic function."""
    return Part(
        r"$\mathbb E\cos(w\cdot z)=e^{-\|z\|^2/2}$: for $M(t)=\mathbb E\,e^{\lambda tw\cdot z}$,"
        r" $\lambda=i$, integrating by parts gives $\mathbb E\,w_ce^{\lambda tw\cdot z}=\lambda tz_cM$, so"
        r" $M'=\lambda\sum_cz_c\,\mathbb E\,w_ce^{\lambda tw\cdot z}=-t\|z\|^2M$ and"
        r" $Me^{t^2\|z\|^2/2}$ keeps its value at $t=0$, the total mass 1; at $t=1$ take real parts.",
        (
            _by_parts(),
            _inside(),
            _growth(square * t * squared * mean),
            *_constant(),
            imaginary(exp(-squared / 2)),
        ),
    )

"""Long memory leaves a stored decay few bits, and a stored gate all of them.

To keep a share p over L steps takes α ≥ p^{1/L}, and 1 − p^{1/L} ≤ −ln p/L since 1 − y ≤ −ln y. Near 1 the
numbers of float32 are 2⁻²⁴ apart below 1, so 1 − α is known in those steps only. The gate g = ln α is a
small number, and floats are as dense there as anywhere, relative to their size.
"""

from typing import Any

from sympy import Expr, Integer, Rational, Symbol, exp, log

from verify.derive import Chain, Minimum, Setting
from verify.derive.tree import tree
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

x, y, z = (Symbol(name) for name in ("x", "y", "z"))
share, steps = Symbol("p"), Symbol("L")
sigmoid = 1 / (1 + exp(-z))


def _bounds(label: str, term: Expr, value: str, above: str, below: str, printed: str = "") -> Obligation:
    data: dict[str, Any] = {"term": tree(term), "values": {"x": value}, "above": above, "below": below}
    data |= {"printed": printed} if printed else {}
    return Obligation("inequality", label, "B", data)


def _tangent(point: int) -> Obligation:
    function = y - 1 - log(y)
    title = "1 − y is at most −ln y"
    return Minimum(title, y, function, Integer(point), function.subs(y, point), 1 / y).obligation()


def _kept(exponent: Expr) -> Obligation:
    setting = Setting(positive=(share, steps))
    chain = Chain(
        "what L steps at the decay p^{1/L} leave", setting, exp(steps * (log(share) * exponent / steps))
    )
    return chain.rearrange("L·ln p/L = ln p", share).obligation()


def _sigmoid_slope(after: Expr) -> Obligation:
    chain = Chain("slope of the sigmoid", Setting(), sigmoid)
    return chain.differentiate("quotient rule", after, z).obligation()


def _bits_of_decay(above: str, below: str) -> Obligation:
    """log₂ of (1 − p^{1/L})/2⁻²⁴ at p = 1 %, L = 10⁶; x = 1/L."""
    missing = 1 - exp(-log(Integer(100)) * x)
    term = log(missing * 2**24) / log(Integer(2))
    return _bounds("bits of 1 − α in float32", term, "1/1000000", above, below, "≈ 6.2")


GATE = Rational(-10126876, 2**41)
"""A float32 number: 24 significant bits, about −4.6052·10⁻⁶."""


def _bits_of_gate(above: str, below: str) -> Obligation:
    """log₂ of |g| over the distance 2⁻⁴¹ to its neighbours, for g next to ln 0.01/10⁶."""
    term = log(-GATE * x) / log(Integer(2))
    return _bounds("bits of g in float32", term, str(2**41), above, below)


def _significand() -> Obligation:
    """|g|·2⁴¹ is an integer of 24 bits, so g is a float32 number and its neighbours are 2⁻⁴¹ away."""
    data: dict[str, Any] = {"term": tree(-GATE * x), "values": {"x": str(2**41)}}
    data |= {"above": str(2**23 - 1), "below": str(2**24)}
    return Obligation("inequality", "the significand of g has 24 bits", "E", data)


def parts() -> tuple[Part, ...]:
    """The least decay, its distance from 1, the sigmoid there, and the bits of both ways to store it."""
    return (
        Part(
            r"Keeping a share $p$ over $L$ steps takes $\alpha\ge p^{1/L}$, and $1-p^{1/L}\le-\ln p/L$ (from"
            r" $1-y\le-\ln y$ at $y=p^{1/L}$); at $p=1\%$ that is $4.605\dots/L$.",
            (
                _kept(Integer(1)),
                _tangent(1),
                _bounds("−ln 0.01", log(Integer(100)) * x, "1", "4605/1000", "4606/1000", "≤ 4.606"),
            ),
        ),
        Part(
            r"The sigmoid's slope is $\alpha(1-\alpha)$, so there at most $4.606/L$.",
            (_sigmoid_slope(sigmoid * (1 - sigmoid)),),
        ),
        Part(
            r"Stored as $\alpha$ in float32, whose numbers below 1 are $2^{-24}$ apart, $1-\alpha$ has"
            r" $\log_2((1-\alpha)/2^{-24})=6.27\dots$ bits at $L=10^6$.",
            (_bits_of_decay("627/100", "628/100"),),
        ),
        Part(
            r"Stored as $g=\ln\alpha$ in float32 nothing is lost: $g=-10126876\cdot2^{-41}$ is next to"
            r" $\ln0.01/10^6$, a"
            r" distance of less than $2^{-42}$ away, and its neighbours are $2^{-41}$ apart: more than 23"
            r" bits below"
            r" its leading one.",
            (
                _bounds(
                    "the float32 next to ln 0.01/10⁶",
                    (GATE + log(Integer(100)) * x) * 2**42,
                    "1/1000000",
                    "-1",
                    "1",
                ),
                _significand(),
                _bits_of_gate("23", "24"),
            ),
        ),
        Part(
            r"In float32 about six bits of such a decay are left, however it is stored (printed as one"
            r" number).",
            (_bits_of_gate("23", "24"),),
            refutes=True,
        ),
    )


CLAIM = Claim(
    id="kda.decay-wall",
    title="Long memory leaves a stored decay few bits, and a stored gate all of them",
    statement=(
        r"Keeping a share $p$ over $L$ steps takes $\alpha\ge p^{1/L}$, so $1-\alpha\le-\ln p/L$: $4.606/L$"
        r" at one per"
        r" cent, where the sigmoid's slope $\alpha(1-\alpha)$ is as small. Stored as $\alpha$ in float32,"
        r" $1-\alpha$ has"
        r" $\log_2((1-\alpha)/2^{-24})$ bits, $6.27\dots$ at $L=10^6$; stored as $g=\ln\alpha$ all 24 remain."
    ),
    source="article B, section 3",
    status=Status.CORRECTED,
    scope="all p in (0, 1), L > 0; the figures at p = 1 % and L = 10⁶ in float32",
    variables=(
        Variable("p", "share to keep, $(0,1)$"),
        Variable("L", "number of steps, > 0"),
        Variable(r"\alpha", "decay of one step, $(0,1]$; $g=\\ln\\alpha$"),
        Variable("z", "argument of the sigmoid, real"),
    ),
    assumptions=(
        Assumption("a constant decay over the L steps; a varying one has a step at least as close to 1"),
    ),
    asked="BE",
    parts=parts,
    mutants=(
        Mutant("twice the power", "p² claimed to be left", lambda: (_kept(Integer(2)),)),
        Mutant("tangent", "the tangent taken at 2", lambda: (_tangent(2),)),
        Mutant("slope", "the sigmoid's slope as σ", lambda: (_sigmoid_slope(sigmoid),)),
        Mutant("seven bits", "more than 7 bits of 1 − α", lambda: (_bits_of_decay("7", "8"),)),
        Mutant("six bits of g", "fewer than 7 bits of g", lambda: (_bits_of_gate("6", "7"),)),
    ),
    remark="Both numbers are right for what they count; which one applies is a choice of the implementation.",
)

"""Which chunk sizes keep the decay factors inside the range of the format.

A tile anchored at one row holds factors e^{|g|·span}, span being the number of steps to the farthest row.
The exact ranges are those of bfloat16 and float32, both with exponents up to 127; a factor written as the
exponential of a difference that is never positive is at most 1.
"""

from typing import Any

from sympy import Expr, Integer, Rational, Symbol, exp, log

from verify.derive import Chain, Definition, Minimum, Setting
from verify.derive.tree import tree
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

x, y, gap, distance = (Symbol(name) for name in ("x", "y", "r", "d"))
LARGEST_BF16 = Integer(255) * Integer(2) ** 120
LARGEST_FP32 = Integer(2**24 - 1) * Integer(2) ** 104
OVERFLOW = Integer(2) ** 128
SMALLEST_NORMAL = Rational(1, 2**126)
SMALLEST = Rational(1, 2**149)


def _factor(label: str, exponent: str, above: Expr | None = None, below: Expr | None = None) -> Obligation:
    """e^exponent against a bound."""
    data: dict[str, Any] = {"term": tree(exp(x)), "values": {"x": exponent}}
    data |= {side: str(bound) for side, bound in (("above", above), ("below", below)) if bound is not None}
    return Obligation("inequality", label, "B", data)


def _limit(span: int, above: str, below: str, printed: str = "") -> Obligation:
    """The per-step limit 128·ln 2/span."""
    data: dict[str, Any] = {"term": tree(128 * log(Integer(2)) * x), "values": {"x": f"1/{span}"}}
    data |= {"above": above, "below": below, **({"printed": printed} if printed else {})}
    return Obligation("inequality", f"128·ln 2/{span}", "B", data)


def _largest(number: Expr, unit: Expr, label: str) -> Obligation:
    """The number after the largest one, a unit further, is 2¹²⁸: nothing lies between."""
    data: dict[str, Any] = {"term": tree(number * x), "values": {"x": "1"}}
    data |= {"above": str(OVERFLOW - 2 * unit), "below": str(OVERFLOW)}
    return Obligation("inequality", label, "E", data)


def _tangent(point: int) -> Obligation:
    function = y - 1 - log(y)
    title = "ln y is at most y − 1"
    return Minimum(title, y, function, Integer(point), function.subs(y, point), 1 / y).obligation()


def _never_above_one() -> Obligation:
    """With r = e^d − 1 − d ≥ 0 and d ≥ 0: 1 = e^{−d} + e^{−d}(r + d) ≥ e^{−d}."""
    rest = Definition("tangent", gap, exp(distance) - 1 - distance)
    setting = Setting((rest,), nonnegative=(gap, distance))
    chain = Chain("one", setting, Integer(1))
    spare = exp(-distance) * (gap + distance)
    chain = chain.unfold("split e^d", exp(-distance) + spare, "tangent")
    return chain.drop("what is left over is not negative", exp(-distance), spare).obligation()


def parts() -> tuple[Part, ...]:
    """The printed sizes, the limits per step, and the form that needs none."""
    return (
        Part(
            r"With $g\ge-5$ and chunks of 16 a factor is at most $e^{80}$, below the largest number of"
            r" bfloat16 and of"
            r" float32, and at least $e^{-80}$, above the smallest normal number $2^{-126}$.",
            (
                _largest(
                    LARGEST_BF16,
                    Integer(2) ** 120,
                    "bfloat16's largest number is less than 2 units below 2¹²⁸",
                ),
                _largest(
                    LARGEST_FP32,
                    Integer(2) ** 104,
                    "float32's largest number is less than 2 units below 2¹²⁸",
                ),
                _factor("e⁸⁰ against the largest bfloat16", "80", below=LARGEST_BF16),
                _factor("e⁸⁰ against the largest float32", "80", below=LARGEST_FP32),
                _factor("e⁻⁸⁰ against the smallest normal number", "-80", above=SMALLEST_NORMAL),
            ),
        ),
        Part(
            r"Chunks of 32 reach $e^{160}$, beyond $2^{128}$ and so beyond both formats, and $e^{-160}$,"
            r" below half of"
            r" float32's smallest positive number $2^{-149}$, so it becomes 0.",
            (
                _factor("e¹⁶⁰ against 2¹²⁸", "160", above=OVERFLOW),
                _factor("e⁻¹⁶⁰ against half of 2⁻¹⁴⁹", "-160", below=SMALLEST / 2),
            ),
        ),
        Part(
            r"In general a factor $e^{|g|\cdot\mathrm{span}}$ reaches $2^{128}$ at"
            r" $|g|=128\ln2/\mathrm{span}$:"
            r" $5.9148\dots$ for span 15 (16 rows, anchored at the first) and $11.0903\dots$ for span 8"
            r" (anchored in the"
            r" middle).",
            (
                _limit(15, "59148/10000", "59149/10000", "5.915"),
                _limit(8, "110903/10000", "110904/10000", "11.09"),
            ),
        ),
        Part(
            r"At $|g|=5.914$ (span 15) and $11.089$ (span 8) the factors stay below both largest numbers; at"
            r" $5.915$ and $11.091$ they exceed $2^{128}$.",
            (
                _factor("span 15 at 5.914", "8871/100", below=LARGEST_BF16),
                _factor("span 8 at 11.089", "11089/125", below=LARGEST_BF16),
                _factor("span 15 at 5.914, float32", "8871/100", below=LARGEST_FP32),
                _factor("span 8 at 11.089, float32", "11089/125", below=LARGEST_FP32),
                _factor("span 15 at 5.915", "3549/40", above=OVERFLOW),
                _factor("span 8 at 11.091", "11091/125", above=OVERFLOW),
            ),
        ),
        Part(
            r"The rounded limit $|g|=5.915$ per step at span 15 is safe (printed).",
            (_factor("span 15 at the printed limit", "3549/40", above=OVERFLOW),),
            refutes=True,
        ),
        Part(
            r"A factor formed as $e^{-d}$ with a difference $d\ge0$ of cumulated gates is at most 1 at every"
            r" chunk size:"
            r" $e^d\ge1+d$ (from $\ln y\le y-1$ at $y=e^d$).",
            (_tangent(1), _never_above_one()),
        ),
    )


CLAIM = Claim(
    id="kda.chunk-range",
    title="Which chunk sizes keep the decay factors inside the range of the format",
    statement=(
        r"With the gate's lower bound $-5$ and chunks of 16 the largest factor $e^{80}$ is below the largest"
        r" number of"
        r" bfloat16 and of float32 and $e^{-80}$ is normal; chunks of 32 overflow both. A tile whose"
        r" farthest row is"
        r" span steps from its anchor overflows once $|g|\,\mathrm{span}\log_2e\ge128$: per step"
        r" $5.9148\dots$ for 16"
        r" rows anchored at the first, $11.0903\dots$ anchored in the middle, so the rounded"
        r" $5.915$ overflows. An exponent formed as a"
        r" difference that"
        r" is never positive does not overflow at any size."
    ),
    source="article B, section 3",
    status=Status.CORRECTED,
    scope="bfloat16 and float32 (IEEE exponent range), gates as natural logarithms; the last part for every"
    " size",
    variables=(
        Variable("g", "the gate of one step, a natural logarithm ≤ 0"),
        Variable(r"\mathrm{span}", "number of steps from the anchor to the farthest row"),
        Variable("d", "a difference of cumulated gates, ≥ 0"),
    ),
    assumptions=(
        Assumption("the exponent is exact; rounding it moves the factor by its relative error"),
        Assumption("largest numbers (2 − 2⁻⁷)·2¹²⁷ and (2 − 2⁻²³)·2¹²⁷, smallest normal 2⁻¹²⁶"),
    ),
    asked="BE",
    parts=parts,
    mutants=(
        Mutant(
            "limit rounded up",
            "|g| = 5.915 claimed safe at span 15",
            lambda: (_factor("mutant", "3549/40", below=LARGEST_FP32),),
        ),
        Mutant(
            "wrong anchor", "the limit of span 16 claimed for 15", lambda: (_limit(16, "59148/10000", "6"),)
        ),
        Mutant("tangent", "the tangent taken at 2", lambda: (_tangent(2),)),
        Mutant(
            "half a chunk",
            "chunks of 16 claimed to overflow",
            lambda: (_factor("mutant", "80", above=OVERFLOW),),
        ),
    ),
    remark=(
        "log₂ below 128 is not quite enough: between the largest number plus half a unit and 2¹²⁸ a factor"
        " still"
        " rounds to infinity, in bfloat16 from 127.9972 on."
    ),
)

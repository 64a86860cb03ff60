"""Memory figures of article B: state per token, bits of a selection, cache against state.

96 states of 128 by 128 over 2²⁰ tokens, the bits it takes to name 1024 of 262144 tokens, and the length from
which a cache of 2Td numbers outgrows a state of d². The two averages the article prints come without their
parameters in the stored copy; here their ratio is checked, as far as three decimals of each determine it.
"""

from math import gcd

from sympy import Integer, Rational, symbols

from verify.derive import Chain, Definition, Setting
from verify.derive.tree import Tree
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

T, d = symbols("T d")
TOKENS, KEPT = 2**18, 2**10
LARGEST, SMALLEST = ("299517/2000", "129967/2000"), ("299515/2000", "129969/2000")
"""Averages that round to 149.758 and 64.984, for the largest and the smallest ratio."""


def _per_token(result: Rational) -> Obligation:
    states, width = symbols("h d")
    setting = Setting((Definition("states", states, Integer(96)), Definition("width", width, Integer(128))))
    chain = Chain("state numbers per token and layer", setting, states * width**2 / Integer(2) ** 20)
    return chain.unfold("96 states of 128 by 128", result, "states", "width").obligation()


def _size(above: str, below: str) -> Obligation:
    """The same number as the article prints it."""
    term = ["*", ["q", "96"], ["^", ["q", "128"], 2], ["q", f"1/{2**20}"]]
    data = {"term": term, "values": {}, "above": above, "below": below, "printed": "1.5"}
    return Obligation("inequality", "state numbers per token and layer", "E", data)


def _choices() -> Tree:
    """binom(262144, 1024) as a product of 1024 fractions, one by one."""
    factors = []
    for i in range(KEPT):
        top, bottom = TOKENS - i, i + 1
        shared = gcd(top, bottom)
        factors.append(
            ["q", f"{top // shared}/{bottom // shared}" if bottom != shared else str(top // shared)]
        )
    return ["*", *factors]


def _bits(above: str, below: str) -> Obligation:
    """Bits to name 1024 of 262144 tokens."""
    term = ["*", ["log", _choices()], ["^", ["log", ["q", "2"]], -1]]
    data = {"term": term, "values": {}, "above": above, "below": below, "printed": "9660.1"}
    return Obligation("inequality", f"bits of binom({TOKENS}, {KEPT})", "B", data)


def _ratio(which: str, first: str, second: str, above: str, below: str) -> Obligation:
    """A ratio of averages at an end of what the printed ones round from."""
    term = ["*", ["q", first], ["^", ["q", second], -1]]
    data = {"term": term, "values": {}, "above": above, "below": below, "printed": "2.3046"}
    label = f"the {which} ratio of averages that round to 149.758 and 64.984"
    return Obligation("inequality", label, "E", data)


def _crossover(factor: Integer) -> Obligation:
    chain = Chain("cache minus state, in numbers", Setting(), 2 * T * d - d**2)
    return chain.rearrange("factor out the width", d * (factor * T - d)).obligation()


def parts() -> tuple[Part, ...]:
    """State, selection bits, the printed ratio, crossover."""
    return (
        Part(
            r"$96\cdot128^2/2^{20}=\tfrac32$ state numbers per token and layer.",
            (_per_token(Rational(3, 2)), _size("1499/1000", "1501/1000")),
        ),
        Part(
            r"Naming $1024$ of $262144$ tokens takes $\log_2\binom{262144}{1024}=9660.1$ bits, to one"
            r" decimal.",
            (_bits("193201/20", "193203/20"),),
        ),
        Part(
            r"The printed averages $149.758$ and $64.984$ have a ratio between $2.3045$ and $2.3046$: the"
            r" printed $2.3046$ is the rounded ratio only near the upper end of what they can stand for.",
            (
                _ratio("largest", *LARGEST, "230456/100000", "23046/10000"),
                _ratio("smallest", *SMALLEST, "23045/10000", "230452/100000"),
            ),
        ),
        Part(
            r"A cache of $2Td$ numbers exceeds a state of $d^2$ by $d(2T-d)$: from $T>d/2$ on.",
            (_crossover(Integer(2)),),
        ),
    )


CLAIM = Claim(
    id="memory.table",
    title="Memory figures of article B: state per token, bits of a selection, cache against state",
    statement=(
        r"$96\cdot128^2/2^{20}=\tfrac32$; $\log_2\binom{262144}{1024}=9660.1$ to one decimal; averages that"
        r" round to $149.758$ and $64.984$ have a ratio in $(2.3045,2.3046)$; a cache of $2Td$ numbers is"
        r" larger than a state of $d^2$ exactly for $T>d/2$."
    ),
    source="article B, sections 1 and 2",
    status=Status.AS_PRINTED,
    scope="these numbers; every T and d > 0 for the crossover",
    variables=(Variable("T", "tokens"), Variable("d", "width of keys and values, > 0")),
    assumptions=(Assumption("sizes are counted in numbers, not in bytes"),),
    asked="EB",
    parts=parts,
    mutants=(
        Mutant("bits", "9661 bits and more", lambda: (_bits("9661", "9662"),)),
        Mutant("state per token", "two instead of one and a half", lambda: (_per_token(Rational(2)),)),
        Mutant("crossover", "a cache of Td numbers", lambda: (_crossover(Integer(1)),)),
        Mutant(
            "ratio",
            "a ratio above 2.3046",
            lambda: (
                _ratio("largest", *LARGEST, "2", "23046/10000"),
                _ratio("least", *SMALLEST, "23046/10000", "23047/10000"),
            ),
        ),
    ),
    remark="The parameters behind the two printed averages are not in the stored copy; memory.access-model"
    " has layers that reproduce both.",
)

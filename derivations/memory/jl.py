"""Address keys need only K > 2·ln(n(n − 1))/ε² entries to be nearly orthogonal.

For random signs one inner product exceeds εK with probability at most 2e^{−ε²K/2} (Hoeffding); n(n − 1)/2
pairs together with less than 1, so that some keys have none. An instance with more keys than entries is
drawn, all its inner products are computed, and bits are read back through it.
"""

from fractions import Fraction

from sympy import Expr, exp, log, symbols

from derivations.memory._codes import codes, width
from verify.derive import Chain, Definition, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

K, eps, t, gain, ordered = symbols("K epsilon t C P")
own, other, spare = symbols("a b r")
WITHIN, COUNT, SEED = Fraction(3, 4), 40, 3


def _union_bound(pairs: Expr) -> Obligation:
    """P = n(n − 1), of which half are pairs."""
    dimension = Definition("dimension", K, 2 * (log(ordered) + t) / eps**2)
    setting = Setting((dimension,), positive=(eps, t, ordered), instances=({},))
    chain = Chain("expected number of pairs that are too close", setting, pairs * 2 * exp(-(eps**2) * K / 2))
    return chain.unfold("insert the dimension", exp(-t), "dimension").obligation()


def _gap() -> Obligation:
    """‖k_i‖² − k_i·k_j >= (1 − ε)L when k_i·k_j <= εL: what a query along k_i scores them apart."""
    near = Definition("slack", spare, eps * own - other)
    setting = Setting((near,), (), (gain,), (spare,), instances=({},))
    chain = Chain("the scores of the query C·k_i", setting, gain * own - gain * other)
    after = gain * (1 - eps) * own
    chain = chain.unfold("up to the slack", after + gain * spare, "slack")
    return chain.drop("the slack is not negative", after, gain * spare).obligation()


def _keys() -> list[list[int]]:
    return codes(COUNT, width(COUNT, WITHIN), WITHIN, SEED)


def _instance(within: str) -> Obligation:
    keys = _keys()
    data = {"keys": keys, "count": COUNT, "width": width(COUNT, WITHIN), "within": within}
    return Obligation("near-orthogonal", f"{len(keys)} keys of {len(keys[0])} entries ±1", "E", data)


def _recall(strength: Fraction) -> Obligation:
    keys = _keys()
    data = {
        "keys": keys,
        "queries": [[str(strength * x) for x in key] for key in keys],
        "bits": [[place // 2 % 2, place % 3 // 2] for place in range(COUNT)],
    }
    return Obligation("recall", f"two bits per token read back through {COUNT} such keys", "E", data)


def parts() -> tuple[Part, ...]:
    """The dimension, the score gap, an instance, and what it is good for."""
    return (
        Part(
            r"For $K=\frac2{\varepsilon^2}(\ln n(n-1)+t)$ the expected number of pairs of random sign keys"
            r" with $|k_i\cdot k_j|>\varepsilon K$ is at most"
            r" $\frac{n(n-1)}2\cdot2e^{-\varepsilon^2K/2}=e^{-t}<1$, so keys without such a pair exist.",
            (_union_bound(ordered / 2),),
        ),
        Part(
            r"A query $Ck_i$ then scores token $i$ at least $C(1-\varepsilon)K$ above every other: for"
            r" $C(1-\varepsilon)K>\ln(n-1)$ that is the gap that memory.index-bound needs.",
            (_gap(),),
        ),
        Part(
            r"An instance: 40 keys of 27 entries $\pm1$, all inner products at most $\frac34\cdot27$; 27 is"
            r" the least whole number that the formula gives.",
            (_instance("3/4"),),
        ),
        Part(
            r"Through these keys 80 bits are read back from softmax outputs with queries $\frac35k_i$.",
            (_recall(Fraction(3, 5)),),
        ),
    )


CLAIM = Claim(
    id="memory.jl",
    title="Address keys need only K > 2·ln(n(n − 1))/ε² entries to be nearly orthogonal",
    statement=(
        r"For $K>\frac2{\varepsilon^2}\ln n(n-1)$ there are $n$ keys in $\{\pm1\}^K$ with $|k_i\cdot"
        r" k_j|\le\varepsilon K$ for all $i\ne j$; softmax attention with queries $Ck_i$,"
        r" $C(1-\varepsilon)K>\ln(n-1)$, reads token $i$ with more than half of the weight."
    ),
    source="article B, section 2; article C (Johnson–Lindenstrauss address keys)",
    status=Status.AS_PRINTED,
    scope="every n ≥ 2 and ε in (0, 1); the instance with n = 40, K = 27, ε = 3/4",
    variables=(
        Variable("n", "tokens, an integer ≥ 2"),
        Variable("K", "entries of a key, an integer"),
        Variable(r"\varepsilon", "(0,1)"),
        Variable("t", "a real number > 0"),
    ),
    assumptions=(
        Assumption(
            r"Hoeffding's inequality: a sum of $K$ independent signs exceeds $\varepsilon K$ in size with"
            r" probability at most $2e^{-\varepsilon^2K/2}$",
            cited=True,
        ),
        Assumption("the probability of any of several events is at most the sum of theirs"),
    ),
    asked="E",
    parts=parts,
    mutants=(
        Mutant("ordered pairs", "n(n − 1) pairs instead of half as many", lambda: (_union_bound(ordered),)),
        Mutant("orthogonal", "inner products within 1/3", lambda: (_instance("1/3"),)),
        Mutant(
            "weak query", "bits read back with a twentieth of the keys", lambda: (_recall(Fraction(1, 20)),)
        ),
    ),
    remark="So logarithmic width is enough for exact recall of n tokens, while the state still needs n·d bits"
    " (memory.index-bound): width of keys and size of memory are different things.",
)

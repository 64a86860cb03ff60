"""Uniform pooling over G tokens leaves a signal 1/√(G − 1) of the interference.

Token G carries the signal, the others uncorrelated noise of variance 1; the gate gives each the weight 1/G.
The variance of a sum is the sum of the variances and of twice the covariances, which vanish. No square root
is written: amplitudes are compared by their squares, decibels are 10·log₁₀ of squared ratios.
"""

from sympy import Expr, IndexedBase, Integer, Rational, Sum, log, symbols

from verify.derive import Chain, Definition, Setting
from verify.derive.tree import tree
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

i, j, G = symbols("i j G")
cov, x = IndexedBase("C"), IndexedBase("x")
SIZES = ({G: 2}, {G: 4})


def _read(after: Expr) -> Obligation:
    setting = Setting(order=((1, G),), instances=SIZES)
    chain = Chain("what a uniform gate reads", setting, Sum(x[j] / G, (j, 1, G)))
    return chain.split("the signal token split off", after, G, G - 1).obligation()


def _interference(after: Expr) -> Obligation:
    """Var Σ_{j<G} x_j/G, written out as variances and covariances C[i, j]."""
    definitions = (
        Definition("uncorrelated", cov[i, j], Integer(0), free=(i, j), guards=((j, i - 1),)),
        Definition("variance 1", cov[i, i], Integer(1), free=(i,)),
    )
    setting = Setting(definitions, order=((1, G),), instances=SIZES)
    pairs = Sum(cov[i, i] + 2 * Sum(cov[i, j], (j, 1, i - 1)), (i, 1, G - 1))
    chain = Chain("power of the interference", setting, pairs / G**2)
    own = Sum(cov[i, i], (i, 1, G - 1)) / G**2
    chain = chain.unfold("covariances vanish", own, "uncorrelated")
    return chain.unfold("G − 1 tokens of variance 1", after, "variance 1").obligation()


def _ratio(after: Expr) -> Obligation:
    setting = Setting(nonzero=(G - 1,), nonempty=(G,), instances=({G: 2}, {G: 5}))
    chain = Chain("squared amplitude over power", setting, (1 / G) ** 2 / ((G - 1) / G**2))
    return chain.rearrange("G cancels", after).obligation()


def _between(label: str, term: Expr, tokens: int, low: str, high: str, printed: str) -> Obligation:
    data = {"term": tree(term), "values": {"G": str(tokens)}, "above": low, "below": high}
    data |= {"printed": printed} if printed else {}
    return Obligation("inequality", f"{label} at G = {tokens}", "B", data)


def _decibels(tokens: int, low: str, high: str, printed: str = "") -> Obligation:
    term = -10 * log(G - 1) / log(Integer(10))
    return _between("10·log₁₀ 1/(G − 1)", term, tokens, low, high, printed)


def _square(tokens: int, low: str, high: str, printed: str = "") -> Obligation:
    """low < 1/√(G − 1) < high, by squares."""
    above, below = (str(Rational(end) ** 2) for end in (low, high))
    return _between("squared ratio 1/(G − 1)", 1 / (G - 1), tokens, above, below, printed)


def parts() -> tuple[Part, ...]:
    """Amplitude, interference, their ratio, and the printed figures."""
    return (
        Part(
            r"A uniform gate reads $\frac1Gx_G+\frac1G\sum_{j<G}x_j$: the signal has amplitude $1/G$.",
            (_read(x[G] / G + Sum(x[j], (j, 1, G - 1)) / G),),
        ),
        Part(
            r"For uncorrelated other tokens of variance 1 the interference has variance $(G-1)/G^2$.",
            (_interference((G - 1) / G**2),),
        ),
        Part(
            r"So the squared ratio of signal to interference is $1/(G-1)$ for every $G\ge2$.",
            (_ratio(1 / (G - 1)),),
        ),
        Part(
            r"At $G=4$ the ratio is $0.577$ and $-4.77$ dB.",
            (
                _square(4, "5773/10000", "5774/10000", "0.577²"),
                _decibels(4, "-4772/1000", "-4771/1000", "-4.77"),
            ),
        ),
        Part(
            r"At $G=128$ the ratio is $0.0887$ and $-21.04$ dB.",
            (
                _square(128, "8873/100000", "8874/100000", "0.0887²"),
                _decibels(128, "-21039/1000", "-21038/1000", "-21.04"),
            ),
        ),
    )


CLAIM = Claim(
    id="sparse.pooling-snr",
    title="Uniform pooling over G tokens leaves a signal 1/√(G − 1) of the interference",
    statement=(
        r"Pool $G$ tokens with weight $1/G$ each, one carrying a signal of amplitude 1, the others"
        r" uncorrelated values of variance 1. The pooled signal has amplitude $1/G$, the interference"
        r" standard deviation $\sqrt{G-1}/G$, their ratio is $1/\sqrt{G-1}$: $0.577$ ($-4.77$ dB) at $G=4$,"
        r" $0.0887$ ($-21.04$ dB) at $G=128$."
    ),
    source="article A, section 5; article B, section 1",
    status=Status.AS_PRINTED,
    scope="every G ≥ 2; one value coordinate; uncorrelated tokens of variance 1",
    variables=(
        Variable("G", "tokens per pool, an integer ≥ 2"),
        Variable("x_j", "one coordinate of the value of token $j$"),
        Variable("C_{ij}", "covariance of the values of tokens $i$ and $j$"),
    ),
    assumptions=(
        Assumption("the other tokens' values have mean 0, variance 1 and covariance 0"),
        Assumption("variance of a sum: the sum of all covariances"),
    ),
    asked="CB",
    parts=parts,
    mutants=(
        Mutant("signal counted", "G interfering tokens", lambda: (_interference(1 / G),)),
        Mutant("ratio 1/G", "a squared ratio of 1/G", lambda: (_ratio(1 / G),)),
        Mutant("amplitude decibels", "−9.54 dB at G = 4", lambda: (_decibels(4, "-955/100", "-954/100"),)),
        Mutant(
            "square forgotten", "a ratio of 0.333 at G = 4", lambda: (_square(4, "333/1000", "334/1000"),)
        ),
    ),
    remark="Positively correlated tokens make it worse: every covariance adds to the interference.",
)

"""A one-pass integer histogram finds a threshold whose dropped mass is certainly at most ε.

Bucket b holds the scores in [b, b + 1) times a width; e to the lower ends bounds the kept weights from
below, e to the upper ends the dropped ones from above. Replacing both in D/(D + K) only raises it. With a
width of ln 2 all bounds are integers times one power of two, so that the comparison with ε is exact.
"""

from fractions import Fraction

from sympy import Expr, IndexedBase, exp, symbols

from derivations.sparse._buckets import Threshold, histogram, threshold
from derivations.sparse._exponential import extra, falls, saved, saving
from derivations.sparse._symbols import CUT, SIZES, dropped, j, kept
from verify.derive import Chain, Definition, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

width, upper, lower, lost, over, under, spare, eps = symbols("omega U L D d e r epsilon")
kept_mass = symbols("K")
s, bucket = IndexedBase("s"), IndexedBase("b")


def _dropped_bound(shift: int) -> Obligation:
    """Σ e^{ω(b_j + 1)} over dropped tokens bounds their weights: s_j = ω(b_j + 1) − g_j."""
    inside = Definition("bucket", s[j], width * (bucket[j] + 1) - extra[j], free=(j,))
    setting = Setting((inside, saving), (), (), (saved,), order=CUT, instances=SIZES)
    chain = Chain("upper ends of the dropped buckets", setting, dropped(exp(width * (bucket[j] + shift))))
    gap = dropped(exp(width * (bucket[j] + 1)) * saved[j])
    chain = chain.unfold("weight by weight", dropped(exp(s[j])) + gap, "bucket", "saved")
    return chain.drop("scores stay below their upper ends", dropped(exp(s[j])), gap).obligation()


def _kept_bound() -> Obligation:
    """Σ e^{ω b_j} over kept tokens is below their weights: ω b_j = s_j − g_j."""
    inside = Definition("bucket", bucket[j], (s[j] - extra[j]) / width, free=(j,))
    setting = Setting((inside, saving), (), (width,), (saved,), order=CUT, instances=SIZES)
    chain = Chain("lower ends of the kept buckets", setting, kept(exp(s[j])))
    gap = kept(exp(s[j]) * saved[j])
    floor = kept(exp(width * bucket[j]))
    chain = chain.unfold("weight by weight", floor + gap, "bucket", "saved")
    return chain.drop("scores reach their lower ends", floor, gap).obligation()


def _quotient(denominator: Expr) -> Obligation:
    """U/(U + L) >= D/(D + K) for U >= D > 0 and K >= L > 0."""
    definitions = Definition("U", upper, lost + over), Definition("K", kept_mass, lower + under)
    setting = Setting(definitions, (), (lost, lower, upper, kept_mass), (over, under), instances=({},))
    chain = Chain("both bounds put in", setting, upper / (upper + lower))
    gain = (over * (lower + under) + lost * under) / ((lost + over + lower) * (lost + lower + under))
    chain = chain.unfold("common denominator", lost / denominator + gain, "U", "K")
    return chain.drop("neither replacement lowers it", lost / denominator, gain).obligation()


def _accepted() -> Obligation:
    """The exact test: (1 − ε)U <= εL gives U/(U + L) <= ε."""
    passed = Definition("slack", spare, eps * lower - (1 - eps) * upper)
    setting = Setting((passed,), (), (upper, lower), (spare,), instances=({},))
    chain = Chain("the comparison in integers", setting, eps)
    gain = spare / (upper + lower)
    chain = chain.unfold("common denominator", upper / (upper + lower) + gain, "slack")
    return chain.drop("the test was passed", upper / (upper + lower), gain).obligation()


SCORES = ("10", "37/4", "17/2", "6", "11/2", "3", "5/2", "2", "1", "1/2", "0", "-1", "-3/2", "-4")
"""Base-2 logits of 14 tokens."""


def _found(epsilon: str) -> Threshold:
    return threshold(histogram(Fraction(score) for score in SCORES), Fraction(epsilon))


def _instance(epsilon: str, stated: str) -> Obligation:
    """The dropped mass, with a factor just below ln 2 from base-2 logits to exponents.

    A smaller factor flattens the weights, which raises the share of the dropped tokens: all score below the
    kept ones.
    """
    found = _found(epsilon)
    below_ln2 = Fraction(6931471805, 10**10)
    scores = [str(Fraction(score) * below_ln2) for score in SCORES]
    places = [place for place, score in enumerate(SCORES) if Fraction(score) >= found.bucket]
    label = f"threshold {found.bucket} for ε = {epsilon}: {len(places)} of {len(SCORES)} tokens kept"
    return Obligation("selection", label, "E", {"scores": scores, "kept": places, "dropped_below": stated})


def parts() -> tuple[Part, ...]:
    """Both one-sided bounds, the quotient, the integer test, and an instance."""
    return (
        Part(
            r"With $b_j\omega\le s_j\le(b_j+1)\omega$, the dropped weights are at most"
            r" $U=\sum_{\text{dropped}}e^{(b_j+1)\omega}$ and the kept ones at least"
            r" $L=\sum_{\text{kept}}e^{b_j\omega}$.",
            (_dropped_bound(1), _kept_bound(), *falls()),
        ),
        Part(
            r"So the dropped mass $D/(D+K)$ is at most $U/(U+L)$.",
            (_quotient(lost + lower + under),),
        ),
        Part(
            r"$(1-\varepsilon)U\le\varepsilon L$ implies $U/(U+L)\le\varepsilon$; with $\omega=\ln2$ both"
            r" sides are integers times one power of 2 (and $\varepsilon$'s denominator): an exact test.",
            (_accepted(),),
        ),
        Part(
            r"On 14 literal base-2 logits the threshold found for $\varepsilon=1/100$ keeps 8 tokens and"
            r" drops less than $1/100$ of the mass; for $\varepsilon=1/4$ it keeps 3 and drops below $1/4$.",
            (_instance("1/100", "1/100"), _instance("1/4", "1/4")),
        ),
    )


CLAIM = Claim(
    id="sparse.bucket-threshold",
    title="A one-pass integer histogram finds a threshold whose dropped mass is certainly at most ε",
    statement=(
        r"Count the scores in buckets $[b\omega,(b+1)\omega)$, and drop the buckets below a threshold $B$ for"
        r" which $U=\sum_{b<B}n_be^{(b+1)\omega}$ and $L=\sum_{b\ge B}n_be^{b\omega}$ satisfy"
        r" $(1-\varepsilon)U\le\varepsilon L$. Then the dropped mass is at most $\varepsilon$. For"
        r" $\omega=\ln2$ the test is exact in integers."
    ),
    source="article A, section 5",
    status=Status.AS_PRINTED,
    scope="every number of tokens, bucket width and ε in [0, 1); the instance with 14 tokens",
    variables=(
        Variable("n, m", r"tokens and dropped tokens, integers with $1\le m<n$"),
        Variable("s_j", r"scores over temperature, $\mathbb{R}$"),
        Variable("b_j", "bucket of token $j$, an integer"),
        Variable(r"\omega", "bucket width, a real number > 0"),
        Variable(r"\varepsilon", "[0,1)"),
    ),
    assumptions=(
        Assumption("tokens are numbered so that the dropped ones come first (a relabelling)"),
        Assumption("$g_j\\ge0$ is the distance of a score from the end of its bucket"),
    ),
    asked="KE",
    parts=parts,
    mutants=(
        Mutant("lower ends", "the dropped weights bounded by lower ends", lambda: (_dropped_bound(0),)),
        Mutant("kept mass alone", "the dropped mass as D/K", lambda: (_quotient(lower + under),)),
        Mutant(
            "wrong ε",
            "the threshold found for 1/4 held against 1/100",
            lambda: (_instance("1/4", "1/100"),),
        ),
    ),
    remark=(
        "In the odds δ/(1 − δ) the bound is at most e^{2ω} times too large. Only counts are kept, so tiles"
        " can be counted apart and added up."
    ),
)

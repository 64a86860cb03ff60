"""The dropped mass bounded from rounded scores, the rounding of scores, weights, sums and quotient included.

Each exact score is within its error e_j of the computed one. Dropped weights are bounded from above by adding
the error, kept ones from below by taking it off; neither replacement lowers D/(D + W). Sums of positive terms
keep a relative error, which a factor made of twice its bound outweighs, and so does the last factor for the
three roundings of the quotient.
"""

from sympy import Expr, IndexedBase, exp, symbols

from derivations.kernel._scored import selection
from derivations.sparse._exponential import extra, falls, saved, saving
from derivations.sparse._symbols import CUT, SIZES, dropped, j, kept
from verify.derive import Chain, Definition, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part
from verify.numbers.formats import BFLOAT16, FLOAT64

top, common, u, gamma = symbols(r"M \epsilon u \gamma")
lost, kept_mass, upper, lower = symbols("D W U L")
over, under, spare, room, ratio, computed = symbols("d w r h x C")
s, hat, err = IndexedBase("s"), IndexedBase("z"), IndexedBase("e")


def _dropped_weights(error: Expr = err[j]) -> Obligation:
    """Σ e^{z + e − M} over the dropped is at least Σ e^{s − M}: s = z + e − g with g >= 0."""
    exact = Definition("score", s[j], hat[j] + err[j] - extra[j], free=(j,))
    setting = Setting((exact, saving), (), (), (saved,), order=CUT, instances=SIZES)
    chain = Chain("upper bounds of the dropped weights", setting, dropped(exp(hat[j] + error - top)))
    gap = dropped(exp(hat[j] + err[j] - top) * saved[j])
    after = dropped(exp(s[j] - top))
    chain = chain.unfold("weight by weight", after + gap, "score", "saved")
    return chain.drop("scores are at most their error above", after, gap).obligation()


def _kept_weights() -> Obligation:
    """Σ e^{z − e − M} over the kept is at most Σ e^{s − M}: s = z − e + g with g >= 0."""
    near = Definition("computed score", hat[j], s[j] + err[j] - extra[j], free=(j,))
    setting = Setting((near, saving), (), (), (saved,), order=CUT, instances=SIZES)
    chain = Chain("lower bounds of the kept weights", setting, kept(exp(s[j] - top)))
    gap = kept(exp(s[j] - top) * saved[j])
    after = kept(exp(hat[j] - err[j] - top))
    chain = chain.unfold("weight by weight", after + gap, "computed score", "saved")
    return chain.drop("scores are at most their error below", after, gap).obligation()


def _shift() -> Obligation:
    """The shift by M cancels in the dropped mass."""
    shifted = dropped(exp(s[j] - top)), kept(exp(s[j] - top))
    setting = Setting(order=CUT, instances=SIZES)
    chain = Chain("the dropped mass of shifted scores", setting, shifted[0] / (shifted[0] + shifted[1]))
    after = dropped(exp(s[j])) / (dropped(exp(s[j])) + kept(exp(s[j])))
    return chain.rearrange("the shift cancels", after).obligation()


def _quotient() -> Obligation:
    """U/(U + L) >= D/(D + W) for U >= D > 0 and W >= L > 0."""
    definitions = Definition("U", upper, lost + over), Definition("W", kept_mass, lower + under)
    setting = Setting(definitions, (), (lost, lower, upper, kept_mass), (over, under), instances=({},))
    chain = Chain("both bounds put in", setting, upper / (upper + lower))
    after = lost / (lost + kept_mass)
    gain = (over * (lower + under) + lost * under) / ((lost + over + lower) * (lost + lower + under))
    chain = chain.unfold("common denominator", after + gain, "U", "W")
    return chain.drop("neither replacement lowers it", after, gain).obligation()


def _one_error(factor: int = 2) -> Obligation:
    """With one error ε for all scores the bound is that of the computed weights, the dropped times e^{2ε}."""
    weight = dropped(exp(hat[j])), kept(exp(hat[j]))
    setting = Setting(order=CUT, instances=SIZES)
    above, below = dropped(exp(hat[j] + common)), kept(exp(hat[j] - common))
    chain = Chain("one error for all scores", setting, above / (above + below))
    raised = exp(factor * common) * weight[0]
    return chain.rearrange("divide by e^-ε", raised / (raised + weight[1])).obligation()


def _dropped_sum(factor: int = 2) -> Obligation:
    """C >= (1 − γ)U gives C(1 + 2γ) >= U."""
    definitions = (
        Definition("computed sum", computed, (1 - gamma) * upper + spare),
        Definition("room", room, 1 - 2 * gamma),
    )
    setting = Setting(definitions, nonnegative=(spare, room, gamma, upper), instances=({},))
    chain = Chain("a sum that may be short by γ", setting, computed * (1 + factor * gamma))
    rest = gamma * room * upper + spare * (1 + 2 * gamma)
    chain = chain.unfold("multiply out", upper + rest, "computed sum", "room")
    return chain.drop("γ is at most 1/2", upper, rest).obligation()


def _kept_sum(factor: int = 2) -> Obligation:
    """C <= (1 + γ)L gives L >= C(1 − 2γ)."""
    definitions = (
        Definition("computed sum", computed, (1 + gamma) * lower - spare),
        Definition("room", room, 1 - 2 * gamma),
    )
    setting = Setting(definitions, nonnegative=(spare, room, gamma, lower), instances=({},))
    chain = Chain("a sum that may be long by γ", setting, lower)
    after, rest = computed * (1 - factor * gamma), gamma * (1 + 2 * gamma) * lower + spare * room
    chain = chain.unfold("multiply out", after + rest, "computed sum", "room")
    return chain.drop("γ is at most 1/2", after, rest).obligation()


def _rounded_quotient(factor: int = 16) -> Obligation:
    """(1 + 16u)(1 − u)/((1 + x(1 + u))(1 + u)) >= 1/(1 + x), three roundings at their worst."""
    enough = Definition("room", room, 13 - 17 * u)
    setting = Setting((enough,), nonnegative=(u, room, ratio), instances=({},))
    below = (1 + ratio * (1 + u)) * (1 + u)
    chain = Chain("the quotient as it is computed", setting, (1 + factor * u) * (1 - u) / below)
    after = 1 / (1 + ratio)
    rest = u * (room + 1 + u + ratio * room) / (below * (1 + ratio))
    chain = chain.unfold("common denominator", after + rest, "room")
    return chain.drop("u is at most 13/17", after, rest).obligation()


def _sixteenths(bound: str = "1152/10000", *, bounded: bool = True) -> Obligation:
    """Six keys of 4 numbers, scores in bfloat16."""
    keys = [
        "1/4 -11/16 -5/2 -1/16",
        "11/16 17/16 33/16 -37/16",
        "-33/16 -11/16 -19/8 9/8",
        "-5/16 9/8 9/4 -5/16",
        "-1/4 -7/8 9/16 -11/8",
        "-9/8 -3/16 1/2 -27/16",
    ]
    label = "scores in bfloat16, 2 of 6 keys kept"
    return selection(label, "-9/4 27/16 11/8 -19/8", keys, [1, 5], bound, BFLOAT16, bounded=bounded)


def _cancelling(bound: str = "9960/10000") -> Obligation:
    """2^53 + 1 − 2^53 is 0 in binary64, so that the best key is the one dropped."""
    keys = [f"{2**53} 1 -{2**53}", "1/2 0 0"]
    return selection("scores in binary64 that cancel", "1 1 1", keys, [1], bound, FLOAT64)


def parts() -> tuple[Part, ...]:
    """Weights, quotient, one common error, the roundings of sums and quotient, instances."""
    return (
        Part(
            r"If every exact score is within $e_j$ of the computed $z_j$, then for every $M$ the dropped"
            r" weights $e^{s_j-M}$ sum to at most $U=\sum_{\text{dropped}}e^{z_j+e_j-M}$ and the kept"
            r" ones to at least $L=\sum_{\text{kept}}e^{z_j-e_j-M}$.",
            (_dropped_weights(), _kept_weights(), *falls()),
        ),
        Part(
            r"So the dropped mass, in which $M$ cancels, is at most $U/(U+L)$; any larger number for $U$"
            r" and any smaller one for $L$ bound it as well.",
            (_shift(), _quotient()),
        ),
        Part(
            r"With one error $\epsilon$ for all scores the bound is $e^{2\epsilon}\hat D/(e^{2\epsilon}\hat"
            r" D+\hat W)$, $\hat D$ and $\hat W$ the sums of the computed weights $e^{z_j}$.",
            (_one_error(),),
        ),
        Part(
            r"If a sum of positive terms, multiplied by its factor, errs by at most the share"
            r" $\gamma\le\tfrac12$, then the factors $1+2\gamma$ and $1-2\gamma$ keep it on its side.",
            (_dropped_sum(), _kept_sum()),
        ),
        Part(
            r"$1/(1+x)$ computed with three roundings of at most $u$ each, the division that gives $x$ among"
            r" them, and multiplied by $1+16u$ beforehand, is at least $1/(1+x)$ for $u\le13/17$.",
            (_rounded_quotient(),),
        ),
        Part(
            r"On literal keys whose scores are computed in bfloat16 the dropped mass 0.0932… is within"
            r" the bound 0.1152, though beyond the 0.0898 of the computed scores alone; in binary64, where"
            r" $2^{53}+1-2^{53}=0$, a dropped mass of 0.62 is within 0.996.",
            (_sixteenths(), _cancelling()),
        ),
    )


CLAIM = Claim(
    id="kernel.certified-topk",
    title="The dropped mass bounded from rounded scores, all roundings included",
    statement=(
        r"Let the exact score of key $j$ be within $e_j$ of the computed $z_j$. Whatever set is kept, its"
        r" complement has a softmax mass of at most $U/(U+L)$, $U=\sum_{\text{dropped}}e^{z_j+e_j-M}$,"
        r" $L=\sum_{\text{kept}}e^{z_j-e_j-M}$; so also with any $U'\ge U$ and $L'\le L$ that are"
        r" computed. Sums off by at most the share $\gamma\le\frac12$ are made such by the factors"
        r" $1\pm2\gamma$, and $1/(1+L'/U')$ in arithmetic of unit roundoff $u$ by the factor $1+16u$."
    ),
    source="kernels",
    status=Status.NEW,
    scope="every number of keys, every kept set but none and all, real scores and errors, any arithmetic",
    variables=(
        Variable("s_j, z_j", "exact and computed scores over temperature"),
        Variable("e_j", r"bound on $|s_j-z_j|$"),
        Variable("M", r"\mathbb{R}"),
        Variable(r"\gamma, u", "relative errors of a sum, with its factor, and of an operation"),
    ),
    assumptions=(
        Assumption("tokens are numbered so that the dropped come first (a relabelling)"),
        Assumption(r"dropped scores are $s_j=z_j+e_j-g_j$, kept ones $s_j=z_j-e_j+g_j$, with $g_j\ge0$"),
        Assumption("U', L' > 0 in the quotient; a kernel treats a sum of 0 apart"),
        Assumption(
            "the errors e_j are given: the bound (K + 1 roundings per term) with which a kernel computes"
            " them is the usual one of an inner product in any order"
        ),
    ),
    asked="KB",
    parts=parts,
    mutants=(
        Mutant("no slack", "dropped weights without their error", lambda: (_dropped_weights(0 * top),)),
        Mutant("slack once", "e^ε in place of e^{2ε}", lambda: (_one_error(1),)),
        Mutant("share once", "1 + γ for a sum short by γ", lambda: (_dropped_sum(1),)),
        Mutant("quotient as it is", "no factor for its roundings", lambda: (_rounded_quotient(0),)),
        Mutant(
            "computed scores trusted",
            "the mass by the bfloat16 scores alone as its bound",
            lambda: (_sixteenths("898/10000"),),
        ),
        Mutant("no errors", "computed scores as exact ones", lambda: (_sixteenths(bounded=False),)),
        Mutant(
            "cancellation overlooked", "the mass by the binary64 scores", lambda: (_cancelling("3776/10000"),)
        ),
    ),
    remark=(
        "The output then differs from full attention by at most that mass times the diameter of the values"
        " (sparse.dropped-mass). The exponential must be right to a stated relative error, which goes"
        " into U' and L'."
    ),
)

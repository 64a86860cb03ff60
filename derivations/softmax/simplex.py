"""Softmax weights lie on the simplex, so the output stays among the values.

Every weight is positive and at most 1, since 1/p_k is 1 plus positive terms. The distance of the output from
a bound on the values is a weighted sum of the values' own distances; the squared length of the output falls
short of a bound on the squared lengths of the values by the weighted shortfalls plus a variance.
"""

from sympy import Expr, IndexedBase, Integer, Sum, exp, symbols

from derivations.softmax._symbols import IN_RANGE, SIZES, j, k, n, over_tokens, p, s, softmax, tau
from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

c, d, low, high = symbols(r"c d \ell h")
radius = symbols("R")
v, rise, fall, short, o, y = (IndexedBase(name) for name in ("v", "r", "u", "w", "o", "y"))
unit = Hypothesis("unit", over_tokens(p[j]), 1)


def _inverse(after: Expr) -> Obligation:
    setting = Setting((softmax,), positive=(tau,), nonempty=(n,), order=IN_RANGE, instances=SIZES)
    chain = Chain("the reciprocal of a weight", setting, 1 / p[k])
    ratio = exp((s[j] - s[k]) / tau)
    chain = chain.unfold("insert the weight", over_tokens(ratio), "softmax")
    before, later = Sum(ratio, (j, 1, k - 1)), Sum(ratio, (j, k + 1, n))
    chain = chain.split("cut after k", Sum(ratio, (j, 1, k)) + later, n, k)
    chain = chain.split("the token itself brings 1", before + 1 + later, k, k - 1)
    return chain.drop("every exponential is positive", after, before, later).obligation()


def _normalised(after: Expr) -> Obligation:
    setting = Setting((softmax,), positive=(tau,), nonempty=(n,), instances=SIZES)
    chain = Chain("the weights sum to 1", setting, over_tokens(p[j]))
    return chain.unfold("the same sum above and below", after, "softmax").obligation()


def _above() -> Obligation:
    slack = Definition("rise", v[k], low + rise[k], free=(k,))
    setting = Setting((slack,), (unit,), (p,), (rise,), nonempty=(n,), instances=SIZES)
    chain = Chain("the output minus a lower bound of the values", setting, over_tokens(p[j] * v[j]) - low)
    weighted = over_tokens(p[j] * v[j]) - low * over_tokens(p[j])
    chain = chain.use("the weights sum to 1", weighted, unit=low)
    left = over_tokens(p[j] * rise[j])
    chain = chain.unfold("what each value exceeds the bound by", left, "rise")
    return chain.drop("no term is negative", Integer(0), left).obligation()


def _below(sign: int) -> Obligation:
    slack = Definition("fall", v[k], high - fall[k], free=(k,))
    setting = Setting((slack,), (unit,), (p,), (fall,), nonempty=(n,), instances=SIZES)
    start = high - sign * over_tokens(p[j] * v[j])
    chain = Chain("an upper bound of the values minus the output", setting, start)
    weighted = high * over_tokens(p[j]) - over_tokens(p[j] * v[j])
    chain = chain.use("the weights sum to 1", weighted, unit=-high)
    left = over_tokens(p[j] * fall[j])
    chain = chain.unfold("what each value falls short of the bound by", left, "fall")
    return chain.drop("no term is negative", Integer(0), left).obligation()


def _length(factor: int) -> Obligation:
    """R² − ‖o‖² as weighted shortfalls plus the variance of the values under the weights."""
    output = Definition("output", o[c], over_tokens(p[j] * y[j, c]), free=(c,))
    shortfall = Definition("shortfall", short[j], radius**2 - Sum(y[j, c] ** 2, (c, 1, d)), free=(j,))
    sizes = ({n: 2, d: 2}, {n: 3, d: 1})
    setting = Setting((output, shortfall), (unit,), (p,), (short,), nonempty=(n, d), instances=sizes)
    squares, lengths = Sum(o[c] ** 2, (c, 1, d)), over_tokens(p[j] * Sum(y[j, c] ** 2, (c, 1, d)))
    chain = Chain("a squared bound minus the squared length of the output", setting, radius**2 - squares)
    bound = radius**2 + squares
    weighted = bound * over_tokens(p[j]) - 2 * squares
    chain = chain.use("the weights sum to 1", weighted, unit=-bound)
    spread = over_tokens(p[j] * Sum((y[j, c] - o[c]) ** 2, (c, 1, d)))
    apart = factor * spread + radius**2 * over_tokens(p[j]) - lengths
    chain = chain.unfold("complete the squares", apart, "output")
    shortfalls = over_tokens(p[j] * short[j])
    chain = chain.unfold("collect the shortfalls", factor * spread + shortfalls, "shortfall")
    return chain.drop("no term is negative", Integer(0), factor * spread, shortfalls).obligation()


def parts() -> tuple[Part, ...]:
    """Range of a weight, their sum, the hull coordinate by coordinate, the length of the output."""
    return (
        Part(
            r"$1/p_k=1+\sum_{j\ne k}e^{(s_j-s_k)/\tau}\ge1$ for every $k$, so $0<p_k\le1$.",
            (_inverse(Integer(1)),),
        ),
        Part(r"$\sum_jp_j=1$.", (_normalised(Integer(1)),)),
        Part(
            r"If $\ell\le v_j\le h$ for every $j$ (one coordinate of the values, $\ell$ and $h$ its minimum"
            r" and maximum), then $o-\ell=\sum_jp_j(v_j-\ell)\ge0$ and $h-o=\sum_jp_j(h-v_j)\ge0$.",
            (_above(), _below(1)),
        ),
        Part(
            r"If $\|v_j\|\le R$ for every $j$, then"
            r" $R^2-\|o\|^2=\sum_jp_j(R^2-\|v_j\|^2)+\sum_jp_j\|v_j-o\|^2\ge0$ in any width: the bound on"
            r" the output's scale is that on the values, whatever the number of tokens.",
            (_length(1),),
        ),
    )


CLAIM = Claim(
    id="softmax.simplex",
    title="Softmax weights lie on the simplex, so the output stays among the values",
    statement=(
        r"For $p=\mathrm{softmax}(s/\tau)$: $0<p_j\le1$, $\sum_jp_j=1$; every coordinate of the output"
        r" $o=\sum_jp_jv_j$ lies between the minimum and the maximum of that coordinate of the values; and"
        r" $\|o\|\le\max_j\|v_j\|$, whatever the number of tokens."
    ),
    source="article A, section 1",
    status=Status.AS_PRINTED,
    scope="every number of tokens n ≥ 1, every width d ≥ 1, every τ > 0, all real scores and values",
    variables=(
        Variable("n", r"number of tokens, an integer $\ge1$"),
        Variable("s", r"scores, $\mathbb{R}^n$"),
        Variable(r"\tau", "temperature, a real number > 0"),
        Variable("v_j", r"values, $\mathbb{R}^d$"),
    ),
    assumptions=(Assumption("all scores are finite"),),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant("too small", "a weight of at most ½", lambda: (_inverse(Integer(2)),)),
        Mutant("wrong total", "weights that sum to τ", lambda: (_normalised(tau),)),
        Mutant("sign flipped", "an upper bound plus the output", lambda: (_below(-1),)),
        Mutant("variance twice", "the variance of the values counted twice", lambda: (_length(2),)),
    ),
    remark="Without the division by the sum neither bound holds: equal scores 0 and values 1 add up to n.",
)

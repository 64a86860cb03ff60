"""All softmax weights to first order at equal logits give linear attention on centred data.

The scores are scaled, ε·s, so that ε = 0 is the point of equal logits. Value and slope of every weight there
are 1/t and (s_j − s̄)/t; with s_j = q·k_j the output is a running mean plus a covariance read by the query.
The weights of the expansion sum to 1 but can be negative, first at two tokens with scores more than 2 apart.
"""

from sympy import Expr, IndexedBase, Integer, Sum, exp, symbols

from derivations.gdn._bounds import bounded
from derivations.gdn._symbols import (
    SIZES,
    K,
    c,
    dot,
    i,
    j,
    k,
    key_mean,
    mean_k,
    mean_v,
    over_tokens,
    q,
    t,
    v,
    value_mean,
)
from verify.derive import Chain, Definition, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

l = symbols("l")  # noqa: E741
scale, gap = symbols("epsilon d")
s = IndexedBase("s")
total = Sum(exp(scale * s[i]), (i, 1, t))
weight = exp(scale * s[l]) / total
mean_s = Sum(s[i], (i, 1, t)) / t
equal = Definition("equal logits", scale, Integer(0))
ONE_TOKEN = ({t: 2, l: 1}, {t: 4, l: 3})
IN_RANGE = ((1, l), (l, t))


def _value(after: Expr) -> Obligation:
    setting = Setting((equal,), nonempty=(t,), order=IN_RANGE, instances=ONE_TOKEN)
    chain = Chain("the weight at equal logits", setting, weight)
    return chain.unfold("every exponential is 1", after, "equal logits").obligation()


def _slope(after: Expr) -> tuple[Obligation, Obligation]:
    setting = Setting(nonempty=(t,), order=IN_RANGE, instances=ONE_TOKEN)
    mixed = Sum(s[i] * exp(scale * s[i]), (i, 1, t))
    general = exp(scale * s[l]) * (s[l] / total - mixed / total**2)
    derived = Chain("the slope of a weight in the scale of the scores", setting, weight)
    derived = derived.differentiate("quotient rule", general, scale)
    setting = Setting((equal,), nonempty=(t,), order=IN_RANGE, instances=ONE_TOKEN)
    there = Chain("the slope at equal logits", setting, general)
    there = there.unfold("every exponential is 1", after, "equal logits")
    return derived.obligation(), there.obligation()


def _sums_to(total_weight: Expr, share: Expr) -> Obligation:
    setting = Setting(nonempty=(t,), instances=({t: 2}, {t: 4}))
    chain = Chain("the weights of the expansion summed", setting, over_tokens(share))
    return chain.rearrange("the deviations cancel", total_weight).obligation()


def _output(covariance: Expr) -> Obligation:
    score = Definition("score", s[j], dot(q[c], k[j, c]), free=(j,))
    setting = Setting((score, key_mean, value_mean), nonempty=(t, K), instances=SIZES)
    start = over_tokens((1 + s[j] - mean_s) * v[j]) / t
    chain = Chain("the output of the expansion", setting, start)
    keys = Sum(k[i, c], (i, 1, t)) / t
    read = dot(q[c], over_tokens((k[j, c] - keys) * v[j])) / t
    chain = chain.unfold("scores are linear in q", over_tokens(v[j]) / t + read, "score")
    after = mean_v[t] + dot(q[c], covariance)
    return chain.unfold("centring the values changes nothing", after, "key mean", "value mean").obligation()


def _two_tokens(after: Expr) -> Obligation:
    """The weight of the token whose score is d below the other's."""
    first, second = symbols("s_1 s_2")
    apart = Definition("apart", second, first + gap)
    setting = Setting((apart,))
    chain = Chain("the weight of the lower of two scores", setting, (1 + first - (first + second) / 2) / 2)
    return chain.unfold("the scores are d apart", after, "apart").obligation()


def _witness(scores: tuple[int, int], bound: str) -> Obligation:
    first, second = symbols("s_1 s_2")
    term = (1 + first - (first + second) / 2) / 2
    label = f"the first weight of two tokens with scores {scores[0]} and {scores[1]}"
    return bounded(label, term, dict(zip((first, second), scores, strict=True)), "E", below=bound)


def parts() -> tuple[Part, ...]:
    """Value, slope, sum, output, and the negative weight."""
    share = (1 + s[j] - mean_s) / t
    covariance = over_tokens((k[j, c] - mean_k[t, c]) * (v[j] - mean_v[t])) / t
    return (
        Part(
            r"With scores $\varepsilon s_j$ the weight of token $l$ has at $\varepsilon=0$ the value"
            r" $\tfrac1t$ and the slope $\tfrac1t(s_l-\bar s)$: to first order it is $\tfrac1t(1+s_l-\bar"
            r" s)$.",
            (_value(1 / t), *_slope((s[l] - mean_s) / t)),
        ),
        Part(r"These weights sum to 1, for every $t$ and all scores.", (_sums_to(Integer(1), share),)),
        Part(
            r"With $s_j=q\cdot k_j$ their output is $\bar v_t+C_t^\top q$,"
            r" $C_t=\tfrac1t\sum_{j\le t}(k_j-\bar k_t)(v_j-\bar v_t)^\top$.",
            (_output(covariance),),
        ),
        Part(
            r"They can be negative. One token has weight 1; of two, the one whose score is $d$ below the"
            r" other's has $\tfrac12(1-\tfrac d2)$, negative exactly for $d>2$. A witness in integers:"
            r" $K=1$, $q=1$, keys $0,3$: the first weight is $-\tfrac14$ (at two tokens no smaller integer"
            r" gap will do: $d=2$ gives 0).",
            (_two_tokens((1 - gap / 2) / 2), _witness((0, 3), "0")),
        ),
    )


CLAIM = Claim(
    id="gdn.full-first-order",
    title="All softmax weights to first order at equal logits give linear attention on centred data",
    statement=(
        r"To first order at equal logits the softmax weights are $a_j\approx\tfrac1t(1+s_j-\bar s)$, and"
        r" with $s_j=q\cdot k_j$ the output is $\bar v_t+C_t^\top q$,"
        r" $C_t=\tfrac1t\sum_{j\le t}(k_j-\bar k_t)(v_j-\bar v_t)^\top$. The weights sum to 1 and can be"
        r" negative, first at two tokens whose scores are more than 2 apart."
    ),
    source="article A, section 2",
    status=Status.AS_PRINTED,
    scope="every t ≥ 1, every key width K, values coordinate by coordinate, all real scores",
    variables=(
        Variable("t", r"number of tokens read, an integer $\ge1$"),
        Variable("s_j", r"score of token $j$, $\mathbb{R}$, with mean $\bar s$ over $j\le t$"),
        Variable("q,k_j", r"query and keys, $\mathbb{R}^K$"),
        Variable("v_j", r"one coordinate of the value of token $j$, $\mathbb{R}$"),
    ),
    assumptions=(
        Assumption(
            "«to first order» means value and derivative at ε = 0 for scores ε·s; a remainder bound for the"
            " newest token is in gdn.self-weight-first-order"
        ),
        Assumption("a scale or temperature is part of the query"),
    ),
    asked="CE",
    parts=parts,
    mutants=(
        Mutant("not centred", "the slope without the mean", lambda: _slope(s[l] / t)),
        Mutant("value lost", "the weight at equal logits claimed to be 1", lambda: (_value(Integer(1)),)),
        Mutant(
            "raw covariance",
            "keys and values not centred",
            lambda: (_output(over_tokens(k[j, c] * v[j]) / t),),
        ),
        Mutant("small gap", "a negative weight claimed for scores 2 apart", lambda: (_witness((0, 2), "0"),)),
    ),
    remark="Nothing is normalised afterwards: the sum is 1 by itself, since the deviations cancel.",
)

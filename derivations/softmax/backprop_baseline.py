"""Backpropagation through softmax: each score's gradient is an advantage over the mean.

By the chain rule the gradient of a loss in the scores is that of Σ_j g_jp_j with the g_j, the loss's
derivatives in the weights, held fixed.
"""

from sympy import Expr, IndexedBase, Integer, Sum, exp, symbols

from derivations.softmax._symbols import IN_RANGE, SIZES, j, k, n, over_tokens, p, partition, s, softmax, tau
from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

c, d, b, i = symbols("c d b i")
g, u, o, v = (IndexedBase(name) for name in ("g", "u", "o", "v"))
unit = Hypothesis("unit", over_tokens(p[j]), 1)
mean = over_tokens(p[j] * g[j])
advantage = p[k] / tau * (g[k] - mean)


def _gradient(after: Expr) -> Obligation:
    setting = Setting((softmax,), positive=(tau,), nonempty=(n,), order=IN_RANGE, instances=SIZES)
    chain = Chain("the gradient in one score", setting, Sum(g[i] * p[i], (i, 1, n)))
    power = exp(s[k] / tau)
    weighted = Sum(g[i] * exp(s[i] / tau), (i, 1, n))
    chain = chain.unfold("one normaliser for all tokens", weighted / partition, "softmax")
    slope = power / partition / tau * (g[k] - weighted / partition)
    chain = chain.differentiate("quotient rule; numerator and normaliser", slope, s[k])
    return chain.unfold("name the weights", after, "softmax").obligation()


def _balanced(after: Expr) -> Obligation:
    setting = Setting((), (unit,), (tau,), nonempty=(n,), instances=SIZES)
    chain = Chain("the sum of the gradients", setting, over_tokens(p[j] / tau * (g[j] - mean)))
    chain = chain.rearrange("the mean does not depend on the token", mean / tau * (1 - over_tokens(p[j])))
    return chain.use("the weights sum to 1", after, unit=-mean / tau).obligation()


def _shifted() -> Obligation:
    moved = Definition("shifted", g[k], u[k] + b, free=(k,))
    setting = Setting((moved,), (unit,), (tau,), nonempty=(n,), instances=SIZES)
    chain = Chain("the same loss with a constant added to every g", setting, advantage)
    own = over_tokens(p[j] * u[j])
    unfolded = p[k] / tau * (u[k] + b - own - b * over_tokens(p[j]))
    chain = chain.unfold("insert the constant", unfolded, "shifted")
    return chain.use("the weights sum to 1", p[k] / tau * (u[k] - own), unit=-b * p[k] / tau).obligation()


def _baseline_of_attention(after: Expr) -> Obligation:
    slope = Definition("slope in a weight", g[j], Sum(u[c] * v[j, c], (c, 1, d)), free=(j,))
    output = Definition("output", o[c], over_tokens(p[j] * v[j, c]), free=(c,))
    setting = Setting((slope, output), nonempty=(n, d), instances=({n: 2, d: 2}, {n: 3, d: 1}))
    chain = Chain("the mean of an attention head", setting, mean)
    return chain.unfold("exchange the sums", after, "slope in a weight", "output").obligation()


def parts() -> tuple[Part, ...]:
    """The gradient, its sum, that a constant drops out, and the mean of an attention head."""
    return (
        Part(
            r"$\partial L/\partial s_k=\frac{p_k}\tau(g_k-\sum_jp_jg_j)$ with $g_j=\partial L/\partial p_j$.",
            (_gradient(advantage),),
        ),
        Part(r"$\sum_k\partial L/\partial s_k=0$.", (_balanced(Integer(0)),)),
        Part(
            r"A constant added to every $g_j$ changes nothing: only the advantage over the mean counts.",
            (_shifted(),),
        ),
        Part(
            r"For $o=\sum_jp_jv_j$ and $u=\partial L/\partial o$ one has $g_j=u\cdot v_j$, and the mean is"
            r" $\sum_jp_jg_j=u\cdot o$: one number per query, computed from the output alone.",
            (_baseline_of_attention(Sum(u[c] * o[c], (c, 1, d))),),
        ),
    )


CLAIM = Claim(
    id="softmax.backprop-baseline",
    title="Backpropagation through softmax: each score's gradient is an advantage over the mean",
    statement=(
        r"With $p=\mathrm{softmax}(s/\tau)$ and $g_j=\partial L/\partial p_j$ for a differentiable loss:"
        r" $\partial L/\partial s_k=\frac{p_k}\tau(g_k-\sum_jp_jg_j)$, the advantage of token $k$ over the"
        r" mean $\sum_jp_jg_j$; these gradients sum to 0. For an attention output the mean is $u\cdot o$ with"
        r" $u=\partial L/\partial o$."
    ),
    source="article A, section 1",
    status=Status.AS_PRINTED,
    scope="every n ≥ 1, every τ > 0, all real scores, every loss differentiable in the weights",
    variables=(
        Variable("n", r"number of tokens, an integer $\ge1$"),
        Variable("s", r"scores, $\mathbb{R}^n$"),
        Variable(r"\tau", "temperature, a real number > 0"),
        Variable("g", r"derivatives of the loss in the weights, $\mathbb{R}^n$"),
    ),
    assumptions=(
        Assumption(
            "chain rule: the loss depends on the scores through the weights only, so its gradient in the"
            " scores is that of Σ g_j p_j with g held fixed"
        ),
    ),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant("no baseline", "the gradient without the mean", lambda: (_gradient(p[k] / tau * g[k]),)),
        Mutant("sign flipped", "the mean minus the token", lambda: (_gradient(-advantage),)),
        Mutant(
            "plain mean",
            "the baseline as an unweighted mean",
            lambda: (_gradient(p[k] / tau * (g[k] - over_tokens(g[j]) / n)),),
        ),
        Mutant("total", "gradients that sum to the mean over τ", lambda: (_balanced(mean / tau),)),
    ),
    remark="The mean is the baseline of a policy gradient with one action per token; subtracting it is what"
    " keeps a common shift of all scores from mattering.",
)

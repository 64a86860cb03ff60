"""The Fisher information of softmax in its scores is the Hessian of log-sum-exp over the temperature.

For a token drawn from p = softmax(s/τ) the score function is ∂ ln p_j/∂s_k = (1[j = k] − p_k)/τ; its second
moments under p are τ⁻²(diag p − ppᵀ). The Hessian of φ = τ·LSE(s/τ) is τ⁻¹(diag p − ppᵀ).
"""

from sympy import Expr, IndexedBase, Integer, Sum, exp, log, symbols

from derivations.softmax._symbols import IN_RANGE, SIZES, j, k, n, over_tokens, p, partition, s, softmax, tau
from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

l = symbols("l")  # noqa: E741
u = IndexedBase("u")
unit = Hypothesis("unit", over_tokens(p[j]), 1)
own = Definition("at its own token", u[k, k], (1 - p[k]) / tau, free=(k,))
earlier = Definition("at an earlier token", u[j, k], -p[k] / tau, free=(j, k), guards=((j, k - 1),))
later = Definition("at a later token", u[j, k], -p[k] / tau, free=(j, k), guards=((k, j - 1),))
SCORE_FUNCTION = (own, earlier, later)
NAMES = tuple(item.name for item in SCORE_FUNCTION)
LATER = ((1, k), (k + 1, l), (l, n))


def _score_function(own_token: bool, after: Expr) -> Obligation:
    index = k if own_token else l
    order, distinct = (IN_RANGE, ()) if own_token else ((*IN_RANGE, (1, l), (l, n)), ((k, l),))
    sizes = SIZES if own_token else ({n: 2, k: 1, l: 2}, {n: 3, k: 3, l: 1})
    setting = Setting((softmax,), (), (tau,), nonempty=(n,), order=order, distinct=distinct, instances=sizes)
    chain = Chain("the score function of one token", setting, log(p[index]))
    slope = (1 if own_token else 0) / tau - exp(s[k] / tau) / partition / tau
    chain = chain.differentiate("its own score and the normaliser", slope, s[k], "softmax")
    return chain.unfold("name the weight", after, "softmax").obligation()


def _mean() -> Obligation:
    setting = Setting(SCORE_FUNCTION, (unit,), (tau,), nonempty=(n,), order=IN_RANGE, instances=SIZES)
    summand = p[j] * u[j, k]
    chain = Chain("the mean of the score function", setting, over_tokens(summand))
    tail = Sum(summand, (j, k + 1, n))
    chain = chain.split("cut after k", Sum(summand, (j, 1, k)) + tail, n, k)
    chain = chain.split("take token k out", Sum(summand, (j, 1, k - 1)) + p[k] * u[k, k] + tail, k, k - 1)
    others = -p[k] / tau * (Sum(p[j], (j, 1, k - 1)) + Sum(p[j], (j, k + 1, n)))
    chain = chain.unfold("insert it", others + p[k] * (1 - p[k]) / tau, *NAMES)
    merged = -p[k] / tau * (Sum(p[j], (j, 1, k)) + Sum(p[j], (j, k + 1, n))) + p[k] / tau
    chain = chain.split("the square joins", merged, k, k - 1)
    chain = chain.split("over all tokens", p[k] / tau * (1 - over_tokens(p[j])), n, k)
    return chain.use("the weights sum to 1", Integer(0), unit=-p[k] / tau).obligation()


def _diagonal(after: Expr) -> Obligation:
    setting = Setting(SCORE_FUNCTION, (unit,), (tau,), nonempty=(n,), order=IN_RANGE, instances=SIZES)
    summand, square = p[j] * u[j, k] ** 2, p[k] ** 2 / tau**2
    chain = Chain("the Fisher information on the diagonal", setting, over_tokens(summand))
    tail = Sum(summand, (j, k + 1, n))
    chain = chain.split("cut after k", Sum(summand, (j, 1, k)) + tail, n, k)
    head = Sum(summand, (j, 1, k - 1))
    chain = chain.split("take token k out", head + p[k] * u[k, k] ** 2 + tail, k, k - 1)
    others = square * (Sum(p[j], (j, 1, k - 1)) + Sum(p[j], (j, k + 1, n)))
    chain = chain.unfold("insert it", others + p[k] * (1 - p[k]) ** 2 / tau**2, *NAMES)
    rest = (p[k] - 2 * p[k] ** 2) / tau**2
    merged = square * (Sum(p[j], (j, 1, k)) + Sum(p[j], (j, k + 1, n))) + rest
    chain = chain.split("the cube joins", merged, k, k - 1)
    chain = chain.split("over all tokens", square * over_tokens(p[j]) + rest, n, k)
    return chain.use("the weights sum to 1", after, unit=square).obligation()


def _off_diagonal(after: Expr) -> Obligation:
    sizes = ({n: 2, k: 1, l: 2}, {n: 4, k: 1, l: 3})
    setting = Setting(SCORE_FUNCTION, (unit,), (tau,), nonempty=(n,), order=LATER, instances=sizes)
    summand, product = p[j] * u[j, k] * u[j, l], p[k] * p[l] / tau**2
    chain = Chain("the Fisher information off the diagonal", setting, over_tokens(summand))
    tail, middle = Sum(summand, (j, l + 1, n)), Sum(summand, (j, k + 1, l - 1))
    at_k, at_l = p[k] * u[k, k] * u[k, l], p[l] * u[l, k] * u[l, l]
    chain = chain.split("cut after l", Sum(summand, (j, 1, l)) + tail, n, l)
    chain = chain.split("take token l out", Sum(summand, (j, 1, l - 1)) + at_l + tail, l, l - 1)
    chain = chain.split("cut after k", Sum(summand, (j, 1, k)) + middle + at_l + tail, l - 1, k)
    head = Sum(summand, (j, 1, k - 1))
    chain = chain.split("take token k out", head + at_k + middle + at_l + tail, k, k - 1)
    ends = Sum(p[j], (j, 1, k - 1)), Sum(p[j], (j, k + 1, l - 1)), Sum(p[j], (j, l + 1, n))
    own_terms = -p[k] * (1 - p[k]) * p[l] / tau**2 - p[l] * (1 - p[l]) * p[k] / tau**2
    chain = chain.unfold("insert it", product * sum(ends) + own_terms, *NAMES)
    upto_k = Sum(p[j], (j, 1, k))
    chain = chain.split("p_k joins", product * (upto_k + ends[1] + ends[2] + p[l] - 2), k, k - 1)
    chain = chain.split(
        "one sum up to l − 1", product * (Sum(p[j], (j, 1, l - 1)) + ends[2] + p[l] - 2), l - 1, k
    )
    chain = chain.split("p_l joins", product * (Sum(p[j], (j, 1, l)) + ends[2] - 2), l, l - 1)
    chain = chain.split("over all tokens", product * (over_tokens(p[j]) - 2), n, l)
    return chain.use("the weights sum to 1", after, unit=product).obligation()


def _hessian(own_token: bool, after: Expr) -> Obligation:
    order, distinct = (IN_RANGE, ()) if own_token else ((*IN_RANGE, (1, l), (l, n)), ((k, l),))
    sizes = SIZES if own_token else ({n: 2, k: 1, l: 2}, {n: 3, k: 3, l: 1})
    setting = Setting((softmax,), (), (tau,), nonempty=(n,), order=order, distinct=distinct, instances=sizes)
    place = "on" if own_token else "off"
    chain = Chain(f"the Hessian of log-sum-exp {place} the diagonal", setting, tau * log(partition))
    chain = chain.differentiate("the gradient", exp(s[k] / tau) / partition, s[k])
    second, power = (s[k] if own_token else s[l]), exp(s[k] / tau)
    slope = power / partition / tau - power**2 / partition**2 / tau
    if not own_token:
        slope = -power * exp(s[l] / tau) / partition**2 / tau
    chain = chain.differentiate("the Hessian", slope, second)
    return chain.unfold("name the weights", after, "softmax").obligation()


def parts() -> tuple[Part, ...]:
    """Score function, its mean, its second moments, and the Hessian to compare with."""
    on, off = (p[k] - p[k] ** 2) / tau**2, -p[k] * p[l] / tau**2
    return (
        Part(
            r"$\partial\ln p_k/\partial s_k=(1-p_k)/\tau$ and $\partial\ln p_l/\partial s_k=-p_k/\tau$ for"
            r" $l\ne k$; its mean under $p$ is 0.",
            (_score_function(True, (1 - p[k]) / tau), _score_function(False, -p[k] / tau), _mean()),
        ),
        Part(
            r"Its second moments, the Fisher information, are $(p_k-p_k^2)/\tau^2$ for one score and"
            r" $-p_kp_l/\tau^2$ for two different ones (written for $k<l$; the moment is symmetric).",
            (_diagonal(on), _off_diagonal(off)),
        ),
        Part(
            r"The Hessian of $\varphi=\tau\ln\sum_je^{s_j/\tau}$ has the entries"
            r" $\tau\cdot(p_k-p_k^2)/\tau^2$ and $\tau\cdot(-p_kp_l/\tau^2)$: it is $\tau$ times the Fisher"
            r" information.",
            (_hessian(True, tau * on), _hessian(False, tau * off)),
        ),
    )


CLAIM = Claim(
    id="softmax.fisher",
    title="The Fisher information of softmax in its scores is the Hessian of log-sum-exp over the"
    " temperature",
    statement=(
        r"For a token drawn from $p=\mathrm{softmax}(s/\tau)$ the Fisher information in the scores is"
        r" $\tau^{-2}(\mathrm{diag}\,p-pp^\top)$; the Hessian of $\varphi=\tau\,\mathrm{LSE}(s/\tau)$ is"
        r" $\tau^{-1}(\mathrm{diag}\,p-pp^\top)$: they differ by the factor $\tau$ exactly."
    ),
    source="article A, section 1",
    status=Status.AS_PRINTED,
    scope="every n ≥ 1, every τ > 0, all real scores",
    variables=(
        Variable("n", r"number of tokens, an integer $\ge1$"),
        Variable("s", r"scores, $\mathbb{R}^n$"),
        Variable(r"\tau", "temperature, a real number > 0"),
    ),
    assumptions=(Assumption("one token is drawn; for m independent draws the information is m times this"),),
    asked="C",
    parts=parts,
    mutants=(
        Mutant("one τ lost", "the information with τ⁻¹", lambda: (_diagonal((p[k] - p[k] ** 2) / tau),)),
        Mutant("sign flipped", "a positive covariance", lambda: (_off_diagonal(p[k] * p[l] / tau**2),)),
        Mutant(
            "no factor",
            "the Hessian equal to the information",
            lambda: (_hessian(False, -p[k] * p[l] / tau**2),),
        ),
        Mutant(
            "no normaliser", "a score function without its mean", lambda: (_score_function(True, 1 / tau),)
        ),
    ),
    remark="At τ = 1 the two coincide, which hides the factor.",
)

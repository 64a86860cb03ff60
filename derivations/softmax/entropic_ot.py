"""Softmax is the unique minimiser of the entropy-regularised assignment on the simplex.

Two roads to it. The Lagrange road finds the point: the Lagrangian, its derivative in one weight, the
stationary weight, the multiplier eliminated by the constraint, the value there. The Kullback–Leibler road
shows that nothing else does as well, for every number of tokens and on the boundary too: the excess of F over
its value at softmax is τ times a sum of terms that are never negative and vanish only where a_j = p_j. On
the boundary the family η_j stands for a_j ln a_j with the convention 0·ln 0 = 0, so that no logarithm of a
vanishing weight is ever written.
"""

from sympy import Expr, Integer, Symbol, exp, log

from derivations.softmax import _divergence as divergence
from derivations.softmax._divergence import eta, kullback_leibler
from derivations.softmax._symbols import (
    IN_RANGE,
    SIZES,
    a,
    j,
    k,
    n,
    over_tokens,
    p,
    partition,
    s,
    softmax,
    tau,
)
from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

lam = Symbol(r"\lambda")
on_simplex = divergence.on_simplex
stationary_weight = exp((s[k] - lam) / tau - 1)


def _derivative(slope: Expr) -> Obligation:
    setting = Setting(positive=(tau, a), nonempty=(n,), order=IN_RANGE, instances=SIZES)
    entropy = tau * over_tokens(a[j] * log(a[j]))
    lagrangian = -over_tokens(a[j] * s[j]) + entropy + lam * (over_tokens(a[j]) - 1)
    chain = Chain("the derivative of the Lagrangian in one weight", setting, lagrangian)
    return chain.differentiate("only the terms with index k depend on the weight k", slope, a[k]).obligation()


def _stationary(after: Expr) -> Obligation:
    zero = Hypothesis("stationarity", -s[k] + tau * (log(a[k]) + 1) + lam, 0)
    setting = Setting(hypotheses=(zero,), positive=(tau, a), instances=SIZES)
    chain = Chain("the weight at which the derivative vanishes", setting, a[k])
    return chain.exponentiate(
        "solve the vanishing derivative for ln a_k and exponentiate", after, uses={"stationarity": 1 / tau}
    ).obligation()


def _multiplier() -> Obligation:
    solved = Definition("stationary weight", a[k], stationary_weight, free=(k,))
    setting = Setting((solved,), (on_simplex,), positive=(tau,), nonempty=(n,), instances=SIZES)
    chain = Chain("normalising determines the multiplier", setting, exp(lam / tau + 1))
    times_one = exp(lam / tau + 1) * over_tokens(a[j])
    chain = chain.use(
        "multiply by the sum of the weights, which is 1", times_one, simplex=-exp(lam / tau + 1)
    )
    return chain.unfold("insert the stationary weights", partition, "stationary weight").obligation()


def _dual_variable() -> Obligation:
    normal = Hypothesis("normalisation", exp(lam / tau + 1), partition)
    setting = Setting((), (normal,), positive=(tau,), nonempty=(n,), instances=SIZES)
    chain = Chain("the multiplier in closed form", setting, lam / tau + 1)
    return chain.logarithm("take logarithms", log(partition), uses={"normalisation": 1}).obligation()


def _softmax() -> Obligation:
    normal = Hypothesis("normalisation", exp(lam / tau + 1), partition)
    setting = Setting((), (normal,), positive=(tau,), nonempty=(n,), instances=SIZES)
    chain = Chain("the stationary weight is softmax", setting, stationary_weight)
    chain = chain.rearrange("exponential of a difference", exp(s[k] / tau) / exp(lam / tau + 1))
    eliminate = -exp(s[k] / tau) / (exp(lam / tau + 1) * partition)
    return chain.use("eliminate the multiplier", softmax.rhs, normalisation=eliminate).obligation()


def _value(after: Expr) -> Obligation:
    setting = Setting((softmax,), positive=(tau,), nonempty=(n,), instances=SIZES)
    at_softmax = -over_tokens(p[j] * s[j]) + tau * over_tokens(p[j] * log(p[j]))
    chain = Chain("the value at softmax", setting, at_softmax)
    return chain.unfold("insert the weights; the scores cancel", after, "softmax").obligation()


def _normalised() -> Obligation:
    setting = Setting((softmax,), positive=(tau,), nonempty=(n,), instances=SIZES)
    chain = Chain("softmax weights sum to 1", setting, over_tokens(p[j]))
    return chain.unfold("the same sum above and below", Integer(1), "softmax").obligation()


def _excess(temperature: Expr) -> Obligation:
    """F(a) − F(p) = τ·KL(a‖p), with F(p) = −τ ln Σ e^{s/τ} inserted."""
    setting = Setting((softmax,), (on_simplex,), positive=(tau,), nonempty=(n,), instances=SIZES)
    excess = -over_tokens(a[j] * s[j]) + tau * over_tokens(eta[j]) + tau * log(partition)
    chain = Chain("what any other point of the simplex costs more", setting, excess)
    weighted = (
        -over_tokens(a[j] * s[j]) + tau * over_tokens(eta[j]) + tau * log(partition) * over_tokens(a[j])
    )
    chain = chain.use("the weights sum to 1", weighted, simplex=-tau * log(partition))
    return chain.unfold("read off ln p_j", temperature * kullback_leibler, "softmax").obligation()


def parts() -> tuple[Part, ...]:
    """Stationary point, its value, the excess over it, its sign and where it vanishes."""
    return (
        Part(
            r"At an interior point $\partial L/\partial a_k=-s_k+\tau(1+\ln a_k)+\lambda$ for the Lagrangian"
            r" $L=F+\lambda(\sum_j a_j-1)$.",
            (_derivative(-s[k] + tau * (log(a[k]) + 1) + lam),),
        ),
        Part(
            r"It vanishes only for $a_k=e^{(s_k-\lambda)/\tau-1}$; inserting this for every $k$ into $\sum_j"
            r" a_j=1$ gives $e^{\lambda/\tau+1}=\sum_j e^{s_j/\tau}$, that is"
            r" $\lambda=\tau\,\mathrm{LSE}(s/\tau)-\tau$, and eliminating $\lambda$ leaves"
            r" $a=\mathrm{softmax}(s/\tau)$.",
            (_stationary(stationary_weight), _multiplier(), _dual_variable(), _softmax()),
        ),
        Part(
            r"$p=\mathrm{softmax}(s/\tau)$ lies on the simplex and $F(p)=-\tau\ln\sum_j e^{s_j/\tau}$.",
            (_normalised(), _value(-tau * log(partition))),
        ),
        Part(
            r"For every $a$ on the simplex, boundary included, $F(a)-F(p)=\tau\,\mathrm{KL}(a\|p)$, where"
            r" $\mathrm{KL}(a\|p)=\sum_j(\eta_j-a_j\ln p_j)$ and $\eta_j$ is $a_j\ln a_j$, or $0$ where"
            r" $a_j=0$ (the identity holds whatever $\eta_j$ is, so no logarithm of a vanishing weight"
            r" occurs).",
            (_excess(tau),),
        ),
        Part(
            r"Every term $g_j=\eta_j-a_j\ln p_j+p_j-a_j$ is at least 0 and vanishes only for $a_j=p_j$: for"
            r" $a_j>0$ it is $a_j(y-1-\ln y)$ at $y=p_j/a_j$, at least 0 by the lemma and 0 at $y=1$ only;"
            r" for $a_j=0$ it is $p_j>0$.",
            (divergence.tangent(1), divergence.interior(), divergence.boundary()),
        ),
        Part(
            r"Therefore $\mathrm{KL}(a\|p)=\sum_j g_j\ge0$, and $\mathrm{KL}(a\|p)\ge g_k$ for every $k$: it"
            r" vanishes only if every $g_k$ does, that is only for $a=p$. So softmax is the unique"
            r" minimiser, for every $n$.",
            (divergence.nonnegative(), divergence.one_term()),
        ),
    )


CLAIM = Claim(
    id="softmax.entropic-ot",
    title="Softmax is the unique minimiser of the entropy-regularised assignment on the simplex",
    statement=(
        r"On the simplex $\{a: a_j\ge0,\ \sum_j a_j=1\}$ the function $F(a)=-\sum_j a_js_j+\tau\sum_j a_j\ln"
        r" a_j$ (with $0\ln0=0$) has the unique minimiser $p=\mathrm{softmax}(s/\tau)$, and"
        r" $F(p)=-\tau\,\mathrm{LSE}(s/\tau)=-\tau\ln\sum_j e^{s_j/\tau}$; moreover"
        r" $F(a)-F(p)=\tau\,\mathrm{KL}(a\|p)$ for every $a$ on the simplex."
    ),
    source="article A, section 1",
    status=Status.AS_PRINTED,
    scope="every n ≥ 1, every τ > 0, all real scores, boundary of the simplex included",
    variables=(
        Variable("n", r"number of tokens, an integer $\ge1$"),
        Variable("s", r"scores, $\mathbb{R}^n$"),
        Variable(r"\tau", "temperature, a real number > 0"),
        Variable("a", "the simplex"),
    ),
    assumptions=(
        Assumption(r"$a_j\ge0$ and $\sum_j a_j=1$"),
        Assumption(r"$0\ln0=0$, the limit of $x\ln x$ at $0^+$"),
    ),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant(
            "entropy sign",
            "the derivative with the entropy's sign flipped",
            lambda: (_derivative(-s[k] - tau * (log(a[k]) + 1) + lam),),
        ),
        Mutant(
            "lost one",
            "the stationary weight without the 1 that differentiating a ln a brings",
            lambda: (_stationary(exp((s[k] - lam) / tau)),),
        ),
        Mutant("value sign", "the minimum with the wrong sign", lambda: (_value(tau * log(partition)),)),
        Mutant("no temperature", "the excess without its factor τ", lambda: (_excess(Integer(1)),)),
        Mutant("wrong tangent", "the lemma with its minimum at 2", lambda: (divergence.tangent(2),)),
    ),
    remark=(
        "Convexity alone gives uniqueness only where F is differentiable; the boundary, where the derivative"
        " is infinite, needs the identity with the divergence."
    ),
)

"""Log-sum-exp: gradient softmax, Hessian the softmax covariance, conjugate negative entropy.

Derived from φ(s) = τ ln Σ_j e^{s_j/τ} by differentiating twice; the quadratic form of the Hessian is a sum
of squares of differences, and its rows say when it vanishes. The gap in the Fenchel–Young inequality and
the Bregman divergence are read off ln p_j = (s_j − φ(s))/τ.
"""

from sympy import Expr, IndexedBase, Integer, Sum, exp, log, symbols

from derivations.softmax import _divergence as divergence
from derivations.softmax._divergence import eta, kullback_leibler, on_simplex
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

i, l, m, r = symbols("i l m r")  # noqa: E741
c, cut = symbols("c M")
x, t, q = (IndexedBase(name) for name in ("x", "s'", "p'"))
phi = tau * log(partition)
partition_t = over_tokens(exp(t[j] / tau))
softmax_t = Definition("softmax of s'", q[k], exp(t[k] / tau) / partition_t, free=(k,))
unit = Hypothesis("unit", over_tokens(p[j]), 1)
TWO_IN_RANGE = (*IN_RANGE, (1, l), (l, n))
TWO_SIZES = ({n: 2, k: 1, l: 2}, {n: 3, k: 3, l: 1})


def _gradient(after: Expr) -> Obligation:
    setting = Setting((softmax,), positive=(tau,), nonempty=(n,), order=IN_RANGE, instances=SIZES)
    chain = Chain("the gradient of log-sum-exp", setting, phi)
    chain = chain.differentiate("chain rule; one term depends on s_k", exp(s[k] / tau) / partition, s[k])
    return chain.unfold("name the weight", after, "softmax").obligation()


def _hessian_diagonal(after: Expr) -> Obligation:
    setting = Setting((softmax,), positive=(tau,), nonempty=(n,), order=IN_RANGE, instances=SIZES)
    chain = Chain("the Hessian on the diagonal", setting, p[k])
    return chain.differentiate("quotient rule", after, s[k], "softmax").obligation()


def _hessian_off_diagonal(after: Expr) -> Obligation:
    setting = Setting(
        (softmax,), (), (tau,), nonempty=(n,), order=TWO_IN_RANGE, distinct=((k, l),), instances=TWO_SIZES
    )
    chain = Chain("the Hessian off the diagonal", setting, p[k])
    return chain.differentiate("only the denominator depends on s_l", after, s[l], "softmax").obligation()


def _row(index: Expr) -> Expr:
    """Row ``index`` of Hessian times x."""
    return (p[index] * x[index] - p[index] * over_tokens(p[j] * x[j])) / tau


def _assembled_row() -> Obligation:
    setting = Setting(positive=(tau,), nonempty=(n,), order=IN_RANGE, instances=SIZES)
    other = -p[k] * p[l] * x[l] / tau
    diagonal = (p[k] - p[k] ** 2) * x[k] / tau
    start = Sum(other, (l, 1, k - 1)) + diagonal + Sum(other, (l, k + 1, n))
    chain = Chain("one row of the Hessian times x, from its entries", setting, start)
    joined = Sum(other, (l, 1, k)) + p[k] * x[k] / tau + Sum(other, (l, k + 1, n))
    chain = chain.split("the square joins the other products", joined, k, k - 1)
    return chain.split("the sum over all columns", _row(k), n, k).obligation()


def _squares(factor: Expr | int) -> Expr:
    pairs = Sum(p[i] * p[j] * (x[i] - x[j]) ** 2, (j, 1, n), (i, 1, n))
    return pairs / (factor * tau)


def _quadratic_form(factor: int) -> Chain:
    setting = Setting((), (unit,), (tau, p), nonempty=(n,), instances=SIZES)
    chain = Chain("the Hessian's quadratic form", setting, Sum(x[i] * _row(i), (i, 1, n)))
    squares, mean = over_tokens(p[j] * x[j] ** 2), over_tokens(p[j] * x[j])
    chain = chain.rearrange("a mean square minus a squared mean", (squares - mean**2) / tau)
    weighted = (squares * over_tokens(p[j]) - mean**2) / tau
    chain = chain.use("the weights sum to 1", weighted, unit=-squares / tau)
    return chain.rearrange("a sum of squares of differences", _squares(factor))


def _semidefinite() -> Obligation:
    return _quadratic_form(2).drop("no term is negative", Integer(0), _squares(2)).obligation()


def _constants_vanish() -> Obligation:
    constant = Definition("constant", x[k], c, free=(k,))
    setting = Setting((constant,), (unit,), (tau,), nonempty=(n,), instances=SIZES)
    chain = Chain("constants are in the kernel", setting, _row(k))
    chain = chain.unfold("insert the constant", c * p[k] * (1 - over_tokens(p[j])) / tau, "constant")
    return chain.use("the weights sum to 1", Integer(0), unit=-c * p[k] / tau).obligation()


def _kernel_is_constant(after: Expr) -> Obligation:
    zero = Hypothesis("row", _row(k), 0)
    setting = Setting((), (zero,), (tau, p), nonempty=(n,), instances=SIZES)
    chain = Chain("a vector in the kernel has equal entries", setting, x[k])
    return chain.use("the row vanishes; divide by p_k/τ", after, row=tau / p[k]).obligation()


def _fenchel_young(divergence: Expr) -> Obligation:
    setting = Setting((softmax,), (on_simplex,), (tau,), nonempty=(n,), instances=SIZES)
    start = phi + tau * over_tokens(eta[j]) - over_tokens(a[j] * s[j])
    chain = Chain("the gap in the Fenchel–Young inequality", setting, start)
    weighted = phi * over_tokens(a[j]) + tau * over_tokens(eta[j]) - over_tokens(a[j] * s[j])
    chain = chain.use("the weights sum to 1", weighted, simplex=-phi)
    return chain.unfold("read off ln p_j", divergence, "softmax").obligation()


def _attained() -> Obligation:
    scores = Definition("scores", s[k], tau * log(a[k]), free=(k,))
    setting = Setting((scores,), (on_simplex,), (tau, a), nonempty=(n,), instances=SIZES)
    start = (tau * over_tokens(a[j] * log(a[j])) - over_tokens(a[j] * s[j]) + phi) / tau
    chain = Chain("the conjugate is attained at the scores τ ln a (difference over τ)", setting, start)
    chain = chain.unfold("insert the scores", log(over_tokens(a[j])), "scores")
    return chain.logarithm("the logarithm of 1 is 0", Integer(0), uses={"simplex": 1}).obligation()


def _approached() -> Obligation:
    support = Hypothesis("support", Sum(a[j], (j, 1, r)), 1)
    setting = Setting(
        (), (support,), (tau, a), order=((1, r), (0, m)), instances=({r: 1, m: 1}, {r: 2, m: 2})
    )
    scored, rest = tau * log(a[j]), exp(-cut / tau)
    total = Sum(exp(scored / tau), (j, 1, r)) + Sum(rest, (j, r + 1, r + m))
    start = Sum(a[j] * log(a[j]), (j, 1, r)) - Sum(a[j] * scored, (j, 1, r)) / tau + log(total)
    chain = Chain("the conjugate is approached at a boundary point (difference over τ)", setting, start)
    chain = chain.rearrange("insert and count", log(Sum(a[j], (j, 1, r)) + m * rest))
    return chain.logarithm("the weights sum to 1", log(1 + m * rest), uses={"support": 1}).obligation()


def _bregman(after: Expr) -> Obligation:
    setting = Setting((softmax, softmax_t), (unit,), (tau,), nonempty=(n,), instances=SIZES)
    phi_t = tau * log(partition_t)
    start = phi_t - phi - over_tokens(p[j] * (t[j] - s[j]))
    chain = Chain("the Bregman divergence of log-sum-exp", setting, start)
    weighted = (phi_t - phi) * over_tokens(p[j]) - over_tokens(p[j] * (t[j] - s[j]))
    chain = chain.use("the weights sum to 1", weighted, unit=phi - phi_t)
    return chain.unfold("read off both logarithms", after, "softmax", "softmax of s'").obligation()


def parts() -> tuple[Part, ...]:
    """Gradient, Hessian, its form and kernel, the conjugate pair, the Bregman divergence."""
    relative = over_tokens(p[j] * (log(p[j]) - log(q[j])))
    return (
        Part(r"$\partial\varphi/\partial s_k=p_k$ for every $k$.", (_gradient(p[k]),)),
        Part(
            r"The Hessian is $\frac1\tau(\mathrm{diag}\,p-pp^\top)$: its entries are $(p_k-p_k^2)/\tau$ for"
            r" $l=k$ and $-p_kp_l/\tau$ for $l\ne k$, so row $k$ of it times $x$ is"
            r" $\frac1\tau(p_kx_k-p_k\sum_lp_lx_l)$.",
            (
                _hessian_diagonal((p[k] - p[k] ** 2) / tau),
                _hessian_off_diagonal(-p[k] * p[l] / tau),
                _assembled_row(),
            ),
        ),
        Part(
            r"Its quadratic form is $\frac1{2\tau}\sum_{i,j}p_ip_j(x_i-x_j)^2\ge0$: it is positive"
            r" semidefinite.",
            (_quadratic_form(2).obligation(), _semidefinite()),
        ),
        Part(
            r"Its kernel is exactly $\mathrm{span}(1)$: constants are in it, and if row $k$ of Hessian times"
            r" $x$ vanishes, then $x_k=\sum_jp_jx_j$, which does not depend on $k$.",
            (_constants_vanish(), _kernel_is_constant(over_tokens(p[j] * x[j]))),
        ),
        Part(
            r"$\varphi(s)+\tau\sum_j a_j\ln a_j-\langle a,s\rangle=\tau\,\mathrm{KL}(a\|p)$ on the simplex,"
            r" which is at least 0 and 0 only at $a=p$ (termwise, as in softmax.entropic-ot). Therefore"
            r" $\varphi(s)=\max_a(\langle a,s\rangle-\tau\sum_j a_j\ln a_j)$: $\varphi$ is the convex"
            r" conjugate of $\tau\cdot$negative entropy on the simplex.",
            (
                _fenchel_young(tau * kullback_leibler),
                divergence.tangent(),
                divergence.interior(),
                divergence.boundary(),
                divergence.nonnegative(),
                divergence.one_term(),
            ),
        ),
        Part(
            r"Conversely $\sup_s(\langle a,s\rangle-\varphi(s))=\tau\sum_j a_j\ln a_j$ for $a$ on the"
            r" simplex: it is not more, since the gap above is at least 0; at an interior point it is"
            r" attained at $s=\tau\ln a$; with $m$ vanishing weights, scores $-M$ there leave the gap"
            r" $\tau\ln(1+me^{-M/\tau})$, which tends to 0 as $M\to\infty$.",
            (_attained(), _approached()),
        ),
        Part(
            r"The Bregman divergence $\varphi(s')-\varphi(s)-\langle p(s),s'-s\rangle$ is"
            r" $\tau\,\mathrm{KL}(p(s)\|p(s'))$: the arguments change places.",
            (_bregman(tau * relative),),
        ),
    )


CLAIM = Claim(
    id="softmax.lse-gradient",
    title="Log-sum-exp: gradient softmax, Hessian the softmax covariance, conjugate negative entropy",
    statement=(
        r"Let $\varphi(s)=\tau\ln\sum_j e^{s_j/\tau}$ and $p=\mathrm{softmax}(s/\tau)$. Then"
        r" $\nabla\varphi=p$; the Hessian is $\frac1\tau(\mathrm{diag}\,p-pp^\top)$, positive semidefinite"
        r" with kernel exactly $\mathrm{span}(1)$; $\varphi$ is the convex conjugate of"
        r" $\tau\sum_j a_j\ln a_j$ on the simplex, and conversely at every point of the simplex; and the"
        r" Bregman divergence of $\varphi$ is $D_\varphi(s',s)=\tau\,\mathrm{KL}(p(s)\|p(s'))$."
    ),
    source="article A, section 1",
    status=Status.AS_PRINTED,
    scope="every n ≥ 1, every τ > 0, all real scores",
    variables=(
        Variable("n", r"number of tokens, an integer $\ge1$"),
        Variable("s, s'", r"scores, $\mathbb{R}^n$"),
        Variable(r"\tau", "temperature, a real number > 0"),
        Variable("x", r"direction, $\mathbb{R}^n$"),
        Variable("a", "the simplex"),
    ),
    assumptions=(Assumption(r"$a_j\ge0$ and $\sum_j a_j=1$"), Assumption(r"$0\ln0=0$")),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant("no inner factor", "the gradient off by τ", lambda: (_gradient(tau * p[k]),)),
        Mutant(
            "sign of the product",
            "the off-diagonal Hessian entry with a plus sign",
            lambda: (_hessian_off_diagonal(p[k] * p[l] / tau),),
        ),
        Mutant(
            "diagonal without its square",
            "the diagonal Hessian entry as that of diag(p)/τ",
            lambda: (_hessian_diagonal(p[k] / tau),),
        ),
        Mutant("pairs counted once", "the form without its ½", lambda: (_quadratic_form(1).obligation(),)),
        Mutant(
            "arguments kept in order",
            "the Bregman divergence as KL(p(s')‖p(s))",
            lambda: (_bregman(tau * over_tokens(q[j] * (log(q[j]) - log(p[j])))),),
        ),
    ),
    remark="The divergence of the potentials is the divergence of the weights with its arguments exchanged.",
)

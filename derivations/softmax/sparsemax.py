"""Sparsemax: the squared norm in place of the entropy gives the projection on the simplex.

The candidate is a_j = max(0, s_j − θ) with Σ_j a_j = 1. Everything else on the simplex costs more by half its
squared distance and a sum of non-negative terms, which is optimality and uniqueness at once. The threshold is
found from sorted scores: c_k = 1 + ks_k − Σ_{j≤k}s_j does not increase, and its sign tells the support.
"""

from sympy import Expr, IndexedBase, Integer, Rational, Sum, symbols

from derivations.softmax._symbols import j, k, n, over_tokens, s
from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.derive.contradiction import contradiction, term
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

r, theta = symbols(r"r \theta")
a, b, mu, c, fall = (IndexedBase(name) for name in ("a", "b", r"\mu", "c", "d"))
HALF = Rational(1, 2)


def _objective(weights: IndexedBase) -> Expr:
    return -over_tokens(weights[j] * s[j]) + HALF * over_tokens(weights[j] ** 2)


def _projection() -> Obligation:
    setting = Setting(nonempty=(n,), instances=({n: 2}, {n: 3}))
    chain = Chain("half the squared distance to the scores", setting, HALF * over_tokens((b[j] - s[j]) ** 2))
    after = _objective(b) + HALF * over_tokens(s[j] ** 2)
    return chain.rearrange("multiply out; the last sum does not contain b", after).obligation()


def _excess(factor: Expr) -> Chain:
    """F(b) − F(a) from a_j = s_j − θ + μ_j, μ_ja_j = 0 and equal sums."""
    scores = Definition("stationarity", s[j], a[j] + theta - mu[j], free=(j,))
    slack = Hypothesis("complementary slackness", over_tokens(mu[j] * a[j]), 0)
    one = Hypothesis("simplex a", over_tokens(a[j]), 1)
    other = Hypothesis("simplex b", over_tokens(b[j]), 1)
    setting = Setting(
        (scores,), (slack, one, other), nonnegative=(mu, b), nonempty=(n,), instances=({n: 2}, {n: 3})
    )
    chain = Chain("what another point of the simplex costs more", setting, _objective(b) - _objective(a))
    apart, missed = over_tokens((b[j] - a[j]) ** 2), over_tokens(mu[j] * b[j])
    moved = (
        factor * apart + missed - over_tokens(mu[j] * a[j]) - theta * (over_tokens(b[j]) - over_tokens(a[j]))
    )
    chain = chain.unfold("insert the scores and complete the squares", moved, "stationarity")
    uses = {"complementary slackness": -1, "simplex a": theta, "simplex b": -theta}
    return chain.use("the sums agree and the products vanish", factor * apart + missed, **uses)


def _unique() -> Obligation:
    apart = HALF * over_tokens((b[j] - a[j]) ** 2)
    chain = _excess(HALF)
    return chain.drop("no μ and no weight is negative", apart, over_tokens(mu[j] * b[j])).obligation()


def _threshold(after: Expr) -> Obligation:
    """θ from the weights of a support 1 … r that sum to 1."""
    support = Hypothesis("unit", Sum(s[j] - theta, (j, 1, r)), 1)
    setting = Setting((), (support,), nonempty=(r,), instances=({r: 1}, {r: 3}))
    chain = Chain("the threshold of a support of r tokens", setting, theta)
    return chain.use("the weights sum to 1", after, unit=-1 / r).obligation()


def _sign(index: Expr) -> Expr:
    return 1 + index * s[index] - Sum(s[j], (j, 1, index))


def _decreasing(after: Expr) -> Obligation:
    sorted_ = Definition("sorted", s[k + 1], s[k] - fall[k])
    setting = Setting((sorted_,), nonnegative=(fall,), nonempty=(k,), instances=({k: 1}, {k: 3}))
    chain = Chain("c_k minus the next one", setting, _sign(k) - _sign(k + 1))
    chain = chain.split("the newest score leaves the sum", k * (s[k] - s[k + 1]), k + 1, k)
    chain = chain.unfold("scores are sorted downwards", k * fall[k], "sorted")
    return chain.drop("it does not increase", after, k * fall[k]).obligation()


def _last_inside(index_offset: int) -> Obligation:
    """s_r − θ = c_r/r and s_{r+1} − θ = c_{r+1}/r."""
    index = r + index_offset
    value = Definition("threshold", theta, (Sum(s[j], (j, 1, r)) - 1) / r)
    setting = Setting((value,), nonempty=(r,), instances=({r: 1}, {r: 3}))
    chain = Chain(f"the score with index {index} minus the threshold", setting, s[index] - theta)
    if index_offset:
        cut = _sign(index) / r
        chain = chain.unfold(
            "insert the threshold", (1 + r * s[index] - Sum(s[j], (j, 1, r))) / r, "threshold"
        )
        return chain.split("the next score joins both terms", cut, r + 1, r).obligation()
    return chain.unfold("insert the threshold", _sign(r) / r, "threshold").obligation()


def _coordinate(relation: str) -> Obligation:
    """One coordinate's share of the excess, for all reals: solved by two SMT solvers."""
    body = f"""
(declare-const a Real) (declare-const b Real) (declare-const s Real) (declare-const theta Real)
(assert (>= b 0))
(assert (= a (ite (>= s theta) (- s theta) 0)))
(define-fun cost ((x Real)) Real (+ (- (* (/ 1 2) x x) (* x s)) (* theta x)))
(assert (not ({relation} (- (cost b) (cost a)) (* (/ 1 2) (- b a) (- b a)))))
"""
    return _smt("any other weight costs a token at least half its squared distance more", body, "QF_NRA")


def _two_tokens(gap: str) -> Obligation:
    body = f"""
(declare-const s1 Real) (declare-const s2 Real) (declare-const theta Real)
(define-fun weight ((s Real)) Real (ite (>= s theta) (- s theta) 0))
(assert (= 1 (+ (weight s1) (weight s2))))
(assert (not (= (>= (- s1 s2) {gap}) (= (weight s2) 0))))
"""
    return _smt(f"two tokens: the second weight is 0 iff s₁ − s₂ is at least {gap}", body, "QF_LRA")


def _smt(label: str, body: str, logic: str) -> Obligation:
    text = f"(set-logic {logic})\n{body.strip()}\n(check-sat)\n"
    return Obligation("smt", label, "S", {"smtlib": text, "expect": "unsat", "logic": logic})


def _signs_coordinate() -> Obligation:
    """With g = s − θ the excess is (b − a)(g − a), and b·(−g) where a = 0."""
    inside = (term(3), term(2, times="(- (- a b))"))
    outside = (term(3), term(0, 1), term(2, times="(- (+ (- a b s) theta))"))
    return contradiction(_coordinate(">="), inside, outside)


def parts() -> tuple[Part, ...]:
    """Projection, optimality and uniqueness, threshold, support, exact zeros."""
    return (
        Part(
            r"$F(b)=-\sum_jb_js_j+\frac12\|b\|^2$ is $\frac12\|b-s\|^2$ less a constant: its minimiser is the"
            r" Euclidean projection of $s$ on the simplex.",
            (_projection(),),
        ),
        Part(
            r"Let $a_j=\max(0,s_j-\theta)$ with $\sum_ja_j=1$, and $\mu_j=a_j-s_j+\theta$: then $\mu_j\ge0$"
            r" and $\mu_ja_j=0$. For every $b$ on the simplex"
            r" $F(b)-F(a)=\frac12\|b-a\|^2+\sum_j\mu_jb_j\ge\frac12\|b-a\|^2$: $a$ is the only minimiser.",
            (_excess(HALF).obligation(), _unique()),
        ),
        Part(
            r"The same token by token, for all reals: with $a=\max(0,s-\theta)$ and $b\ge0$,"
            r" $\frac12b^2-bs+\theta b$ exceeds its value at $a$ by at least $\frac12(b-a)^2$.",
            (_coordinate(">="), _signs_coordinate()),
        ),
        Part(
            r"If the support is $1,\dots,r$, then $\theta=(\sum_{j\le r}s_j-1)/r$.",
            (_threshold((Sum(s[j], (j, 1, r)) - 1) / r),),
        ),
        Part(
            r"For scores sorted downwards $c_k=1+ks_k-\sum_{j\le k}s_j$ starts at $c_1=1$ and does not"
            r" increase. Let $r$ be the last $k$ with $c_k>0$: with the threshold above, $s_r-\theta=c_r/r>0$"
            r" and $s_{r+1}-\theta=c_{r+1}/r\le0$, so exactly the tokens $1,\dots,r$ lie above $\theta$, and"
            r" the minimiser exists for all scores.",
            (_decreasing(Integer(0)), _last_inside(0), _last_inside(1)),
        ),
        Part(
            r"Weights are exactly zero: of two tokens the second gets 0 if and only if $s_1-s_2\ge1$.",
            (_two_tokens("1"),),
        ),
    )


CLAIM = Claim(
    id="softmax.sparsemax",
    title="Sparsemax: the squared norm in place of the entropy gives the projection on the simplex",
    statement=(
        r"On the simplex $F(a)=-\sum_ja_js_j+\frac12\|a\|^2$ has the unique minimiser"
        r" $a_j=\max(0,s_j-\theta)$, the Euclidean projection of $s$. For scores sorted downwards"
        r" $\theta=(\sum_{j\le r}s_j-1)/r$, where $r$ is the last $k$ with $1+ks_k>\sum_{j\le k}s_j$; all"
        r" later weights are exactly 0."
    ),
    source="article A, section 1; Martins and Astudillo, From softmax to sparsemax (2016), equations 2 to 4",
    status=Status.AS_PRINTED,
    scope="every n ≥ 1, all real scores (temperature 1; at τ the scores are s/τ)",
    variables=(
        Variable("n", r"number of tokens, an integer $\ge1$"),
        Variable("s", r"scores, $\mathbb{R}^n$"),
        Variable("a, b", "the simplex"),
        Variable(r"\theta", r"\mathbb{R}"),
    ),
    assumptions=(
        Assumption("a_j ≥ 0 and Σ a_j = 1"),
        Assumption("for the threshold formula the tokens are numbered so that scores do not increase"),
    ),
    asked="CS",
    parts=parts,
    mutants=(
        Mutant(
            "no half", "an excess of the whole squared distance", lambda: (_excess(Integer(1)).obligation(),)
        ),
        Mutant("strict", "a strict inequality, false at b = a", lambda: (_coordinate(">"),)),
        Mutant(
            "mean for threshold",
            "the mean score as threshold",
            lambda: (_threshold(Sum(s[j], (j, 1, r)) / r),),
        ),
        Mutant("early zero", "a zero from a lead of ½ on", lambda: (_two_tokens("(/ 1 2)"),)),
    ),
    remark="Strong convexity carries over from the squared norm: the excess is at least half the squared"
    " distance, where the entropy gives τ times a divergence.",
)

"""The spectrum of a KDA step: eigenvalues 1 and 1 − β, a contraction for β in [0, 2] only.

On an arbitrary vector, so for every number of channels: the erase factor I − βkkᵀ with a unit key maps k to
(1 − β)k and leaves everything across k alone. The squared length before a step minus the one after is
Σ(1 − α_i²)x_i² + β(2 − β)(kᵀ(α ⊙ x))², a sum of non-negative parts. Where β ≠ 1 and no decay vanishes the
inverse is written down; where one of them does, a vector that is lost is.
"""

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from derivations.kda import _contraction as contraction
from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.derive.contradiction import contradiction, term
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

c, e, f, g, K = symbols("c e f g K")
beta = symbols(r"\beta")
k, x, y, alpha = (IndexedBase(name) for name in ("k", "x", "y", r"\alpha"))
SIZES = ({K: 2, g: 1}, {K: 3, g: 2})
unit = Hypothesis("unit key", Sum(k[e] ** 2, (e, 1, K)), 1)
across = Hypothesis("across the key", Sum(k[e] * x[e], (e, 1, K)), 0)


def _erased(vector: IndexedBase) -> Expr:
    return vector[g] - beta * k[g] * Sum(k[e] * vector[e], (e, 1, K))


def _along(eigenvalue: Expr) -> Obligation:
    setting = Setting((), (unit,), instances=SIZES)
    chain = Chain("the erase factor on its key", setting, _erased(k))
    return chain.use("unit key", eigenvalue * k[g], **{"unit key": -beta * k[g]}).obligation()


def _across() -> Obligation:
    setting = Setting((), (across,), instances=SIZES)
    chain = Chain("the erase factor across its key", setting, _erased(x))
    return chain.use("nothing is read back", x[g], **{"across the key": -beta * k[g]}).obligation()


def _split() -> Obligation:
    """Every vector is a multiple of the key plus something across it."""
    setting = Setting((), (unit,), instances=SIZES)
    read = Sum(k[f] * x[f], (f, 1, K))
    rest = Sum(k[e] * (x[e] - read * k[e]), (e, 1, K))
    chain = Chain("what is left after taking the key's part out lies across it", setting, rest)
    return chain.use("unit key", Integer(0), **{"unit key": -read}).obligation()


def _stretched(factor: Expr) -> Obligation:
    """The squared length of the erased key."""
    setting = Setting((Definition("on its key", y[e], (1 - beta) * k[e], (e,)),), (unit,), instances=SIZES)
    chain = Chain("squared length of the erased key", setting, Sum(y[e] ** 2, (e, 1, K)))
    square = Sum(k[e] ** 2, (e, 1, K))
    chain = chain.unfold("eigenvalue 1 − β", (1 - beta) ** 2 * square, "on its key")
    return chain.use("unit key", factor, **{"unit key": (1 - beta) ** 2}).obligation()


def _outside(low: str, label: str) -> Obligation:
    text = f"""(set-logic QF_NRA)
(declare-const beta Real)
(assert (or (< beta {low}) (> beta 2.0)))
(assert (<= (* (- 1.0 beta) (- 1.0 beta)) 1.0))
(check-sat)
"""
    return Obligation("smt", label, "S", {"smtlib": text, "expect": "unsat", "logic": "QF_NRA"})


def _inverse(divisor: Expr) -> Obligation:
    """The step applied to Diag(1/α)(x + β/(1 − β) k kᵀx) gives x back."""
    candidate = (x[e] + beta / divisor * k[e] * Sum(k[f] * x[f], (f, 1, K))) / alpha[e]
    setting = Setting(
        (Definition("candidate", y[e], candidate, (e,)),),
        (unit,),
        nonzero=(1 - beta, alpha[e], alpha[f], alpha[g]),
        positive=(alpha,),
        instances=SIZES,
    )
    start = alpha[g] * y[g] - beta * k[g] * Sum(k[e] * alpha[e] * y[e], (e, 1, K))
    read, square = Sum(k[f] * x[f], (f, 1, K)), Sum(k[e] ** 2, (e, 1, K))
    chain = Chain("the step on the candidate for its inverse", setting, start)
    spread = x[g] + beta / divisor * k[g] * read * (1 - (1 - beta) - beta * square)
    chain = chain.unfold("the decays cancel", spread, "candidate")
    weight = -(beta**2) / divisor * k[g] * read
    return chain.use("unit key", x[g], **{"unit key": weight}).obligation()


def _full_erase(strength: int) -> Obligation:
    """At β = 1 nothing of a step's result lies along the key: kᵀ(step) = 0."""
    setting = Setting((Definition("full erase", beta, Integer(strength)),), (unit,), instances=SIZES)
    read = Sum(k[f] * alpha[f] * x[f], (f, 1, K))
    inside = Sum(k[e] * (alpha[e] * x[e] - beta * k[e] * read), (e, 1, K))
    square = Sum(k[e] ** 2, (e, 1, K))
    chain = Chain("reading the key after a full erase", setting, inside)
    chain = chain.unfold("β = 1", read * (1 - square), "full erase")
    return chain.use("unit key", Integer(0), **{"unit key": -read}).obligation()


def _dead_channel(decay: int) -> Obligation:
    """With α_c = 0 the entry x_c does not occur in what the step reads back (nor in α_c x_c = 0)."""
    dead = Definition("dead channel", alpha[c], Integer(decay))
    sizes = ({K: 3, c: 2}, {K: 2, c: 1})
    setting = Setting((dead,), order=((1, c), (c, K)), instances=sizes)
    summand = k[e] * alpha[e] * x[e]
    before, after = Sum(summand, (e, 1, c - 1)), Sum(summand, (e, c + 1, K))
    chain = Chain("what the erase reads back", setting, Sum(summand, (e, 1, K)))
    chain = chain.split("cut after channel c", Sum(summand, (e, 1, c)) + after, K, c)
    chain = chain.split("take channel c out", before + k[c] * alpha[c] * x[c] + after, c, c - 1)
    return chain.unfold("its decay is 0", before + after, "dead channel").obligation()


def _signs_outside() -> Obligation:
    """2β − β² + β² − 2β = 0 where −β > 0, and the same in β − 2 > 0."""
    case = (term(1), term(0, 0), term(0, times="2.0"))
    return contradiction(_outside("0.0", "outside [0, 2] the factor exceeds 1"), case, case)


def parts() -> tuple[Part, ...]:
    """Eigenvalues, contraction and its converse, inverse and what is lost without one."""
    return (
        Part(
            r"$(I-\beta kk^\top)k=(1-\beta)k$, and $(I-\beta kk^\top)x=x$ for every $x$ across $k$; every"
            r" vector is a multiple of $k$ plus a vector across it. So the eigenvalues are $1$ ($K-1$ times)"
            r" and $1-\beta$, for every $K$.",
            (_along(1 - beta), _across(), _split()),
        ),
        Part(
            r"For $\beta\in[0,2]$ and $0\le\alpha_i\le1$ a step never lengthens a vector: $\|x\|^2-\|(I-\beta"
            r" kk^\top)\mathrm{Diag}(\alpha)x\|^2=\sum_i(1-\alpha_i)(1+\alpha_i)x_i^2+\beta(2-\beta)(k^\top"
            r"(\alpha\odot x))^2\ge0$.",
            (contraction.one_step(Integer(1)),),
        ),
        Part(
            r"For $\beta\notin[0,2]$ the erase factor is no contraction: it multiplies the squared length of"
            r" $k$ by $(1-\beta)^2>1$.",
            (
                _stretched((1 - beta) ** 2),
                _outside("0.0", "outside [0, 2] the factor exceeds 1"),
                _signs_outside(),
            ),
        ),
        Part(
            r"For $\beta\ne1$ and $\alpha_i\ne0$ for all $i$ the step is invertible, with inverse"
            r" $\mathrm{Diag}(1/\alpha)(I+\frac{\beta}{1-\beta}kk^\top)$.",
            (_inverse(1 - beta),),
        ),
        Part(
            r"It is singular otherwise: for $\beta=1$ every result lies across $k$; for $\alpha_c=0$ the"
            r" entry"
            r" $x_c$ does not occur in the result.",
            (_full_erase(1), _dead_channel(0)),
        ),
    )


CLAIM = Claim(
    id="kda.transition-spectrum",
    title="The spectrum of a KDA step: eigenvalues 1 and 1 − β, a contraction for β in [0, 2] only",
    statement=(
        r"Let $\|k\|=1$. The erase factor $I-\beta kk^\top$ has the eigenvalues $1$ ($K-1$ times) and"
        r" $1-\beta$; it is a contraction iff $\beta\in[0,2]$, and then so is"
        r" $(I-\beta kk^\top)\mathrm{Diag}(\alpha)$ for every $\alpha\in[0,1]^K$. The step is singular iff"
        r" $\beta=1$ or some $\alpha_i=0$."
    ),
    source="article A, section 4",
    status=Status.AS_PRINTED,
    scope="every K ≥ 1, every unit key, all real β, every α in [0, 1]^K",
    variables=(
        Variable("k", r"unit key, $\mathbb{R}^K$"),
        Variable(r"\beta", r"write strength, $\mathbb{R}$"),
        Variable(r"\alpha", r"decays, $[0,1]^K$"),
        Variable("x", r"any vector, $\mathbb{R}^K$"),
    ),
    assumptions=(Assumption(r"$\|k\|=1$"), Assumption(r"$0\le\alpha_i\le1$")),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant(
            "eigenvalue 1 + β",
            "the eigenvalue along the key with the wrong sign",
            lambda: (_along(1 + beta),),
        ),
        Mutant(
            "β up to 3",
            "a contraction claimed with 3 − β as the room above β",
            lambda: (contraction.one_step(Integer(1), 3),),
        ),
        Mutant("inverse", "the inverse with β/(1 + β)", lambda: (_inverse(1 + beta),)),
        Mutant("half erase", "β = 2 claimed to erase the key", lambda: (_full_erase(2),)),
        Mutant("outside", "the factor claimed above 1 for β < 1 too", lambda: (_outside("1.0", "mutant"),)),
    ),
    remark=(
        "This is what keeps rounding errors from growing with the number of tokens: each step's error is"
        " carried on by factors that do not lengthen it."
    ),
)

"""Orthogonal rows never raise the variance of positive features, in any dimension.

Each row keeps its law, so only the covariance of two rows matters. As a power series in ‖q + k‖² it has the
terms of two independent rows times R − 1, where R compares a joint moment of two orthogonal directions with
the product of their moments: R = (h)_b/(a + h)_b with h = d/2 and rising factorials. R is a product of
factors at most 1, so no term of the covariance is positive. The moments come from integrating by parts
against e^{−‖w‖²/2}.
"""

from sympy import Expr, IndexedBase, Integer, Sum, exp, log, symbols

from derivations.performer._gaussian import DENSITY, VARIABLES
from verify.derive import Chain, Definition, Hypothesis, Induction, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

a, b, c, d, h, i, j, m, N = symbols("a b c d h i j m N")
w, moment, two_to, rising = (IndexedBase(name) for name in ("w", "E", "p", "r"))
own, saved = symbols("V W")
up_a, up_b, up_ab = symbols("h_a h_b h_ab")
ratio, share, term, slack = (IndexedBase(name) for name in ("R", "g", "c", "sigma"))
AT = ({b: 1}, {b: 3})
loss = Sum(a * share[i] * ratio[i - 1], (i, 1, b))


square = Sum(w[c] ** 2, (c, 1, d))


def _by_parts(after: Expr) -> tuple[Obligation, Obligation]:
    """Σ_i ∂/∂w_i of w_i‖w‖^{2a−2}e^{−‖w‖²/2}, where all w_i > 0."""
    sizes = ({d: 1, i: 1, a: 2}, {d: 3, i: 2, a: 3})
    setting = Setting(positive=(w,), order=((1, i), (i, d)), nonempty=(d,), instances=sizes)
    weight = exp((a - 1) * log(square) - square / 2)
    one = (1 + 2 * (a - 1) * w[i] ** 2 / square - w[i] ** 2) * weight
    chain = Chain("one term of the divergence", setting, w[i] * weight)
    first = chain.differentiate("product rule", one, w[i]).obligation()
    setting = Setting(positive=(w,), nonempty=(d,), instances=sizes)
    chain = Chain("all terms", setting, Sum(1 + 2 * (a - 1) * w[i] ** 2 / square - w[i] ** 2, (i, 1, d)))
    return first, chain.rearrange("add up", after).obligation()


def _length(factor: Expr) -> Obligation:
    """E l^{2a} = 2^a (h)_a, with p[a] = 2^a and r[a] = (h)_a."""
    goal = Induction("moments of the length", a, Integer(0), moment[a], two_to[a] * rising[a])
    ones = tuple(
        Definition(name, family[0], Integer(1))
        for name, family in (("total mass", moment), ("no factor", two_to), ("empty product", rising))
    )
    base = Chain("a = 0", Setting(ones), moment[0])
    base = base.unfold("all are 1", goal.rhs.subs(a, 0), *(item.name for item in ones))
    definitions = (
        Definition("by parts", moment[a], (2 * h + 2 * a - 2) * moment[a - 1]),
        Definition("one more 2", two_to[a], 2 * two_to[a - 1]),
        Definition("one more factor", rising[a], factor * rising[a - 1]),
        goal.hypothesis,
    )
    setting = Setting(definitions, order=((1, a),), instances=({a: 1}, {a: 3}))
    step = Chain("a − 1 to a", setting, moment[a])
    step = step.unfold("by parts", definitions[0].rhs, "by parts")
    before = (2 * h + 2 * a - 2) * goal.rhs.subs(a, a - 1)
    step = step.unfold("the moments before", before, "induction hypothesis")
    return goal.obligation(base, step.unfold("one factor more", goal.rhs, "one more 2", "one more factor"))


def _direction(after: Expr) -> Obligation:
    """Two coordinates of N(0, I_d) are independent; they are the length times those of its direction."""
    half_a, half_b, two_a, two_b = symbols("s_a s_b p_a p_b")
    setting = Setting(positive=(up_ab, half_a, half_b, two_a, two_b), instances=({},))
    start = (two_a * half_a) * (two_b * half_b) / (two_a * two_b * up_ab)
    chain = Chain("moments of coordinates over those of the length", setting, start)
    return chain.rearrange("powers of 2 cancel", after * half_a * half_b).obligation()


def _moments(after: Expr) -> Obligation:
    """E l₁^{2a} l₂^{2b} E u₁^{2a} u₂^{2b} against the product for independent rows."""
    half_a, half_b, two = symbols("s_a s_b p")
    lengths = two * up_a * up_b
    joint = lengths * half_a * half_b / up_ab
    alone = lengths * (half_a / up_a) * (half_b / up_b)
    setting = Setting(positive=(up_a, up_b, up_ab, half_a, half_b, two), instances=({},))
    chain = Chain("joint moment over the product of moments", setting, joint / alone)
    return chain.rearrange("lengths and half factorials cancel", after).obligation()


def _factor(after: Expr) -> Obligation:
    named = Definition("g", share[b], 1 / (a + h + b - 1))
    setting = Setting((named,), nonzero=(a + h + b - 1,), instances=AT)
    chain = Chain("the factor from b − 1 to b", setting, (h + b - 1) / (a + h + b - 1))
    return chain.unfold("it loses a share", after, "g").obligation()


def _telescopes() -> Obligation:
    goal = Induction("what the ratio loses", b, Integer(0), ratio[b], 1 - loss)
    start = Definition("empty", ratio[0], Integer(1))
    base = Chain("no factor", Setting((start,)), ratio[0]).unfold(
        "an empty product", goal.rhs.subs(b, 0), "empty"
    )
    one = Definition("factor", ratio[b], ratio[b - 1] - a * share[b] * ratio[b - 1])
    setting = Setting((one, goal.hypothesis), order=((1, b),), instances=AT)
    step = Chain("one more factor", setting, ratio[b]).unfold("it loses a share", one.rhs, "factor")
    older = goal.rhs.subs(b, b - 1) - a * share[b] * ratio[b - 1]
    step = step.unfold("the loss so far", older, "induction hypothesis")
    return goal.obligation(base, step.split("it joins the sum", goal.rhs, b, b - 1))


def _at_most_one() -> Obligation:
    lost = Hypothesis("loss", ratio[b], 1 - loss)
    setting = Setting((), (lost,), (ratio, share), (a,), order=((0, b),), instances=AT)
    chain = Chain("the ratio is at most 1", setting, Integer(1))
    chain = chain.use("what it has lost", ratio[b] + loss, loss=-1)
    return chain.drop("no loss is negative", ratio[b], loss).obligation()


def _pairs(summand: Expr | int) -> Sum:
    return Sum(term[i] * term[j] * summand, (i, 0, N), (j, 0, N))


def _covariance(factor: int) -> Obligation:
    below = Definition("slack", slack[i, j], 1 - ratio[i, j], free=(i, j))
    setting = Setting((below,), (), (), (term, slack), order=((0, N),), instances=({N: 1}, {N: 2}))
    chain = Chain("independent rows against orthogonal ones", setting, _pairs(1))
    joint = _pairs(ratio[i, j])
    after = factor * joint
    chain = chain.unfold("term by term", after + _pairs(slack[i, j]), "slack")
    return chain.drop("every ratio is at most 1", after, _pairs(slack[i, j])).obligation()


def _mean_of_features(after: Expr) -> Obligation:
    setting = Setting((), (), (), (saved,), nonempty=(m,), order=((0, m - 1),), instances=({m: 2}, {m: 3}))
    chain = Chain("m independent features against m orthogonal ones", setting, own / m)
    spare = Sum(saved / m, (i, 2, m))
    covariances = Sum(own - (m - 1) * saved, (i, 1, m)) / m**2
    chain = chain.rearrange("all variances and covariances over m²", covariances + spare)
    return chain.drop("covariances are not positive", after, spare).obligation()


def parts() -> tuple[Part, ...]:
    """Moments, the ratio, the covariance, and the mean of m features."""
    return (
        Part(
            r"The length $l$ of $N(0,I_d)$ has $\mathbb E\,l^{2a}=(d+2a-2)\,\mathbb E\,l^{2a-2}$ for $a\ge1$,"
            r" by parts: $\sum_i\partial_i(w_i\|w\|^{2a-2}e^{-\|w\|^2/2})=(d+2a-2-\|w\|^2)\|w\|^{2a-2}"
            r"e^{-\|w\|^2/2}$, where all $w_i>0$ (the other orthants alike). So $\mathbb E\,l^{2a}=2^a(h)_a$"
            r" with $h=d/2$; for one coordinate, $d=1$, this is $\mathbb E\,w_1^{2a}=2^a(\frac12)_a$.",
            (*_by_parts(d + 2 * (a - 1) - square), _length(h + a - 1)),
        ),
        Part(
            r"For a uniform direction $u=w/l$: $\mathbb E\,u_1^{2a}u_2^{2b}=\mathbb E\,w_1^{2a}\,\mathbb"
            r" E\,w_2^{2b}/\mathbb E\,l^{2a+2b}=(\frac12)_a(\frac12)_b/(h)_{a+b}$; odd moments vanish.",
            (_direction(1 / up_ab),),
        ),
        Part(
            r"So rows $w_i=l_iu_i$ with independent lengths and orthogonal directions have, along a unit"
            r" vector $z$, $\mathbb E\,u_{1z}^{2a}u_{2z}^{2b}=(\frac12)_a(\frac12)_b/(h)_{a+b}$. A joint"
            r" moment of two rows is $R_{ab}=(h)_a(h)_b/(h)_{a+b}=(h)_b/(a+h)_b$ times that of independent"
            r" rows.",
            (_moments(up_a * up_b / up_ab),),
        ),
        Part(
            r"$R_{ab}=\prod_{i=1}^b\frac{h+i-1}{a+h+i-1}=1-\sum_{i=1}^b\frac a{a+h+i-1}R_{a,i-1}\le1$ for all"
            r" $a,b\ge0$ (induction on $b$).",
            (_factor(1 - a * share[b]), _telescopes(), _at_most_one()),
        ),
        Part(
            r"With $c_a=(\|q+k\|^2/2)^a/a!\ge0$, $\mathbb E\,e^{w_1\cdot z}\,\mathbb E\,e^{w_2\cdot"
            r" z}=\sum_{a,b}c_ac_b\ge\sum_{a,b}c_ac_bR_{ab}=\mathbb E\,e^{w_1\cdot z+w_2\cdot z}$, for every"
            r" partial sum and so in the limit: the covariance of two orthogonal features is at most 0.",
            (_covariance(1),),
        ),
        Part(
            r"So the mean of $m\le d$ orthogonal features has variance $\frac{V}m-\frac{m-1}mW\le\frac Vm$,"
            r" with $V$ the variance of one and $-W\le0$ the covariance of two.",
            (_mean_of_features(Sum(own - (m - 1) * saved, (i, 1, m)) / m**2),),
        ),
    )


CLAIM = Claim(
    id="performer.orthogonal",
    title="Orthogonal rows never raise the variance of positive features, in any dimension",
    statement=(
        r"If the rows $w_1,\dots,w_m$, $m\le d$, are each $N(0,I_d)$ with independent lengths and the"
        r" directions of a uniform orthonormal frame, two positive features have covariance at most 0, and"
        r" the estimate of $e^{q\cdot k}$ has variance at most that of $m$ independent rows."
    ),
    source=(
        "article C; Choromanski et al., Rethinking Attention with Performers (arXiv 2009.14794), theorem 2"
    ),
    status=Status.AS_PRINTED,
    scope="every d ≥ 2, m ≤ d, all real q and k (d = 2 included)",
    variables=(*VARIABLES, Variable("a, b", "integers ≥ 0"), Variable("h", "$d/2$")),
    assumptions=(
        DENSITY,
        Assumption(
            "the frame is uniform: its law does not change under rotations, so a fixed unit vector has along"
            " two of its directions the law of two coordinates of one uniform direction"
        ),
        Assumption("the length and the direction of a row are independent"),
        Assumption(
            "the integral of the derivative of a function that vanishes at both ends of its interval is 0"
        ),
        Assumption("the exponential series may be summed in any order (it converges absolutely in the mean)"),
    ),
    asked="C",
    parts=parts,
    mutants=(
        Mutant(
            "dimension forgotten",
            "the length's moments of one coordinate",
            lambda: _by_parts(1 + 2 * (a - 1) - square),
        ),
        Mutant("late factor", "rising factorials one factor ahead", lambda: (_length(h + a),)),
        Mutant("no length", "moments of coordinates not divided", lambda: (_direction(Integer(1)),)),
        Mutant("ratio inverted", "R as its inverse", lambda: (_moments(up_ab / (up_a * up_b)),)),
        Mutant("gains a share", "a factor above 1", lambda: (_factor(1 + a * share[b]),)),
        Mutant("half", "orthogonal rows at half the moment of independent ones", lambda: (_covariance(2),)),
        Mutant(
            "all pairs twice",
            "2(m − 1) covariances per feature",
            lambda: (_mean_of_features(Sum(own - 2 * (m - 1) * saved, (i, 1, m)) / m**2),),
        ),
    ),
    remark=(
        "The gain is (m − 1)/m of one covariance: with many blocks of d rows only pairs"
        " inside a block have it."
    ),
)

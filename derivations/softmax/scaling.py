"""Independent coordinates of variance 1 give scores of variance d, and of variance 1 after division by √d.

Expectation enters through moments alone: E_{il} = E[q_ik_iq_lk_l] is the product of four means for i ≠ l and
of two second moments for i = l.
"""

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

i, l, d, root = symbols("i l d r")  # noqa: E741
moment, mean_q, mean_k, second_q, second_k = (
    IndexedBase(name) for name in ("E", r"\mu^q", r"\mu^k", r"\nu^q", r"\nu^k")
)
SIZES = ({d: 2}, {d: 3})
both = moment[i, l]
product = mean_q[i] * mean_k[i] * mean_q[l] * mean_k[l]
INDEPENDENT = (
    Definition("independent, later", both, product, free=(i, l), guards=((i, l - 1),)),
    Definition("independent, earlier", both, product, free=(i, l), guards=((l, i - 1),)),
    Definition("one coordinate", moment[i, i], second_q[i] * second_k[i], free=(i,)),
)
CENTRED = (
    Definition("query mean", mean_q[i], Integer(0), free=(i,)),
    Definition("key mean", mean_k[i], Integer(0), free=(i,)),
    Definition("query variance", second_q[i], Integer(1), free=(i,)),
    Definition("key variance", second_k[i], Integer(1), free=(i,)),
)
average = Sum(mean_q[i] * mean_k[i], (i, 1, d))
row = IndexedBase("R")
RANGE = ((1, i), (i, d))
ROW_SIZES = ({d: 2, i: 1}, {d: 3, i: 2})


def _mean() -> Obligation:
    chain = Chain("the mean of a score", Setting(CENTRED, nonempty=(d,), instances=SIZES), average)
    return chain.unfold("every coordinate is centred", Integer(0), "query mean").obligation()


def _row(after: Expr) -> Obligation:
    """R_i = Σ_l E_il: only l = i is left."""
    setting = Setting((*INDEPENDENT, *CENTRED), nonempty=(d,), order=RANGE, instances=ROW_SIZES)
    chain = Chain("one row of second moments", setting, Sum(both, (l, 1, d)))
    high = Sum(both, (l, i + 1, d))
    chain = chain.split("cut at the own coordinate", Sum(both, (l, 1, i)) + high, d, i)
    chain = chain.split("take it out", Sum(both, (l, 1, i - 1)) + moment[i, i] + high, i, i - 1)
    names = [definition.name for definition in (*INDEPENDENT, *CENTRED)]
    return chain.unfold("different coordinates are independent and centred", after, *names).obligation()


def _variance(after: Expr) -> Obligation:
    """Var(q·k) = Σ_i R_i − (E q·k)²."""
    rows = Definition("row", row[i], second_q[i] * second_k[i], free=(i,))
    setting = Setting((rows, *CENTRED), nonempty=(d,), instances=SIZES)
    chain = Chain("the variance of a score", setting, Sum(row[i], (i, 1, d)) - average**2)
    names = ("row", *(definition.name for definition in CENTRED))
    return chain.unfold("d rows, each 1, and mean 0", after, *names).obligation()


def _scaled(power: int, after: Expr) -> Obligation:
    """The variance d after division by r^power, where r² = d."""
    square_root = Hypothesis("root", root**2, d)
    setting = Setting((), (square_root,), positive=(root,), nonempty=(d,), instances=SIZES)
    chain = Chain("the variance after division", setting, d / root ** (2 * power))
    return chain.use("r is the square root of d", after, root=-(root ** (-2 * power))).obligation()


def _scaled_sum() -> Obligation:
    """Σ_iΣ_l E_il/r² − (Σ μμ/r)² is the unscaled variance over r²."""
    setting = Setting(positive=(root,), nonempty=(d,), instances=SIZES)
    square = Sum(both, (l, 1, d), (i, 1, d))
    start = Sum(both / root**2, (l, 1, d), (i, 1, d)) - Sum(mean_q[i] * mean_k[i] / root, (i, 1, d)) ** 2
    chain = Chain("a common factor leaves the variance squared", setting, start)
    return chain.rearrange("take it out of the sums", (square - average**2) / root**2).obligation()


def _equal_coordinates(after: Expr) -> Obligation:
    """All coordinates of q equal and all of k equal: every E_il is E[q₁²]E[k₁²] = 1."""
    equal = Definition("equal coordinates", moment[i, l], Integer(1), free=(i, l))
    setting = Setting((equal, *CENTRED), nonempty=(d,), instances=SIZES)
    start = Sum(both, (l, 1, d), (i, 1, d)) - average**2
    chain = Chain("the variance with equal coordinates", setting, start)
    return chain.unfold("every pair counts", after, "equal coordinates", "query mean").obligation()


def parts() -> tuple[Part, ...]:
    """Mean, rows of second moments, variance, the scaled variance, and what independence is for."""
    return (
        Part(r"$\mathbb E[q\cdot k]=\sum_i\mathbb E[q_i]\mathbb E[k_i]=0$.", (_mean(),)),
        Part(
            r"For every $i$: $\sum_l\mathbb E[q_ik_iq_lk_l]=\mathbb E[q_i^2]\mathbb E[k_i^2]=1$.",
            (_row(Integer(1)),),
        ),
        Part(r"$\mathrm{Var}(q\cdot k)=\sum_{i,l}\mathbb E[q_ik_iq_lk_l]-0=d$.", (_variance(d),)),
        Part(
            r"$\mathrm{Var}(q\cdot k/\sqrt d)=d/(\sqrt d)^2=1$.",
            (_scaled_sum(), _scaled(1, Integer(1))),
        ),
        Part(
            r"Independence between coordinates is needed: if all coordinates of $q$ are one variable and all"
            r" of $k$ another, independent of it, the variance is $d^2$.",
            (_equal_coordinates(d**2),),
        ),
    )


CLAIM = Claim(
    id="softmax.scaling",
    title="Independent coordinates of variance 1 give scores of variance d, and of variance 1 after division"
    " by √d",
    statement=(
        r"Let all $2d$ coordinates of $q$ and $k$ be independent with mean 0 and variance 1. Then $\mathbb"
        r" E[q\cdot k]=0$, $\mathrm{Var}(q\cdot k)=d$ and $\mathrm{Var}(q\cdot k/\sqrt d)=1$, whatever their"
        r" distributions."
    ),
    source="article A, section 1; Vaswani et al., Attention Is All You Need (2017), section 3.2.1",
    status=Status.AS_PRINTED,
    scope="every width d ≥ 1, any distributions with mean 0 and variance 1 (not necessarily the same)",
    variables=(
        Variable("q, k", r"random vectors in $\mathbb{R}^d$"),
        Variable("d", r"width, an integer $\ge1$"),
    ),
    assumptions=(
        Assumption(
            "expectation is linear, and the mean of a product of independent variables is the product"
        ),
        Assumption("all coordinates of q and k are independent, with mean 0 and variance 1"),
    ),
    asked="C",
    parts=parts,
    mutants=(
        Mutant("full square", "a variance of d²", lambda: (_variance(d**2),)),
        Mutant("divided by d", "scores divided by d instead of √d", lambda: (_scaled(2, Integer(1)),)),
        Mutant("every pair", "a row of d equal moments", lambda: (_row(d),)),
        Mutant("no harm", "equal coordinates with variance d", lambda: (_equal_coordinates(d),)),
    ),
    remark="The statement is about random queries and keys; trained ones are neither centred nor"
    " independent.",
)

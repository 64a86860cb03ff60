"""Positive random features win over trigonometric ones iff q·k is negative enough.

With r = ‖q − k‖² that is 4·q·k < ln((1 + e^{−2r})/2). Second moments are the same Gaussian expectations at
twice the argument. The difference of the two variances is e^{2q·k}(cosh r − e^{‖q + k‖²})/m, and ‖q + k‖² =
r + 4 q·k.
"""

from sympy import Expr, Integer, exp, symbols

from derivations.performer._gaussian import (
    CALCULUS,
    DENSITY,
    SIZES,
    TRANSLATION,
    VARIABLES,
    apart,
    c,
    characteristic_function,
    coordinates,
    d,
    generating_function,
    k,
    own,
    product,
    q,
    together,
)
from verify.derive import Chain, Definition, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status
from verify.model.evidence import Obligation, Part

m, second = symbols("m E_2")
positive_variance = exp(2 * product) * (exp(together) - 1) / m
trigonometric_variance = exp(2 * product) * exp(apart) * (1 - exp(-apart)) ** 2 / (2 * m)


def _setting(*definitions: Definition) -> Setting:
    instances = tuple({**sizes, m: 2} for sizes in SIZES)
    return Setting(definitions, nonempty=(d, m), instances=instances)


def _positive(after: Expr) -> Obligation:
    moment = Definition("expectation of exp 2w·(q + k)", second, exp(2 * together))
    chain = Chain("positive features", _setting(moment), (exp(-own) * second - exp(product) ** 2) / m)
    return chain.unfold("second moment, squared mean", after, moment.name).obligation()


def _trigonometric(after: Expr) -> Obligation:
    moment = Definition("expectation of cos² w·(q − k)", second, (1 + exp(-2 * apart)) / 2)
    chain = Chain("trigonometric features", _setting(moment), (exp(own) * second - exp(product) ** 2) / m)
    return chain.unfold("second moment, squared mean", after, moment.name).obligation()


def _difference(after: Expr) -> Obligation:
    chain = Chain(
        "trigonometric minus positive variance", _setting(), trigonometric_variance - positive_variance
    )
    return chain.rearrange("common factor", after).obligation()


def _crossover() -> Obligation:
    start = (exp(apart) + exp(-apart)) / 2 - exp(together)
    chain = Chain("the sign of the difference", _setting(), start)
    after = exp(apart) * ((1 + exp(-2 * apart)) / 2 - exp(4 * product))
    return chain.rearrange("‖q + k‖² = ‖q − k‖² + 4 q·k", after).obligation()


def _at(title: str, sign: int, start: Expr) -> Obligation:
    equal = Definition("key", k[c], sign * q[c], free=(c,))
    chain = Chain(title, _setting(equal), start)
    return chain.unfold("insert the key", Integer(0), "key").obligation()


def _relative(after: Expr) -> Obligation:
    equal = Definition("key", k[c], q[c], free=(c,))
    chain = Chain("relative variance at k = q", _setting(equal), positive_variance / exp(product) ** 2)
    return chain.unfold("insert the key", after, "key").obligation()


def parts() -> tuple[Part, ...]:
    """Both variances, their difference, and the extremes."""
    cosh = (exp(apart) + exp(-apart)) / 2
    return (
        generating_function(),
        characteristic_function(),
        Part(
            r"Positive features: $\mathrm{Var}=\frac1m(e^{-\|q\|^2-\|k\|^2}\,\mathbb E\,e^{2w\cdot(q+k)}-"
            r"e^{2q\cdot k})=\frac1me^{2q\cdot k}(e^{\|q+k\|^2}-1)$.",
            (_positive(positive_variance),),
        ),
        Part(
            r"Trigonometric features: $\mathrm{Var}=\frac1{2m}e^{2q\cdot k}e^r(1-e^{-r})^2$ with"
            r" $r=\|q-k\|^2$.",
            (_trigonometric(trigonometric_variance),),
        ),
        Part(
            r"The second minus the first is $\frac1me^{2q\cdot k}(\cosh r-e^{\|q+k\|^2})$, and $\cosh"
            r" r-e^{\|q+k\|^2}=e^r(\frac{1+e^{-2r}}2-e^{4q\cdot k})$: positive features win iff $4q\cdot"
            r" k<\ln\frac{1+e^{-2r}}2$. So never where $q\cdot k\ge0$, and always where $q\cdot"
            r" k\le-\frac14\ln2$.",
            (_difference(exp(2 * product) * (cosh - exp(together)) / m), _crossover()),
        ),
        Part(
            r"Positive features have variance 0 at $k=-q$, trigonometric ones at $k=q$.",
            (
                _at("positive features at k = −q", -1, positive_variance),
                _at("trigonometric features at k = q", 1, trigonometric_variance),
            ),
        ),
        Part(
            r"At $k=q$ positive features have the relative variance $(e^{4\|q\|^2}-1)/m$: the large weights"
            r" are the badly estimated ones.",
            (_relative((exp(4 * coordinates(q[c] ** 2)) - 1) / m),),
        ),
    )


CLAIM = Claim(
    id="performer.variance",
    title="Positive random features win over trigonometric ones iff q·k is negative enough",
    statement=(
        r"With $m$ independent features the estimate of $e^{q\cdot k}$ has variance $\frac1me^{2q\cdot"
        r" k}(e^{\|q+k\|^2}-1)$ with positive features and $\frac1{2m}e^{2q\cdot k}e^r(1-e^{-r})^2$,"
        r" $r=\|q-k\|^2$, with trigonometric ones. The first is smaller iff $4q\cdot k<\ln\frac{1+e^{-2r}}2$:"
        r" never for $q\cdot k\ge0$, always for $q\cdot k\le-\frac14\ln2$."
    ),
    source="article C; Choromanski et al., Rethinking Attention with Performers (arXiv 2009.14794), lemma 2",
    status=Status.AS_PRINTED,
    scope="every width d, every number of independent features m, all real q and k",
    variables=VARIABLES,
    assumptions=(
        DENSITY,
        TRANSLATION,
        CALCULUS,
        Assumption("the variance of a mean of m independent variables is that of one over m"),
        Assumption(r"$\cos^2x=(1+\cos2x)/2$, and $\ln$ is increasing"),
    ),
    asked="C",
    parts=parts,
    mutants=(
        Mutant(
            "relative only",
            "positive features without the factor e^{2q·k}",
            lambda: (_positive((exp(together) - 1) / m),),
        ),
        Mutant(
            "half forgotten",
            "the trigonometric variance without its ½",
            lambda: (_trigonometric(2 * trigonometric_variance),),
        ),
        Mutant(
            "wrong distance",
            "positive features with ‖q − k‖²",
            lambda: (_positive(exp(2 * product) * (exp(apart) - 1) / m),),
        ),
        Mutant(
            "no explosion",
            "a relative variance of e^{‖q‖²} − 1 at k = q",
            lambda: (_relative((exp(coordinates(q[c] ** 2)) - 1) / m),),
        ),
    ),
    remark=(
        "That the variance of positive features tends to 0 with the weight itself is true of the absolute"
        " variance; relative to the weight it is (e^{‖q+k‖²} − 1)/m, which grows without bound where"
        " attention is largest."
    ),
)

"""Positive and trigonometric random features are unbiased for e^{q·k}; the first stay positive.

From the two Gaussian expectations: the factors e^{−‖q‖²/2}, e^{−‖k‖²/2} (or their inverses) turn ‖q ± k‖²/2
into q·k. A product of positive features is an exponential; one of trigonometric features is a cosine.
"""

from sympy import Expr, Rational, Symbol, exp, symbols

from derivations.performer._gaussian import (
    CALCULUS,
    DENSITY,
    SIZES,
    TRANSLATION,
    VARIABLES,
    apart,
    characteristic_function,
    d,
    generating_function,
    imaginary,
    own,
    product,
    shifted,
    squared,
    together,
)
from verify.derive import Chain, Definition, Setting
from verify.derive.tree import tree
from verify.model.claim import Assumption, Claim, Mutant, Status
from verify.model.evidence import Obligation, Part

generating, characteristic = symbols("E_1 E_2")


def _positive(sign: int) -> Obligation:
    mean = Definition("expectation of exp w·(q + k)", generating, exp(together / 2))
    setting = Setting((mean,), nonempty=(d,), instances=SIZES)
    chain = Chain("positive features", setting, exp(-sign * own / 2) * generating)
    return chain.unfold("complete the square", exp(product), mean.name).obligation()


def _trigonometric(norms: Expr) -> Obligation:
    mean = Definition("expectation of cos w·(q − k)", characteristic, exp(-apart / 2))
    setting = Setting((mean,), nonempty=(d,), instances=SIZES)
    chain = Chain("trigonometric features", setting, exp(norms / 2) * characteristic)
    return chain.unfold("complete the square", exp(product), mean.name).obligation()


def _cosine(high: str) -> Obligation:
    x: Symbol = symbols("x")
    polynomial = 1 - x**2 / 2 + x**4 * Rational(1, 24)
    data = {"term": tree(polynomial), "values": {"x": "2"}, "below": high}
    return Obligation("inequality", "1 − x²/2 + x⁴/24 at x = 2, an upper bound of cos 2", "E", data)


def parts() -> tuple[Part, ...]:
    """Both expectations, and signs."""
    return (
        generating_function(),
        characteristic_function(),
        Part(
            r"For $\varphi_i(x)=m^{-1/2}e^{w_i\cdot x-\|x\|^2/2}$, $\mathbb E\,\varphi(q)\cdot\varphi(k)"
            r"=e^{-(\|q\|^2+\|k\|^2)/2}\,\mathbb E\,e^{w\cdot(q+k)}=e^{q\cdot k}$ (each of the $m$ summands"
            r" has this mean over $m$).",
            (_positive(1),),
        ),
        Part(
            r"For the features $m^{-1/2}e^{\|x\|^2/2}(\cos w_i\cdot x,\sin w_i\cdot x)$,"
            r" $\mathbb E\,\varphi(q)\cdot\varphi(k)=e^{(\|q\|^2+\|k\|^2)/2}\,\mathbb E\cos"
            r" w\cdot(q-k)=e^{q\cdot k}$.",
            (_trigonometric(own),),
        ),
        Part(
            r"Positive features are exponentials, hence so are all estimated weights positive; with"
            r" trigonometric ones a weight can be negative: $d=m=1$, $w=2$, $q=1$, $k=0$ gives"
            r" $e^{1/2}\cos2$, and $\cos2\le1-2+\frac{16}{24}<0$.",
            (_cosine("-333/1000"),),
        ),
    )


CLAIM = Claim(
    id="performer.unbiased",
    title="Positive and trigonometric random features are unbiased for e^{q·k}; the first stay positive",
    statement=(
        r"For $w_i\sim N(0,I_d)$ the positive features $m^{-1/2}e^{w_i\cdot x-\|x\|^2/2}$ and the"
        r" trigonometric features $m^{-1/2}e^{\|x\|^2/2}(\cos w_i\cdot x,\sin w_i\cdot x)$ both have"
        r" $\mathbb E\,\varphi(q)\cdot\varphi(k)=e^{q\cdot k}$. Estimates with positive features are always"
        r" positive; with trigonometric ones they can be negative."
    ),
    source="article C; Choromanski et al., Rethinking Attention with Performers (arXiv 2009.14794), lemma 1",
    status=Status.AS_PRINTED,
    scope="every width d, every number of features m, all real q and k",
    variables=VARIABLES,
    assumptions=(
        DENSITY,
        TRANSLATION,
        CALCULUS,
        Assumption("expectations are linear"),
        Assumption(r"$\cos a\cos b+\sin a\sin b=\cos(a-b)$ and $\cos x\le1-x^2/2+x^4/24$"),
    ),
    asked="CE",
    parts=parts,
    mutants=(
        Mutant("norms multiplied", "positive features with e^{+‖x‖²/2}", lambda: (_positive(-1),)),
        Mutant("norms divided", "trigonometric features with e^{−‖x‖²/2}", lambda: (_trigonometric(-own),)),
        Mutant("sign of the square", "E exp w·z as e^{−‖z‖²/2}", lambda: (shifted(-squared / 2),)),
        Mutant("real shift", "cosines that grow as exponentials do", lambda: (imaginary(exp(squared / 2)),)),
        Mutant("more negative", "the bound of cos 2 below −1/2", lambda: (_cosine("-1/2"),)),
    ),
    remark="Unbiased weights do not make an unbiased output: the normaliser is estimated too, and a quotient"
    " of unbiased estimates is biased.",
)

"""With a similarity φ(q)·φ(k) attention factors through two sums over the history.

Numerator and denominator of the weighted mean are finite double sums, over tokens and over features;
exchanging them leaves a state that does not contain the query.
"""

from sympy import Expr, IndexedBase, Sum, symbols

from verify.derive import Chain, Definition, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

j, l, t, c, m = symbols("j l t c m")  # noqa: E741
phi_q, phi_k, v, S, n = (IndexedBase(name) for name in (r"\phi", r"\phi'", "v", "S", "z"))
SIZES = ({t: 1, m: 2, c: 1}, {t: 3, m: 2, c: 2})
state = Definition("state", S[l, c], Sum(phi_k[j, l] * v[j, c], (j, 1, t)), (l, c))
normaliser = Definition("normaliser", n[l], Sum(phi_k[j, l], (j, 1, t)), (l,))


def _similarity(token: Expr) -> Sum:
    return Sum(phi_q[l] * phi_k[token, l], (l, 1, m))


def _numerator(after: Expr) -> Obligation:
    chain = Chain(
        "the numerator", Setting((state,), instances=SIZES), Sum(_similarity(j) * v[j, c], (j, 1, t))
    )
    return chain.unfold("exchange the sums", after, "state").obligation()


def _denominator(last: Expr) -> Obligation:
    setting = Setting((normaliser,), instances=SIZES)
    chain = Chain("the denominator", setting, Sum(_similarity(j), (j, 1, last)))
    return chain.unfold("exchange the sums", Sum(phi_q[l] * n[l], (l, 1, m)), "normaliser").obligation()


def _one_token_more() -> Obligation:
    setting = Setting((state,), order=((1, t),), instances=({t: 1, l: 1, c: 1}, {t: 3, l: 2, c: 1}))
    chain = Chain("one token more", setting, S[l, c])
    chain = chain.unfold("the sum", state.rhs, "state")
    after = Sum(phi_k[j, l] * v[j, c], (j, 1, t - 1)) + phi_k[t, l] * v[t, c]
    return chain.split("its last term", after, t, t - 1).obligation()


def parts() -> tuple[Part, ...]:
    """Numerator, denominator, and the recurrence of the state."""
    return (
        Part(
            r"$\sum_{j\le t}(\phi(q)\cdot\phi(k_j))v_j=S^\top\phi(q)$ with $S=\sum_{j\le"
            r" t}\phi(k_j)v_j^\top$, for"
            r" every $t$.",
            (_numerator(Sum(phi_q[l] * S[l, c], (l, 1, m))),),
        ),
        Part(
            r"$\sum_{j\le t}\phi(q)\cdot\phi(k_j)=\phi(q)\cdot z$ with $z=\sum_{j\le t}\phi(k_j)$.",
            (_denominator(t),),
        ),
        Part(
            r"One token more adds $\phi(k_t)v_t^\top$ to $S$ (and, with values 1, $\phi(k_t)$ to $z$).",
            (_one_token_more(),),
        ),
    )


CLAIM = Claim(
    id="linear.associativity",
    title="With a similarity φ(q)·φ(k) attention factors through two sums over the history",
    statement=(
        r"For $\mathrm{sim}(q,k)=\phi(q)\cdot\phi(k)$ with $m$ features the output"
        r" $\sum_j\mathrm{sim}(q,k_j)v_j/\sum_j\mathrm{sim}(q,k_j)$ is $S^\top\phi(q)/(\phi(q)\cdot z)$ with"
        r" $S=\sum_j\phi(k_j)v_j^\top$ and $z=\sum_j\phi(k_j)$, for every number of tokens."
    ),
    source="article A, section 3; article C",
    status=Status.AS_PRINTED,
    scope="every T, m and value width, any feature map",
    variables=(
        Variable("t", r"number of tokens, an integer $\ge0$"),
        Variable(r"\phi", r"\mathbb{R}^K\to\mathbb{R}^m"),
        Variable("v_j", r"values, one coordinate at a time"),
    ),
    assumptions=(Assumption("the denominator is not 0 where the quotient is formed"),),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant("one token short", "the denominator without the last token", lambda: (_denominator(t - 1),)),
        Mutant(
            "half of the features",
            "the numerator read with the last feature missing",
            lambda: (_numerator(Sum(phi_q[l] * S[l, c], (l, 1, m - 1))),),
        ),
    ),
    remark="The exponential of q·k has no such finite form (rank.exponential-full).",
)

"""Keys through a shared latent: the up-projection moves to the query, the scores have low rank.

Scores of keys k_t = W c_t are scores of the latents c_t with the absorbed query Wᵀq: a sum exchanged.
Tokens stay apart, channels do not: whatever combination of tokens the latents lose, every query loses. A
key off the range of W cannot be represented: the query that is its residual measures the residual's square.
"""

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from verify.derive import Chain, Definition, Setting
from verify.derive.tree import tree
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

i, l, t, a, d, e, T, K, R = symbols("i l t a d e T K R")  # noqa: E741
q, k, latent, W, U, p, z, x = (IndexedBase(name) for name in ("q", "k", "c", "W", "U", "p", "z", "x"))
SIZES = ({T: 3, K: 2, R: 1, t: 2, d: 1, a: 2}, {T: 4, K: 3, R: 2, t: 1, d: 2, a: 1})
NONEMPTY = (T, K, R)


def _up(channel: Expr) -> Sum:
    """(W c_t) in one key channel."""
    return Sum(W[channel, l] * latent[t, l], (l, 1, R))


absorbed = Sum(W[i, l] * q[i], (i, 1, K))


def _absorption(after: Expr) -> Obligation:
    key = Definition("key", k[t, i], _up(i), free=(i,))
    setting = Setting((key,), nonempty=NONEMPTY, instances=SIZES)
    chain = Chain("a score through the latent", setting, Sum(q[i] * k[t, i], (i, 1, K)))
    chain = chain.unfold("the key is an up-projected latent", Sum(q[i] * _up(i), (i, 1, K)), "key")
    return chain.rearrange("exchange the sums", after).obligation()


def _values(after: Expr) -> Obligation:
    up = Sum(U[d, l] * latent[t, l], (l, 1, R))
    setting = Setting(nonempty=NONEMPTY, instances=SIZES)
    chain = Chain("the output through the latent", setting, Sum(p[t] * up, (t, 1, T)))
    return chain.rearrange("attend to the latents, project once", after).obligation()


def _invisible(after: Expr | int) -> Obligation:
    scores = Sum(x[a, l] * latent[t, l], (l, 1, R))
    lost = IndexedBase("b")
    definitions = (
        Definition("combination of latents", lost[l], Sum(z[t] * latent[t, l], (t, 1, T)), free=(l,)),
        Definition("latents cancel", lost[l], Integer(0), free=(l,)),
    )
    setting = Setting(definitions, nonempty=NONEMPTY, instances=SIZES)
    chain = Chain("a combination of columns of the score matrix", setting, Sum(z[t] * scores, (t, 1, T)))
    combined = Sum(x[a, l] * lost[l], (l, 1, R))
    chain = chain.unfold("exchange the sums", combined, "combination of latents")
    return chain.unfold("the latents cancel", after, "latents cancel").obligation()


def _residual(after: Expr) -> Obligation:
    own = Definition("query", q[i], k[t, i] - _up(i), free=(i,))
    setting = Setting((own,), nonempty=NONEMPTY, instances=SIZES)
    error = Sum(q[i] * k[t, i], (i, 1, K)) - Sum(q[i] * _up(i), (i, 1, K))
    chain = Chain("the score error at the query that is the residual", setting, error)
    return chain.unfold("insert the query", after, "query").obligation()


def _zero_only(name: str) -> Obligation:
    """A sum of squares that vanishes has only vanishing terms: each is at most the sum."""
    rho = IndexedBase(name)
    setting = Setting(order=((1, i), (i, K)), instances=({K: 3, i: 2}, {K: 4, i: 1}))
    chain = Chain("one square is at most the sum of squares", setting, Sum(rho[e] ** 2, (e, 1, K)))
    before, later = Sum(rho[e] ** 2, (e, 1, i - 1)), Sum(rho[e] ** 2, (e, i + 1, K))
    chain = chain.split("cut after i", Sum(rho[e] ** 2, (e, 1, i)) + later, K, i)
    chain = chain.split("take channel i out", before + rho[i] ** 2 + later, i, i - 1)
    return chain.drop("the other squares are not negative", rho[i] ** 2, before, later).obligation()


def _rotation(target: Expr) -> Obligation:
    """One latent at two positions half a turn apart: one absorbed query would need both scores."""
    score, read = symbols("s y")
    data = {
        "equations": [tree(read - score), tree(read + score)],
        "multipliers": [tree(Integer(-1)), tree(Integer(1))],
        "target": tree(target * score),
    }
    label = "a read that equals s and −s forces s = 0"
    return Obligation("polynomial-certificate", label, "E", data)


def parts() -> tuple[Part, ...]:
    """Absorption, rank, exactness, and what a rotation in between does."""
    return (
        Part(
            r"For $k_t=Wc_t$ every score is $q\cdot k_t=(W^\top q)\cdot c_t$: the latent is the cache, one"
            r" per token.",
            (_absorption(Sum(absorbed * latent[t, l], (l, 1, R))),),
        ),
        Part(
            r"For $v_t=Uc_t$ the output is $\sum_tp_tv_t=U\sum_tp_tc_t$: one projection per query.",
            (_values(Sum(U[d, l] * Sum(p[t] * latent[t, l], (t, 1, T)), (l, 1, R))),),
        ),
        Part(
            r"The score matrix is $XC^\top$ with $R$ columns in $X$ and $C$, so by rank.finite-feature its"
            r" rank is at most the latent width; and $\sum_tz_tc_t=0$ implies $\sum_tz_ts_{at}=0$ for every"
            r" query $a$. (For $T>R$ such a $z\ne0$ exists: collision.nullspace.)",
            (_invisible(0),),
        ),
        Part(
            r"Compression is exact for every query iff the key is in the range of $W$: at the query"
            r" $q=k_t-Wc_t$ the error is $\|k_t-Wc_t\|^2$, which vanishes only if every channel of"
            r" $k_t-Wc_t$ does.",
            (_residual(Sum((k[t, i] - _up(i)) ** 2, (i, 1, K))), _zero_only("rho")),
        ),
        Part(
            r"A position-dependent rotation between $q$ and $Wc_t$ in general cannot be absorbed: half a turn"
            r" gives one latent the scores $s$ and $-s$ at two positions, and where $s\ne0$ no read"
            r" $x\cdot c$ of the latent is both.",
            (_rotation(Integer(2)),),
        ),
    )


CLAIM = Claim(
    id="mla.channel-compression",
    title="Keys through a shared latent: the up-projection moves to the query, the scores have low rank",
    statement=(
        r"For keys $k_t=Wc_t$ and values $v_t=Uc_t$ with latents $c_t\in\mathbb R^R$, $q\cdot"
        r" k_t=(W^\top q)\cdot c_t$ and $\sum_tp_tv_t=U\sum_tp_tc_t$ exactly. Tokens stay separate; the score"
        r" matrix has rank at most $R$. Given keys are scored exactly for every query iff they lie in the"
        r" range of $W$."
    ),
    source="article A, section 5; article B, section 1",
    status=Status.AS_PRINTED,
    scope="every number of tokens, head width and latent width; keys without position-dependent rotation",
    variables=(
        Variable("T, K, R", "tokens, key width, latent width, integers ≥ 1"),
        Variable("q", r"\mathbb{R}^K"),
        Variable("c_t", r"\mathbb{R}^R"),
        Variable("W", r"\mathbb{R}^{K\times R}"),
        Variable("U", r"\mathbb{R}^{V\times R}"),
    ),
    assumptions=(
        Assumption("exact arithmetic"),
        Assumption("rank is the dimension of the image; R vectors span at most R dimensions"),
        Assumption("nothing that depends on the position acts between query and up-projected latent"),
    ),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant(
            "not transposed",
            "the absorbed query formed with the latent of channel l only",
            lambda: (_absorption(Sum(W[i, l] * q[i] * latent[t, i], (i, 1, K), (l, 1, R))),),
        ),
        Mutant(
            "one token",
            "values projected from a single latent",
            lambda: (_values(Sum(U[d, l] * latent[t, l], (l, 1, R)) * Sum(p[t], (t, 1, T))),),
        ),
        Mutant(
            "combination kept",
            "cancelled latents that a query still sees",
            lambda: (_invisible(Sum(x[a, l], (l, 1, R))),),
        ),
        Mutant(
            "error not squared",
            "the error at its own query as the sum of residuals",
            lambda: (_residual(Sum(k[t, i] - _up(i), (i, 1, K))),),
        ),
        Mutant(
            "no factor",
            "the certificate for the rotation off by its factor",
            lambda: (_rotation(Integer(1)),),
        ),
    ),
    remark=(
        "This compresses channels, not tokens: the number of latents still grows with the history. The rank"
        " bound is a floor on the error by rank.gap."
    ),
)

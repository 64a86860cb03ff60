"""Coarse-graining splits the divergence: pooling keeps the part between blocks, loses the rest.

Blocks are given by shares μ[b, j] of token j in block b with Σ_b μ[b, j] = 1 (0 or 1 for a partition). With
R_b = ln(A_b/P_b) for the block masses, ln(a_j/p_j) = R_b + (ln(a_j/p_j) − R_b) is summed over blocks and
tokens. Pooling attends to blocks and spreads each block's mass evenly: the part within blocks is then the
divergence from even weights, whatever the block masses.
"""

from sympy import Expr, IndexedBase, Integer, Sum, log, symbols

from derivations.sparse._divergence import nonnegative
from derivations.sparse._symbols import everything, i, j, n, p
from verify.derive import Chain, Definition, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

b, B, G = symbols("b B G")
a, eta, member, cover, mass, coarse, ratio, guess = (
    IndexedBase(name) for name in ("a", "eta", "mu", "C", "A", "P", "R", "Q")
)
SIZES = ({n: 3, B: 2, b: 1, j: 2}, {n: 4, B: 3, b: 2, j: 1})
POOLED = ({B: 2, G: 2}, {B: 3, G: 2})
pointwise = eta[j] - a[j] * log(p[j])


def _blocks(summand: Expr) -> Sum:
    return Sum(summand, (b, 1, B))


def _split(within: Expr) -> Obligation:
    """Σ_j (η_j − a_j ln p_j) = Σ_b A_b R_b + Σ_b Σ_j μ[b, j](η_j − a_j ln p_j − a_j R_b)."""
    definitions = (
        Definition("every token is covered", cover[j], Integer(1), free=(j,)),
        Definition("cover", cover[j], _blocks(member[b, j]), free=(j,)),
        Definition("block mass", mass[b], everything(member[b, j] * a[j]), free=(b,)),
    )
    setting = Setting(definitions, positive=(p,), nonempty=(n, B), instances=SIZES)
    chain = Chain("divergence between blocks and within them", setting, everything(pointwise))
    covered = everything(cover[j] * pointwise)
    chain = chain.unfold("every token lies in a block", covered, "every token is covered")
    by_block = _blocks(everything(member[b, j] * pointwise))
    chain = chain.unfold("block by block", by_block, "cover")
    after = _blocks(mass[b] * ratio[b]) + within
    return chain.unfold("add and subtract A_b R_b", after, "block mass").obligation()


def _conditional() -> Obligation:
    """What is left inside a block is the log ratio of the conditional weights."""
    named = Definition("R", ratio[b], log(mass[b] / coarse[b]))
    setting = Setting((named,), positive=(a, p, mass, coarse), instances=SIZES)
    chain = Chain("conditional weights", setting, log(a[j] / mass[b]) - log(p[j] / coarse[b]))
    return chain.unfold("logarithms of quotients", log(a[j]) - log(p[j]) - ratio[b], "R").obligation()


def _weighted() -> Obligation:
    inside = member[b, j] * (log(a[j] / mass[b]) - log(p[j] / coarse[b]))
    setting = Setting(positive=(mass, coarse, a, p), nonempty=(n,), instances=SIZES)
    start = mass[b] * everything(a[j] / mass[b] * inside)
    chain = Chain("block mass times conditional divergence", setting, start)
    return chain.rearrange("the mass cancels", everything(a[j] * inside)).obligation()


def _tokens(summand: Expr) -> Sum:
    return Sum(summand, (i, 1, G))


lost = _blocks(_tokens(p[b, i] * (log(p[b, i] / coarse[b]) - log(1 / G))))


def _pooled(after: Expr) -> Obligation:
    block = Definition("block mass", coarse[b], _tokens(p[b, i]), free=(b,))
    setting = Setting((block,), positive=(p, coarse, guess, G), nonempty=(B, G), instances=POOLED)
    start = _blocks(_tokens(p[b, i] * (log(p[b, i]) - log(guess[b] / G))))
    chain = Chain("the divergence from even weights inside each block", setting, start)
    return chain.unfold("between blocks, within blocks", after, "block mass").obligation()


between = _blocks(coarse[b] * (log(coarse[b]) - log(guess[b])))


def _exact(after: Expr) -> Obligation:
    masses = Definition("right masses", guess[b], coarse[b], free=(b,))
    setting = Setting((masses,), positive=(coarse, guess), nonempty=(B,), instances=POOLED)
    chain = Chain("with the right block masses", setting, between)
    return chain.unfold("nothing is lost between blocks", after, "right masses").obligation()


def _inside() -> Expr:
    return _blocks(everything(member[b, j] * (pointwise - a[j] * ratio[b])))


def parts() -> tuple[Part, ...]:
    """The chain rule, the conditional weights, and pooling."""
    return (
        Part(
            r"$\mathrm{KL}(a\|p)=\sum_bA_bR_b+\sum_b\sum_{j\in b}a_j(\ln\frac{a_j}{p_j}-R_b)$ for every"
            r" partition into blocks of masses $A_b$, $P_b$ and any numbers $R_b$; $\eta_j$ stands for"
            r" $a_j\ln a_j$, or 0.",
            (_split(_inside()),),
        ),
        Part(
            r"With $R_b=\ln(A_b/P_b)$ the first sum is $\mathrm{KL}(A\|P)$ and the second is"
            r" $\sum_bA_b\,\mathrm{KL}(a|_b\,\|\,p|_b)$ with $a|_b=a/A_b$ and $p|_b=p/P_b$ inside block $b$;"
            r" tokens with $a_j=0$ contribute 0 to both sides.",
            (_conditional(), _weighted()),
        ),
        Part(
            r"Pooling into blocks of $G$ gives every token of block $b$ the weight $Q_b/G$, and"
            r" $\mathrm{KL}(p\|Q/G)=\mathrm{KL}(P\|Q)+\sum_bP_b\,\mathrm{KL}(p|_b\,\|\,1/G)$, for every"
            r" query: the second part does not depend on $Q$, and the first vanishes at $Q=P$.",
            (_pooled(between + lost), _exact(Integer(0))),
        ),
        Part(
            r"Divergences are sums of terms that are at least 0 and 0 only where the weights agree (with"
            r" blocks, or the tokens of one block, in the place of tokens): pooling never loses less than"
            r" the part within blocks, and loses exactly that only at $Q=P$.",
            nonnegative(),
        ),
    )


CLAIM = Claim(
    id="sparse.kl-chain",
    title="Coarse-graining splits the divergence: pooling keeps the part between blocks, loses the rest",
    statement=(
        r"For weights $a,p$ on tokens and any partition into blocks,"
        r" $\mathrm{KL}(a\|p)=\mathrm{KL}(A\|P)+\sum_bA_b\,\mathrm{KL}(a|_b\,\|\,p|_b)$ with $A,P$ the block"
        r" masses. Attention that spreads block masses $Q_b$ evenly over blocks of $G$ tokens is at"
        r" divergence $\mathrm{KL}(P\|Q)+\sum_bP_b\,\mathrm{KL}(p|_b\,\|\,1/G)$ from softmax $p$: the part"
        r" within blocks is lost for every query, and nothing else is if the block masses are right."
    ),
    source="article A, section 5; article B, section 1",
    status=Status.AS_PRINTED,
    scope=(
        "every number of tokens and blocks; any partition for the chain rule, blocks of one size for pooling"
    ),
    variables=(
        Variable("n, B, G", "tokens, blocks, tokens per block, integers ≥ 1"),
        Variable("a, p", "weights on tokens, $p_j>0$; $a_j=0$ is allowed in the chain rule"),
        Variable(r"\mu_{bj}", "1 if token $j$ is in block $b$, else 0 (shares with sum 1 also do)"),
        Variable("Q", "weights on blocks, all > 0"),
    ),
    assumptions=(
        Assumption(r"$0\ln0=0$"),
        Assumption("block masses are positive where their logarithm is taken; an empty block drops out"),
    ),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant(
            "block counted twice",
            "the part within blocks without subtracting R",
            lambda: (_split(_blocks(everything(member[b, j] * pointwise))),),
        ),
        Mutant("nothing lost", "pooling without the part within blocks", lambda: (_pooled(between),)),
        Mutant(
            "blocks of one",
            "the loss measured against weight 1 instead of 1/G",
            lambda: (_pooled(between + _blocks(_tokens(p[b, i] * log(p[b, i] / coarse[b])))),),
        ),
        Mutant("wrong masses", "a loss between blocks at Q = P", lambda: (_exact(_blocks(coarse[b])),)),
    ),
    remark="Better block scores cannot recover the part within blocks; only looking into the blocks can.",
)

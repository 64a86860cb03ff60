"""A window of w reaches L·w tokens back in L layers; one global token: all are at most 2 hops apart.

Every layer moves information by at most w tokens, and by w along the path that always takes the farthest. A
token that reads all and is read by all is a path of two hops; under a causal mask the first token cannot be
one, for it reads nobody.
"""

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from derivations.sparse._hops import hops, window
from verify.derive import Chain, Definition, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

r, L, w, n, g, h, s, t, x = symbols("r L w n g h s t x")
step, slack, reads = IndexedBase("d"), IndexedBase("sigma"), IndexedBase("R")
SIZES = ({L: 2}, {L: 4})
LINKS = ({n: 3, g: 2, t: 1, s: 3}, {n: 4, g: 1, t: 3, s: 2})
TOKENS, WIDTH = 14, 3


def _layers(summand: Expr) -> Sum:
    return Sum(summand, (r, 1, L))


def _reach(bound: Expr) -> Obligation:
    each = Definition("slack", slack[r], w - step[r], free=(r,))
    setting = Setting((each,), (), (), (slack,), nonempty=(L,), instances=SIZES)
    chain = Chain("how far back a path of L reads goes", setting, bound)
    total = _layers(step[r])
    chain = chain.unfold("layer by layer", total + _layers(slack[r]), "slack")
    return chain.drop("no layer goes beyond its window", total, _layers(slack[r])).obligation()


def _farthest() -> Obligation:
    each = Definition("farthest", step[r], w, free=(r,))
    chain = Chain("the farthest path", Setting((each,), nonempty=(L,), instances=SIZES), _layers(step[r]))
    return chain.unfold("w in every layer", L * w, "farthest").obligation()


def _replay(layers: int) -> Obligation:
    last, reach = TOKENS - 1, layers * WIDTH
    return hops(
        f"{TOKENS} tokens, window {WIDTH}, {layers} layers",
        window(TOKENS, WIDTH),
        layers,
        reached=[[last, last - 12]],
        unreached=[[last, last - reach - 1]],
    )


def _global(*rows: str) -> Obligation:
    """Paths of two reads from t to s are at least 1: R[a, b] is 1 if a reads b, else 0."""
    read_by_all = Definition("read by all", reads[x, g], Integer(1), free=(x,))
    reads_all = Definition("reads all", reads[g, x], Integer(1), free=(x,))
    order = ((1, g), (g, n))
    setting = Setting((read_by_all, reads_all), (), (), (reads,), order=order, instances=LINKS)
    path = reads[t, h] * reads[h, s]
    chain = Chain("paths of two reads between any two tokens", setting, Sum(path, (h, 1, n)))
    before, later = Sum(path, (h, 1, g - 1)), Sum(path, (h, g + 1, n))
    chain = chain.split("cut after the global token", Sum(path, (h, 1, g)) + later, n, g)
    chain = chain.split("take it out", before + path.subs(h, g) + later, g, g - 1)
    chain = chain.unfold("the path through it exists", before + 1 + later, *rows)
    return chain.drop("there may be more", Integer(1), before, later).obligation()


def _both_ways(*, causal: bool) -> Obligation:
    """9 tokens, window 1, token 0 read by all and, unless causal, reading all."""
    reads = [sorted({*row, 0}) for row in window(9, 1)]
    reads[0] = [] if causal else list(range(9))
    pairs = [[t, s] for t in range(9) for s in range(9)]
    return hops("9 tokens, window 1, one global token: all pairs in 2 layers", reads, 2, reached=pairs)


def _first_is_global() -> Obligation:
    reads = [sorted({*row, 0} - {t}) for t, row in enumerate(window(9, 1))]
    return hops("under a causal mask 8 does not hear of 5 in 2 layers", reads, 2, unreached=[[8, 5]])


def parts() -> tuple[Part, ...]:
    """Reach of windows, a replay, and global tokens."""
    return (
        Part(
            r"A path of $L$ reads of at most $w$ tokens each goes back at most $Lw$ tokens, and $Lw$ is"
            r" attained.",
            (_reach(L * w), _farthest()),
        ),
        Part(
            r"Replayed for 14 tokens, $w=3$, 4 layers: the last token hears of the token 12 before it and"
            r" not of the one 13 before it.",
            (_replay(4),),
        ),
        Part(
            r"If one token reads all and is read by all, any two tokens are at most 2 hops apart, for every"
            r" number of tokens and any other links: $\sum_hR_{th}R_{hs}\ge R_{tg}R_{gs}=1$ paths of two"
            r" reads join them.",
            (_global("read by all", "reads all"), _both_ways(causal=False)),
        ),
        Part(
            r"Under a causal mask a global first token does not do this: it reads nobody, and with a window"
            r" of 1 token 8 does not hear of token 5 in 2 layers.",
            (_first_is_global(),),
        ),
    )


CLAIM = Claim(
    id="sparse.graph-reach",
    title="A window of w reaches L·w tokens back in L layers; one global token: all are at most 2 hops apart",
    statement=(
        r"With a sliding window of $w$ earlier tokens, $L$ layers carry information over at most $Lw$ tokens,"
        r" attained. With one token that reads all tokens and is read by all, any two tokens are at most 2"
        r" hops apart; this needs reading in both directions, which a causal mask does not give the first"
        r" token."
    ),
    source="article A, section 5",
    status=Status.AS_PRINTED,
    scope="every window, depth and number of tokens; reachability only, not how much is carried",
    variables=(
        Variable("w", "window, an integer ≥ 1"),
        Variable("L", "layers, an integer ≥ 1"),
        Variable("R_{ab}", "1 if token $a$ reads token $b$, else 0; $R_{tg}=R_{gs}=1$ with $g$ global"),
        Variable("d_r", r"tokens that a path moves back in layer $r$, at most $w$"),
    ),
    assumptions=(Assumption("a token keeps what it knows from layer to layer (residual stream)"),),
    asked="E",
    parts=parts,
    mutants=(
        Mutant("one layer short", "a reach of (L − 1)w", lambda: (_reach((L - 1) * w),)),
        Mutant("three layers", "12 tokens back in three layers", lambda: (_replay(3),)),
        Mutant("read by all only", "a global token that reads nobody", lambda: (_global("read by all"),)),
        Mutant(
            "causal mask", "all pairs in 2 layers under a causal mask", lambda: (_both_ways(causal=True),)
        ),
    ),
    remark=(
        "That a path exists says nothing of how much passes: each hop is a softmax average. Random links are"
        " not treated: their expected hop count is a matter of simulation."
    ),
)

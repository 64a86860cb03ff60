"""What attention layers keep and move per token: six kinds, four ways of use, and where they cross.

Sums over tokens, tiles and blocks by induction; differences factored, so that each crossover is read off.
The same formulas are counted by a program that keeps and reads every number of a small layer one by one.
"""

from sympy import Expr, IndexedBase, Integer, Symbol, symbols

from derivations.memory._access import G, T, c, counted, g, i, k, m, n, per_token, s, w
from verify.derive import Chain, Definition, Induction, Setting
from verify.derive.tree import tree
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

B, C, a, d, h, p = symbols("B C a d h p")
total = IndexedBase("R")
grown = G * T + G * (G + 1) / 2
"""Σ over G decoded tokens of the history each one sees."""


def _total(title: str, variable: Symbol, one: Expr, rhs: Expr, start: Expr | int = 0) -> Obligation:
    """R counts ``one`` more for every further token, tile or block; in all it is ``rhs``."""
    goal = Induction(title, variable, Integer(0), total[variable], rhs)
    none = Definition("none yet", total[0], start)
    base = Chain("none yet", Setting((none,)), total[0])
    base = base.unfold("what is there at the start", goal.rhs.subs(variable, 0), "none yet")
    more = Definition("one more", total[variable], total[variable - 1] + one)
    setting = Setting(
        (more, goal.hypothesis),
        nonzero=(m,),
        order=((1, variable),),
        instances=({variable: 2}, {variable: 5}),
    )
    step = Chain("one more", setting, total[variable])
    step = step.unfold("what it adds", more.rhs, "one more")
    return goal.obligation(base, step.unfold("those before", goal.rhs, "induction hypothesis"))


def _difference(title: str, more: Expr, less: Expr, factored: Expr, *nonzero: Expr) -> Obligation:
    """One cost minus another, as a positive factor times the distance from the crossover."""
    setting = Setting(nonzero=nonzero, instances=({},))
    return Chain(title, setting, more - less).rearrange("factor", factored).obligation()


def _kept() -> tuple[Obligation, ...]:
    return (
        _total("kept by a cache", T, c, c * T),
        _total("kept for top-k, with its indexer", T, c + i, (c + i) * T),
        _total("kept in pooled entries and a window", B, c, c * (w + B), c * w),
    )


def _generated(history: Expr = grown) -> tuple[Obligation, ...]:
    blocks = T / m + B - 1
    block = c * (m * w + m * blocks + 1)
    pooled = c * (m * B * w + T * B + m * B * (B - 1) / 2 + B)
    return (
        _total("read from a cache", G, c * (T + G), c * history),
        _total("read by top-k", G, i * (T + G) + c * k, i * history + c * k * G),
        _total("read from pooled entries and a window, by blocks", B, block, pooled),
        _total("read and written, a state", G, 2 * s, 2 * s * G),
    )


def _prefill(tile: Expr = n) -> tuple[Obligation, ...]:
    cached, stated = c * C * n * (n + 1) / 2, 2 * s * n
    factored = n * c * (C * n + C - 4 * s / c) / 2
    return (
        _total("read by tiles of C queries", n, c * C * tile, cached),
        _total("a state read and written per chunk of C", n, 2 * s, stated),
        _difference("cache minus state, T = nC", cached, stated, factored, c),
    )


def _reuse() -> tuple[Obligation, ...]:
    shared, apart, states = c * (T + n * G), n * c * (T + G), (n + 1) * s
    return (
        _difference("without sharing, with sharing", apart, shared, (n - 1) * c * T),
        _difference("shared cache, states", shared, states, c * (T + n * G - (n + 1) * s / c), c),
        _difference("snapshots every p tokens, cache", s * T / p, c * T, T * c / p * (s / c - p), c, p),
    )


def _drafts(share: int = 2) -> tuple[Obligation, ...]:
    alone, together = c * (g * T + g * (g + 1) / 2), c * (T + g)
    return (
        _difference("token by token, in one pass", alone, together, (g - 1) * c * (T + g / share)),
        _difference("a state, the same", 2 * s * g, 2 * s, 2 * s * (g - 1)),
        _difference("snapshots, writes kept", g * s, g * a, g * (s - a)),
    )


def _crossovers(move: int = 2) -> tuple[Obligation, ...]:
    heads = Setting(
        (Definition("cache", c, 2 * h * d), Definition("state", s, h * d**2)), nonzero=(h, d), instances=({},)
    )
    chain = Chain("where a cache has outgrown a state of the same heads", heads, move * s / c)
    pooled = c * (w + T / m)
    return (
        _difference("cache, state", c * T, s, c * (T - s / c), c),
        chain.unfold("h heads of width d", d, "cache", "state").obligation(),
        _difference("cache, top-k", c * T, i * T + c * k, (c - i) * (T - c * k / (c - i)), c - i),
        _difference("top-k, state", i * T + c * k, 2 * s, i * (T - (2 * s - c * k) / i), i),
        _difference("cache, pooled", c * T, pooled, c * (m - 1) / m * (T - w * m / (m - 1)), m, m - 1),
        _difference("pooled, state", pooled, 2 * s, c / m * (T - m * (2 * s / c - w)), c, m),
    )


def _counts() -> tuple[Obligation, ...]:
    """Longer runs, counted."""
    plain = {"prompt": 64, "generated": 32, "branches": 0, "draft": 1}
    three, drafted = {**plain, "branches": 3}, {**plain, "draft": 4}
    cached = {"kept": c * (T + G), "read": c * grown, "written": c * G}
    top = {"kept": (c + i) * (T + G), "read": i * grown + c * k * G, "written": (c + i) * G}
    pooled_read = c * (G * w + T * G / m + G * (G / m - 1) / 2 + G / m)
    pooled = {"kept": c * (w + (T + G) / m), "read": pooled_read, "written": c * (G + G / m)}
    branched = {"kept": c * (T + n * G), "read": n * c * grown, "written": n * c * G}
    passes = {**cached, "read": c * (T * G / g + G * (G / g + 1) / 2)}
    return (
        counted("cache", "32 tokens from a cache of 64, counted", plain, cached),
        counted("top-k", "32 tokens by top-k, counted", plain, top),
        counted("pooled", "two blocks of 16 tokens, pooled, counted", plain, pooled),
        counted(
            "state", "32 tokens by a state, counted", plain, {"kept": s, "read": s * G, "written": s * G}
        ),
        counted("cache", "three continuations of one prefix, counted", three, branched),
        counted(
            "state",
            "three continuations of one state, counted",
            three,
            {"kept": (n + 1) * s, "read": n * s * G, "written": n * s * G},
        ),
        counted("cache", "passes of four drafted tokens, counted", drafted, passes),
        counted(
            "state",
            "passes of four drafted tokens by a state, counted",
            drafted,
            {"kept": s, "read": s * G / g, "written": s * G / g},
        ),
    )


def _printed(label: str, average: Expr, above: str, below: str) -> Obligation:
    data = {"term": tree(average), "values": {}, "above": above, "below": below}
    return Obligation("inequality", label, "E", data)


def _mixed(latent: int = 8) -> Expr:
    """State layers of 96·128² numbers over 2²⁰ tokens, and latent layers of 512 + 64."""
    states = Integer(96) * 128**2 / Integer(2) ** 20
    return (23 * states + latent * Integer(512 + 64)) / (23 + latent)


def _article(latent: int = 8) -> tuple[Obligation, ...]:
    mixed, pooled = _mixed(latent), (30 * Integer(512) / 4 + 31 * Integer(512) / 128) / 61
    return (
        _printed("23 state layers, 8 latent ones", mixed, "1497575/10000", "1497585/10000"),
        _printed("30 layers pooled by 4, 31 by 128", pooled, "649835/10000", "649845/10000"),
        _printed("their ratio", mixed / pooled, "230455/100000", "230465/100000"),
    )


def parts() -> tuple[Part, ...]:
    """Per token, generation, prefill, reuse, drafts, crossovers, longer runs, and the article's averages."""
    return (
        Part(
            r"At a history of $T$ a cache keeps and reads $cT$ numbers (full attention; a latent cache with"
            r" $c$ its width), a window $cw$; top-$k$ keeps $(c+i)T$ and reads $iT+ck$; pooling keeps and"
            r" reads $c(w+T/m)$; a state keeps and reads $s$ and writes it back.",
            (
                *_kept(),
                *(per_token(scheme) for scheme in ("cache", "window", "top-k", "pooled", "state")),
                per_token("cache", width=6),
            ),
        ),
        Part(
            r"Decoding $G$ tokens after a prompt of $T$ reads $c(GT+\frac{G(G+1)}2)$ from a cache,"
            r" $i(GT+\frac{G(G+1)}2)+ckG$ by top-$k$, $c(mBw+TB+\frac{mB(B-1)}2+B)$ from pooled entries over"
            r" $G=mB$ tokens, and moves $2sG$ for a state.",
            _generated(),
        ),
        Part(
            r"Prefill of $T=nC$ tokens in tiles of $C$ queries reads $cC\frac{n(n+1)}2$ from a cache; a state"
            r" moves $2sn$ in chunks of $C$: less from $T+C>4s/c$ on.",
            _prefill(),
        ),
        Part(
            r"$n$ continuations of $G$ tokens share a cached prefix: $c(T+nG)$, $(n-1)cT$ less than without"
            r" sharing; states take $(n+1)s$, less once $T+nG>(n+1)s/c$. A cache resumes at any token;"
            r" snapshots of a state every $p$ tokens take $sT/p$, more than the whole cache for $p<s/c$.",
            _reuse(),
        ),
        Part(
            r"Verifying $g$ drafted tokens in one pass reads $(g-1)c(T+g/2)$ numbers less from a cache, and"
            r" moves $2s(g-1)$ less for a state. To undo drafts a state needs $gs$ numbers of snapshots, or"
            r" the $ga$ numbers of the drafts' keys, values, gates and strengths to write again: less for"
            r" $a<s$.",
            _drafts(),
        ),
        Part(
            r"Crossovers in $T$: a cache outgrows a state from $s/c$ on, and is read for more than the state"
            r" is moved from $2s/c$ on, which is $d$ for $h$ heads of width $d$ ($c=2hd$, $s=hd^2$); top-$k$"
            r" reads less than the cache from $\frac{ck}{c-i}$ on ($i<c$) and more than a state moves from"
            r" $(2s-ck)/i$ on; pooling reads less than the cache from $\frac{wm}{m-1}$ on and more than a"
            r" state moves from $m(2s/c-w)$ on.",
            _crossovers(),
        ),
        Part(
            r"Counted one by one, runs of 32 tokens after 64 read, write and keep what the formulas say:"
            r" alone, as three continuations, and in passes of four.",
            _counts(),
        ),
        Part(
            r"Article B's averages come out for 23 layers with $96\cdot128^2$ numbers of state over $2^{20}$"
            r" tokens and 8 with a latent of $512+64$: $149.758$ numbers per token and layer; and for 30"
            r" layers of $512$-wide entries pooled by 4 and 31 pooled by 128: $64.984$. The ratio is"
            r" $2.3046$.",
            _article(),
        ),
    )


CLAIM = Claim(
    id="memory.access-model",
    title="What attention layers keep and move per token: six kinds, four ways of use, and where they cross",
    statement=(
        r"With $c$ numbers per cached token, a window $w$, an indexer of $i$ numbers choosing $k$ tokens,"
        r" pooling by $m$ beside a window, and a state of $s$ numbers, decoding one token at history $T$"
        r" reads $cT$ (full or latent), $cw$, $iT+ck$, $c(w+T/m)$, or moves $2s$; bytes are numbers times"
        r" their size. Only the window and the state do not grow with $T$; a state moves less than a cache is"
        r" read for from $T>2s/c$ on, and pooled or top-$k$ layers read less than full ones by a factor, not"
        r" by an order in $T$."
    ),
    source="article A, section 6; article B, section 1",
    status=Status.AS_PRINTED,
    scope="every size; T ≥ w and T ≥ k, and whole blocks for pooling",
    variables=(
        Variable("T, G, n, g", "history, decoded tokens, continuations, drafted tokens"),
        Variable("c, i, s", "numbers per cached token, per index entry, per state"),
        Variable("w, k, m", "window, chosen tokens, tokens per pooled entry"),
        Variable("C, p, a", "tile or chunk, distance of snapshots, numbers a token writes to a state"),
    ),
    assumptions=(
        Assumption("every kept number that is attended to is read once per pass; weights are not counted"),
        Assumption("a token is written before it is attended to; the indexer reads every token's entry"),
        Assumption("pooling keeps the last w ≥ m tokens as they are, and one entry per full block"),
        Assumption("a state is read and written back once per pass"),
    ),
    asked="E",
    parts=parts,
    mutants=(
        Mutant(
            "own token",
            "generation that does not read its own token",
            lambda: _generated(G * T + G * (G - 1) / 2),
        ),
        Mutant("one number more", "top-k reading one number more", lambda: (per_token("top-k", 1),)),
        Mutant("all tiles alike", "every tile reading one tile", lambda: _prefill(Integer(1))),
        Mutant("written once", "the crossover d for a state that is only read", lambda: _crossovers(1)),
        Mutant("whole draft", "a pass that saves c(T + g) per further token", lambda: _drafts(1)),
        Mutant(
            "free branches",
            "continuations of a state without a copy each",
            lambda: (
                counted(
                    "state",
                    "mutant",
                    {"prompt": 64, "generated": 32, "branches": 3, "draft": 1},
                    {"kept": s, "read": n * s * G, "written": n * s * G},
                ),
            ),
        ),
        Mutant("layers", "the average with 7 latent layers", lambda: _article(7)),
    ),
    remark=(
        "The stored copy of article B prints the two averages without their layers; these layer counts are"
        " the ones found to reproduce both averages and their ratio. Its printed «1.5» is a state spread over"
        " 2²⁰ tokens: at a shorter history the same state weighs more per token."
    ),
)

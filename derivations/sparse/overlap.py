"""Pooling windows without overlap part neighbours; windows of 2m at stride m part none.

Slot b of width m starts after token mb and ends at m(b + 1): the tokens at m(b + 1) and after it share
none. With width 2m the slot that starts after mb holds every neighbouring pair that starts in its first
half. Slots are as many as before and twice as wide.
"""

from sympy import Expr, Sum, symbols

from derivations.sparse._hops import hops, neighbours, slots
from verify.derive import Chain, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

b, B, m = symbols("b B m")


def _query(label: str, body: str) -> Obligation:
    text = f"(set-logic QF_LIA)\n{body.strip()}\n(check-sat)\n"
    return Obligation("smt", label, "S", {"smtlib": text, "expect": "unsat", "logic": "QF_LIA"})


DECLARED = "(declare-const s Int)\n(declare-const m Int)\n(assert (>= m 1))"
"""s: the token after which a slot starts; m: the stride."""


def _parted(last: str) -> Obligation:
    body = f"""{DECLARED}
(declare-const o Int)
(assert (or (<= o s) (>= o (+ s m))))
(assert (and (< o (+ s m)) (<= (+ s m 1) {last})))"""
    return _query("no slot of width m holds the tokens s + m and s + m + 1", body)


def _together(width: str) -> Obligation:
    body = f"""{DECLARED}
(declare-const r Int)
(assert (and (<= 1 r) (<= r m)))
(assert (not (and (< s (+ s r)) (<= (+ s r 1) (+ s {width})))))"""
    return _query("a slot of width 2m holds every pair that starts in its first half", body)


def _price(after: Expr) -> Obligation:
    setting = Setting(nonempty=(B,), instances=({B: 3},))
    chain = Chain("entries of all slots", setting, Sum(2 * m, (b, 1, B)))
    return chain.rearrange("twice those of the plain windows", after).obligation()


def _plain(tokens: list[int]) -> Obligation:
    apart = [token for token in range(11) if token % 4 == 3]
    inside = [token for token in tokens if token not in apart]
    reads = slots(12, 4, 4)
    label = "12 tokens in 3 slots of 4: pairs inside a slot and pairs across its end"
    return hops(label, reads, 2, reached=neighbours(inside), unreached=neighbours(apart))


def _overlapping(width: int) -> Obligation:
    label = f"12 tokens in 3 slots of {width} at stride 4: every neighbouring pair"
    return hops(label, slots(12, width, 4), 2, reached=neighbours(range(11)))


def parts() -> tuple[Part, ...]:
    """Without overlap, with it, its price, and an instance."""
    return (
        Part(
            r"With slots of $m$ tokens at stride $m$ the two tokens on either side of a slot's end share no"
            r" slot: another slot starts at $o\le s$ or $o\ge s+m$.",
            (_parted("(+ o m)"),),
        ),
        Part(
            r"With slots of $2m$ tokens at stride $m$ every two neighbours share one, for every $m\ge1$.",
            (_together("(* 2 m)"),),
        ),
        Part(
            r"The number $B$ of slots is the same; together they hold $2mB$ entries instead of $mB$.",
            (_price(2 * (m * B)),),
        ),
        Part(
            r"Replayed for 12 tokens and $m=4$: without overlap the pairs $(3,4)$ and $(7,8)$ are parted and"
            r" no others; with overlap none is.",
            (_plain(list(range(11))), _overlapping(8)),
        ),
    )


CLAIM = Claim(
    id="sparse.overlap",
    title="Pooling windows without overlap part neighbours; windows of 2m at stride m part none",
    statement=(
        r"Pool tokens into slots of $m$ at stride $m$: the two tokens at a boundary share no slot. With"
        r" slots of $2m$ at stride $m$ every two neighbours share one, with as many slots, each twice as"
        r" wide."
    ),
    source="article A, section 5; article B, section 1",
    status=Status.AS_PRINTED,
    scope="every m ≥ 1 and every position; the replay for 12 tokens, m = 4",
    variables=(
        Variable("m", "stride, an integer ≥ 1"),
        Variable("s", "token after which a slot starts, an integer"),
        Variable("B", "number of slots, an integer ≥ 1"),
    ),
    assumptions=(Assumption("the last slots may be cut off at the end of the history"),),
    asked="E",
    parts=parts,
    mutants=(
        Mutant("one more token", "slots of m + 1 at stride m", lambda: (_parted("(+ o m 1)"),)),
        Mutant("width m", "neighbours together in slots of m", lambda: (_together("m"),)),
        Mutant("no price", "as many entries as without overlap", lambda: (_price(m * B),)),
        Mutant("no overlap", "every neighbour together in slots of 4", lambda: (_overlapping(4),)),
    ),
    remark=(
        "An overlap of one token (width m + 1) already joins neighbours; 2m joins all pairs up to m apart."
    ),
)

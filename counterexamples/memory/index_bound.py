"""Fewer than n·d bits of state cannot answer attention queries over n tokens of width d."""

from sympy import Expr, IndexedBase, Sum, Symbol, exp, symbols

from counterexamples.memory._alice_and_bob import Bits, address_keys, confused, gain, spell
from verify.derive import Chain, Definition, Setting
from verify.model.claim import Assumption, Claim, Counterexample, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

j, n, gap, room = symbols("j n Delta rho")
s, v, other, extra, saved = (IndexedBase(name) for name in ("s", "v", "u", "g", "h"))
SIZES: tuple[dict[Symbol, int], ...] = ({n: 2}, {n: 4})
own = exp(s[n])
MESSAGE = "attention"


def _others(summand: Expr | int) -> Sum:
    """Σ over the tokens that were not asked for."""
    return Sum(exp(s[j]) * summand, (j, 1, n - 1))


def _majority(margin: Expr) -> Obligation:
    """e^{s_n} >= the other weights + ``margin``; true for ρ e^{s_n} with ρ = 1 − (n − 1)e^{−Δ}."""
    definitions = (
        Definition("gap", s[j], s[n] - gap - extra[j], free=(j,), guards=((j, n - 1),)),
        Definition("saved", saved[j], 1 - exp(-extra[j]), free=(j,)),
        Definition("room", room, 1 - (n - 1) * exp(-gap)),
    )
    setting = Setting(definitions, (), (room,), (saved,), order=((1, n),), instances=SIZES)
    chain = Chain("the weight of the token asked for", setting, own)
    spare = Sum(own * exp(-gap) * saved[j], (j, 1, n - 1))
    after = _others(1) + margin
    chain = chain.unfold("compare with the others", after + spare, "gap", "saved", "room")
    return chain.drop("larger gaps only help", after, spare).obligation()


def _is_zero(times: int) -> Obligation:
    """Bit 0: Z = 2·Σ e^{s_j} v_j + margin + …, so the output is below ½."""
    definitions = (
        Definition("margin", room, own - _others(1)),
        Definition("complement", other[j], 1 - v[j], free=(j,)),
    )
    setting = Setting(definitions, (), (room,), (other,), order=((1, n),), instances=SIZES)
    chain = Chain("a bit that is 0", setting, _others(1) + own)
    below = times * _others(v[j]) + room
    spare = 2 * _others(other[j])
    chain = chain.unfold("the margin split off", below + spare, "margin", "complement")
    return chain.drop("values are at most 1", below, spare).obligation()


def _is_one(times: int) -> Obligation:
    """Bit 1: 2·(e^{s_n} + Σ e^{s_j} v_j) = Z + margin + …, so the output is above ½."""
    definitions = (Definition("margin", room, own - _others(1)),)
    setting = Setting(definitions, (), (room,), (v,), order=((1, n),), instances=SIZES)
    chain = Chain("a bit that is 1", setting, times * own + 2 * _others(v[j]))
    above = _others(1) + own + room
    chain = chain.unfold("the margin split off", above + 2 * _others(v[j]), "margin")
    return chain.drop("values are at least 0", above, 2 * _others(v[j])).obligation()


def _replay(label: str, bits: Bits, strength: str = "") -> Obligation:
    keys = address_keys(len(bits))
    factor = strength or str(gain(len(bits)))
    data = {
        "keys": keys,
        "queries": [[_signed(x, factor) for x in row] for row in keys],
        "bits": [list(row) for row in bits],
    }
    return Obligation("recall", label, "E", data)


def _signed(sign: int, factor: str) -> str:
    return factor if sign > 0 else f"-{factor}"


PARITIES = ((0, 1, 0, 0), (0, 0, 1, 0), (1, 0, 0, 1))
"""A state of 3 bits for 2×2 bits of history: the last bit only as a parity with the first."""


def _parity(bits: Bits) -> tuple[int, ...]:
    flat = [bit for row in bits for bit in row]
    return tuple(sum(x * y for x, y in zip(picks, flat, strict=True)) % 2 for picks in PARITIES)


def _confused_pair(parities: tuple[tuple[int, ...], ...] = PARITIES) -> tuple[Obligation, ...]:
    one, two, i, c = confused(_parity, 2, 2)
    found = []
    for bits, other in ((one, two), (two, one)):
        data = _replay("", bits).data
        shared = {"same_as": [list(row) for row in other], "parities": [list(row) for row in parities]}
        label = f"3 bits of state shared, bit ({i}, {c}) is {bits[i][c]} here, and attention reads it"
        found.append(Obligation("recall", label, "E", {**data, **shared}))
    return tuple(found)


def parts() -> tuple[Part, ...]:
    """The majority, both bits, Alice's message, and a confused state."""
    return (
        Part(
            r"If every other score is at least $\Delta$ below $s_n$ and $\rho=1-(n-1)e^{-\Delta}>0$, the"
            r" weight $e^{s_n}$ exceeds all others together by at least $\rho e^{s_n}$.",
            (_majority(room * own),),
        ),
        Part(
            r"Then for values in $[0,1]$ the output is below $\frac12$ if $v_n=0$ and above it if $v_n=1$:"
            r" with $M=e^{s_n}-\sum_{j<n}e^{s_j}>0$, $Z\ge2\sum_{j<n}e^{s_j}v_j+M$ and"
            r" $2(e^{s_n}+\sum_{j<n}e^{s_j}v_j)\ge Z+M$.",
            (_is_zero(2), _is_one(2)),
        ),
        Part(
            r"Bob recovers all 72 bits of a message of 9 tokens from attention outputs, with orthogonal keys"
            r" of entries $\pm1$ and queries $\frac14k_i$.",
            (_replay("9 tokens of 8 bits", spell(MESSAGE)),),
        ),
        Part(
            r"A state of 3 bits for 4 bits of history merges two histories that some query tells apart.",
            _confused_pair(),
        ),
    )


def _wrong_query() -> Obligation:
    label = "token 0 asked with the key of token 1"
    obligation = _replay(label, spell(MESSAGE))
    queries = [obligation.data["queries"][1], *obligation.data["queries"][1:]]
    return Obligation("recall", label, "E", {**obligation.data, "queries": queries})


CLAIM = Claim(
    id="memory.index-bound",
    title="Fewer than n·d bits of state cannot answer attention queries over n tokens of width d",
    statement=(
        r"Let a state be any function of a history of $n\ge2$ tokens with address keys whose scores are"
        r" separated by more than $\ln(n-1)$ and values in $\{0,1\}^d$. If it takes fewer than $2^{nd}$"
        r" values, two histories share a state while some query has softmax outputs below and above"
        r" $\frac12$ in some coordinate: no reader of the state answers both to within their distance from"
        r" $\frac12$."
    ),
    source="article B, section 2; article C (one-way INDEX reduction)",
    status=Status.AS_PRINTED,
    scope="every n ≥ 2 and d ≥ 1, every deterministic state; the program for orthogonal ±1 keys",
    variables=(
        Variable("n, d", r"tokens and value width, integers with $n\ge2$ and $d\ge1$"),
        Variable("s_j", "score of token $j$ for the query along key $n$ (any token may be called $n$)"),
        Variable(r"\Delta", r"a real number with $(n-1)e^{-\Delta}<1$"),
        Variable("v_j", r"one coordinate of the value, $[0,1]$"),
    ),
    assumptions=(
        Assumption("pigeonhole: a map of $2^{nd}$ histories into fewer states sends two to one"),
        Assumption(
            "the history is written before the query is known, and the state is all that is left of it"
        ),
        Assumption(r"$1-e^{-g}\ge0$ for the extra gaps $g_j\ge0$"),
    ),
    asked="KE",
    parts=parts,
    mutants=(
        Mutant("no margin needed", "the whole weight as the margin", lambda: (_majority(own),)),
        Mutant("three times", "a zero bit with an output below 1/3", lambda: (_is_zero(3),)),
        Mutant("half the weight", "a one bit from its own weight once", lambda: (_is_one(1),)),
        Mutant(
            "weak query",
            "the message asked with a sixteenth of the keys",
            lambda: (_replay("", spell(MESSAGE), "1/16"),),
        ),
        Mutant(
            "no merging",
            "the two histories with a fourth bit of state",
            lambda: _confused_pair((*PARITIES, (1, 0, 0, 0))),
        ),
        Mutant("wrong query", "token 0 asked with the key of token 1", lambda: (_wrong_query(),)),
    ),
    remark=(
        "Proved for deterministic states and answers on one side of ½. That randomised algorithms need of the"
        " order of n·d bits as well is a theorem of communication complexity (Haris and Onak 2025) and not"
        " part of this claim."
    ),
    counterexample=Counterexample(
        fails="A state smaller than the history is enough, since a query reads only $d$ numbers.",
        believed="The answer to one query is small, and most of a history hardly matters for it.",
        catch=(
            "The query comes after the state is fixed. With $n$ separated keys and bits as values, "
            "the query along key $i$ reads token $i$ with more than half of the weight, so every bit "
            "can be asked for. There are $2^{nd}$ histories, and two that share a state differ in "
            "some bit, hence in the answer to its query."
        ),
        gap=(
            r"Outputs on both sides of $\frac12$, each at least 0.380797 away from it (a ball), from "
            "one state."
        ),
        witness=(
            "3 bits of state shared, bit (0, 0) is 0 here, and attention reads it",
            "3 bits of state shared, bit (0, 0) is 1 here, and attention reads it",
        ),
        smallest=(
            "Proved for every state of fewer than n·d bits. The example is the first pair in an "
            "exhaustive search of the 16 histories of two tokens and two bits each; smaller ones "
            "exist (two tokens of one bit, and their sum as the state)."
        ),
        repair="A state that grows with the history (a cache), or a promise about what will be asked.",
        repaired_by=("memory.index-bound", "memory.table"),
        search="counterexamples.memory._search:merged",
    ),
)

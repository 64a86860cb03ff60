"""The chunk size of linear attention is a knob that changes the order of work, never the result.

From associativity: the causal sum is cut at the chunk's start, and the part before it is read from a state.
A cut at 0 leaves scores only, a cut just before the newest token leaves the state only. The mask has to act
inside chunks and across them alike. The two printed output tables are realised by small integers, found by
an exact search: the last rows agree, M = KᵀV has determinant ±1 or ±3 since the printed rows have
determinants of greatest common divisor 3, the queries follow from M, and the causal rows fix the first,
second and fourth rank-one term up to a divisor.
"""

from itertools import product
from typing import Any

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from verify.derive import Chain, Definition, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

j, t, m, r, c, d, K, T = symbols("j t m r c d K T")
q, k, v, M = (IndexedBase(name) for name in ("q", "k", "v", "M"))
SIZES = ({m: 1, r: 2, t: 3, K: 2, c: 1, d: 1, T: 4}, {m: 0, r: 3, t: 3, K: 1, c: 1, d: 2, T: 3})
held = Definition("state", M[m, c, d], Sum(k[j, c] * v[j, d], (j, 1, m)), free=(m, c))
score = Sum(q[t, c] * k[j, c], (c, 1, K))


def _scored(first: Expr | int, last: Expr) -> Sum:
    """Σ_j (q_t·k_j) v_j over a range of tokens: scores first."""
    return Sum(score * v[j, d], (j, first, last))


def _read(token: Expr | int) -> Sum:
    """q_tᵀM after a token: state first."""
    return Sum(q[t, c] * M[token, c, d], (c, 1, K))


def _cut(first: Expr | int) -> Obligation:
    setting = Setting((held,), nonempty=(K,), order=((0, m), (m, t)), instances=SIZES)
    chain = Chain("the causal sum cut at the start of a chunk", setting, _scored(1, t))
    chain = chain.split("tokens before the chunk, tokens inside", _scored(1, m) + _scored(m + 1, t), t, m)
    return chain.unfold(
        "earlier tokens are read from the state", _read(m) + _scored(first, t), "state"
    ).obligation()


def _state_update() -> Obligation:
    setting = Setting((held,), order=((0, m), (m, r)), instances=SIZES)
    chain = Chain("the state after a chunk", setting, M[r, c, d])
    inside = Sum(k[j, c] * v[j, d], (j, m + 1, r))
    whole = Sum(k[j, c] * v[j, d], (j, 1, r))
    chain = chain.unfold("the sum over all tokens so far", whole, "state")
    before = Sum(k[j, c] * v[j, d], (j, 1, m))
    chain = chain.split("tokens before the chunk, tokens inside", before + inside, r, m)
    return chain.unfold("the state before it", M[m, c, d] + inside, "state").obligation()


def _one_chunk() -> Obligation:
    chain = Chain(
        "a single chunk starts from nothing", Setting((held,), nonempty=(K,), instances=SIZES), _read(0)
    )
    return chain.unfold("no token is in the state", Integer(0), "state").obligation()


def _chunks_of_one() -> Obligation:
    setting = Setting((held,), nonempty=(K, t), instances=({t: 3, K: 2, d: 1},))
    chain = Chain("a chunk of one token is state-first", setting, _read(t - 1) + _scored(t, t))
    after = Sum(q[t, c] * (M[t - 1, c, d] + k[t, c] * v[t, d]), (c, 1, K))
    return chain.rearrange("write the token, then read", after).obligation()


def _unmasked() -> Obligation:
    setting = Setting((held,), nonempty=(K,), order=((0, T),), instances=SIZES)
    chain = Chain("without a mask every token reads the whole state", setting, _scored(1, T))
    return chain.unfold("exchange the sums", _read(T), "state").obligation()


QUERIES = ((1, 2), (0, 1), (3, 1), (2, 2))
KEYS = ((2, 1), (1, 3), (0, 2), (1, 1))
VALUES = ((1, 0), (0, 1), (2, 1), (1, 2))
WITHOUT_MASK = ((15, 17), (6, 7), (15, 16), (18, 20))
WITH_MASK = ((4, 0), (1, 3), (11, 8), (18, 20))
ONES = ((1,), (1,), (1,))


def _replay(inputs: tuple[Any, Any, Any], size: int, mask: str, across: str, outputs: Any) -> Obligation:
    queries, keys, values = inputs
    data = {
        "queries": queries,
        "keys": keys,
        "values": values,
        "chunk": size,
        "mask": mask,
        "across": across,
        "outputs": outputs,
    }
    inside = "masked" if mask == "causal" else "unmasked"
    outside = "earlier chunks" if across == "causal" else "all other chunks"
    return Obligation("linear-attention", f"chunks of {size}, {inside} inside, seeing {outside}", "E", data)


def _printed(size: int, mask: str, outputs: Any) -> Obligation:
    return _replay((QUERIES, KEYS, VALUES), size, mask, "causal", outputs)


BITS = 10
"""Width of the solvers' integers: every number that occurs for inputs in 0 … 3 is at most 216 < 2⁹."""


def _word(value: int) -> str:
    return f"(_ bv{value} {BITS})"


def _search(top: int, expect: str, label: str, extra: str = "") -> Obligation:
    """The printed tables as a query over all inputs in 0 … top."""
    lines = ["(set-logic QF_BV)"]
    for name, token, channel in product("qkv", range(1, 5), (1, 2)):
        entry = f"{name}{token}{channel}"
        lines.append(f"(declare-const {entry} (_ BitVec {BITS}))\n(assert (bvule {entry} {_word(top)}))")
    for token, column in product(range(4), range(2)):
        for table, last in ((WITHOUT_MASK, 4), (WITH_MASK, token + 1)):
            lines.append(f"(assert (= {_output(token + 1, column + 1, last)} {_word(table[token][column])}))")
    text = "\n".join([*lines, *([extra] if extra else []), "(check-sat)\n"])
    return Obligation("smt", label, "S", {"smtlib": text, "expect": expect, "logic": "QF_BV"})


def _output(token: int, column: int, last: int) -> str:
    total = _word(0)
    for seen in range(1, last + 1):
        scored = f"(bvadd (bvmul q{token}1 k{seen}1) (bvmul q{token}2 k{seen}2))"
        total = f"(bvadd {total} (bvmul {scored} v{seen}{column}))"
    return total


def _witness(swapped: bool) -> str:
    """The inputs above, or with the two channels of queries and keys exchanged, as a condition."""
    equations = []
    for name, rows in (("q", QUERIES), ("k", KEYS), ("v", VALUES)):
        for token, row in enumerate(rows, start=1):
            entries = tuple(reversed(row)) if swapped and name != "v" else row
            equations += [f"(= {name}{token}{place} {_word(x)})" for place, x in enumerate(entries, start=1)]
    return f"(and {' '.join(equations)})"


def parts() -> tuple[Part, ...]:
    """Any cut gives the same sum; the two ends of the knob; the mask; the printed numbers."""
    ones = (ONES, ONES, ONES)
    return (
        Part(
            r"For every cut $0\le m\le t$: $\sum_{j\le t}(q_t\cdot k_j)v_j=M_m^\top"
            r" q_t+\sum_{j=m+1}^t(q_t\cdot k_j)v_j$ with $M_m=\sum_{j\le m}k_jv_j^\top$, and"
            r" $M_r=M_m+\sum_{j=m+1}^rk_jv_j^\top$ carries the state over a chunk. With $m$ the last token"
            r" before the chunk of $t$, the result does not depend on the chunk size.",
            (_cut(m + 1), _state_update()),
        ),
        Part(
            r"$C=T$ has $m=0$ and reads nothing from a state (scores-first); $C=1$ has $m=t-1$ and gives"
            r" $(M_{t-1}+k_tv_t^\top)^\top q_t$ (state-first).",
            (_one_chunk(), _chunks_of_one()),
        ),
        Part(r"Without a mask every order of work gives $M_T^\top q_t$.", (_unmasked(),)),
        Part(
            r"Masking inside chunks but not across them equals neither the masked nor the unmasked result:"
            r" three tokens, all entries 1, in chunks of 2 give 2, 3, 3 against 1, 2, 3 and 3, 3, 3 (and"
            r" masking across but not inside gives 2, 2, 3). This is the smallest case: with at most two"
            r" tokens chunks of one see what no mask shows, and a single chunk what the mask shows.",
            (
                _replay(ones, 2, "causal", "all", ((2,), (3,), (3,))),
                _replay(ones, 2, "none", "causal", ((2,), (2,), (3,))),
                _replay(ones, 3, "causal", "causal", ((1,), (2,), (3,))),
                _replay(ones, 3, "none", "causal", ((3,), (3,), (3,))),
            ),
        ),
        Part(
            r"The printed outputs $15,17;6,7;15,16;18,20$ without mask and $4,0;1,3;11,8;18,20$ with it come"
            r" from $q=(1,2),(0,1),(3,1),(2,2)$, $k=(2,1),(1,3),(0,2),(1,1)$, $v=(1,0),(0,1),(2,1),(1,2)$,"
            r" the masked ones at every chunk size from 1 to 4.",
            (
                _printed(4, "none", WITHOUT_MASK),
                *(_printed(size, "causal", WITH_MASK) for size in range(1, 5)),
            ),
        ),
        Part(
            r"Among all inputs with entries in $0,\dots,3$ these are the only ones, up to exchanging the two"
            r" channels of $q$ and $k$; with entries in $0,1,2$ there are none. (All numbers that occur are"
            r" at most $4\cdot18\cdot3=216$, so the solvers' arithmetic modulo $2^{10}$ is exact.)",
            (
                _search(3, "sat", "entries in 0 … 3: inputs exist"),
                _search(3, "sat", "the inputs above are such", f"(assert {_witness(swapped=False)})"),
                _search(
                    3,
                    "unsat",
                    "entries in 0 … 3: no others",
                    f"(assert (not {_witness(swapped=False)}))\n(assert (not {_witness(swapped=True)}))",
                ),
                _search(2, "unsat", "entries in 0 … 2: none"),
            ),
        ),
    )


CLAIM = Claim(
    id="chunk.knob",
    title="The chunk size of linear attention is a knob that changes the order of work, never the result",
    statement=(
        r"Causal linear attention without normaliser, $o_t=\sum_{j\le t}(q_t\cdot k_j)v_j$, computed in"
        r" chunks of any size $C$ (scores inside a chunk, a state for what precedes it) gives the same"
        r" numbers; $C=T$ is scores-first, $C=1$ is state-first. The mask must act inside and across chunks:"
        r" inside alone equals neither the masked nor the unmasked result. The printed tables are those of"
        r" four tokens of width 2 with entries in $0,\dots,3$, which they determine up to exchanging the two"
        r" channels."
    ),
    source="article D",
    status=Status.AS_PRINTED,
    scope="every T, C, K, V and all real inputs; the printed tables for entries in 0 … 3",
    variables=(
        Variable("t, T", r"token and number of tokens, integers with $1\le t\le T$"),
        Variable("m", r"last token before the chunk of $t$, an integer with $0\le m\le t$"),
        Variable("q_t, k_t", r"query and key, $\mathbb{R}^K$"),
        Variable("v_t", r"value, $\mathbb{R}^V$, one coordinate $d$ at a time"),
    ),
    assumptions=(
        Assumption("exact arithmetic: floating-point sums depend on the order of work"),
        Assumption(r"no normaliser, no decay and no erasing (those are chunk.equals-recurrent)"),
    ),
    asked="KES",
    parts=parts,
    mutants=(
        Mutant("boundary token twice", "the sum inside the chunk starting at m", lambda: (_cut(m),)),
        Mutant(
            "mask dropped across chunks",
            "the masked outputs claimed for chunks that see all other chunks",
            lambda: (_replay((QUERIES, KEYS, VALUES), 2, "causal", "all", WITH_MASK),),
        ),
        Mutant(
            "mask dropped inside",
            "the masked outputs claimed without a mask",
            lambda: (_printed(4, "none", WITH_MASK),),
        ),
        Mutant(
            "smaller entries",
            "inputs claimed to exist with entries in 0 … 2",
            lambda: (_search(2, "sat", "mutant"),),
        ),
    ),
    remark=(
        "The article's text is lost in the stored copy; only its printed outputs remain, so the inputs here"
        " are reconstructed, and the solvers show that nothing else of this size fits."
    ),
)

"""A compressed token cannot be taken back from the state alone.

At β = 1 (and for a decay of 0) a step has no inverse: states that differ along the key have one image, so
nothing computed from the state after the token, even with the token at hand, returns the state before. What
is missing are the V numbers kᵀS that the write replaced: written back to the same key they restore S. A
cache of keys and values drops its last entry instead.
"""

from typing import Any

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

a, c, e, K = symbols("a c e K")
beta = symbols(r"\beta")
k, v, w, S, T = (IndexedBase(name) for name in ("k", "v", "w", "S", "S'"))
KEY = ["3/5", "4/5"]
FIRST = [["1", "0"], ["0", "2"]]
SECOND = [["14/5", "-6/5"], ["12/5", "2/5"]]
"""FIRST + k wᵀ with w = (3, −2)."""
OLD_READ = ["3/5", "8/5"]
"""kᵀFIRST."""
AFTER = [["91/25", "-39/25"], ["88/25", "-2/25"]]


def _image(state: IndexedBase, strength: Expr) -> Expr:
    return state[a, c] - strength * k[a] * (Sum(k[e] * state[e, c], (e, 1, K)) - v[c])


def _merged(strength: Expr) -> Obligation:
    """Step on S + k wᵀ against step on S, entry (a, c), at strength β."""
    moved = Definition("moved along the key", T[a, c], S[a, c] + k[a] * w[c], (a, c))
    unit = Hypothesis("unit key", Sum(k[e] ** 2, (e, 1, K)), 1)
    sizes = ({K: 2, a: 1, c: 1}, {K: 3, a: 2, c: 1})
    setting = Setting((moved,), (unit,), instances=sizes)
    chain = Chain("the image of the moved state", setting, _image(T, strength))
    square = Sum(k[e] ** 2, (e, 1, K))
    spread = _image(S, strength) + k[a] * w[c] * (1 - strength * square)
    chain = chain.unfold("multiply out", spread, "moved along the key")
    return chain.use("unit key", _image(S, Integer(1)), **{"unit key": -k[a] * w[c]}).obligation()


def _restored(sign: int) -> Obligation:
    """S = S′ + βk(kᵀS − vᵀ), entry (a, c), at any strength, from the old read kᵀS."""
    image = Definition("image", T[a, c], _image(S, beta), (a, c))
    setting = Setting((image,), instances=({K: 2, a: 1, c: 1}, {K: 3, a: 2, c: 1}))
    gap = Sum(k[e] * S[e, c], (e, 1, K)) - v[c]
    chain = Chain("the image, with what the write replaced", setting, T[a, c] + sign * beta * k[a] * gap)
    return chain.unfold("insert the image", S[a, c], "image").obligation()


def _undone(old: list[str]) -> tuple[Obligation, ...]:
    """The old read written back to the key, from the state after the token."""
    rows = ((["1", "0"], FIRST[0], "first row"), (["0", "1"], FIRST[1], "second row"))
    return tuple(
        _read(AFTER, query, row, f"{name} after the old read is written back", old)
        for query, row, name in rows
    )


def _read(
    initial: list[list[str]], query: list[str], output: list[str], label: str, value: list[str] | None = None
) -> Obligation:
    data: dict[str, Any] = {
        "initial": initial,
        "writes": [{"beta": "1", "key": KEY, "value": value or ["5", "-1"]}],
        "query": query,
        "output": output,
        "unit": True,
    }
    return Obligation("delta-read", label, "E", data)


def _witness(initial: list[list[str]], name: str) -> tuple[Obligation, ...]:
    return (
        _read(initial, ["1", "0"], AFTER[0], f"first row of the image of the {name} state"),
        _read(initial, ["0", "1"], AFTER[1], f"second row of the image of the {name} state"),
    )


def parts() -> tuple[Part, ...]:
    """All states along the key merge; two that do, in numbers; what is enough to undo a write."""
    return (
        Part(
            r"At $\beta=1$ with a unit key, $S$ and $S+kw^\top$ have one image under"
            r" $S\mapsto S-\beta k(k^\top S-v^\top)$, for every $w$, $S$, $v$ and $K$.",
            (_merged(Integer(1)),),
        ),
        Part(
            r"Two states with one image: key $(3/5,4/5)$, value $(5,-1)$, $S=\mathrm{Diag}(1,2)$ and"
            r" $S+k(3,-2)$."
            r" So no function of the state after the token, and of the token, is the state before.",
            (*_witness(FIRST, "first"), *_witness(SECOND, "second")),
        ),
        Part(
            r"The $V$ numbers $k^\top S$ are enough besides: $S=S'+\beta k(k^\top S-v^\top)$ for every"
            r" $\beta$ and $k$.",
            (_restored(1),),
        ),
        Part(
            r"Undoing a token costs a snapshot of the $K\cdot V$ numbers of the state (printed), here four:"
            r" the two numbers $k^\top S=(3/5,8/5)$, written to the same key, give back"
            r" $S=\mathrm{Diag}(1,2)$.",
            _undone(OLD_READ),
            refutes=True,
        ),
    )


CLAIM = Claim(
    id="state.no-rollback",
    title="A compressed token cannot be taken back from the state alone",
    statement=(
        r"At $\beta=1$ a delta-rule step merges all states $S+kw^\top$, so it has no inverse: the state"
        r" before a token is no function of the state after it, even with the token known. Undoing a"
        r" speculative token needs something kept besides: the $V$ numbers $k^\top S$ are enough"
        r" ($V$ more for each channel whose decay is 0), a snapshot of all $K\cdot V$ is not needed; a cache"
        r" of keys and values drops its last entry."
    ),
    source="article B, section 1",
    status=Status.CORRECTED,
    scope="every K and V, every unit key at β = 1; the witness at K = V = 2",
    variables=(
        Variable("S", r"state before the token, $\mathbb{R}^{K\times V}$"),
        Variable("k", r"unit key, $\mathbb{R}^K$"),
        Variable("w", r"any vector, $\mathbb{R}^V$"),
    ),
    assumptions=(
        Assumption(
            "β = 1 (or a decay of 0): otherwise kda.transition-spectrum gives the inverse, in exact"
            " arithmetic"
        ),
        Assumption(
            "with decays, kᵀDiag(α)S is kept: the write is undone first, then each decay that is not 0 by"
            " division; a channel of decay 0 is kept whole"
        ),
    ),
    asked="KE",
    parts=parts,
    mutants=(
        Mutant("half strength", "β = 1/2 claimed to merge them too", lambda: (_merged(Integer(1) / 2),)),
        Mutant(
            "other state",
            "a state that is not along the key",
            lambda: _witness([["1", "1"], ["0", "2"]], "other"),
        ),
        Mutant("wrong side", "the old read subtracted", lambda: (_restored(-1),)),
        Mutant("another read", "7/5 in place of 8/5", lambda: _undone(["3/5", "7/5"])),
    ),
    remark="The printed figure is one way to undo a token, not its cost."
    " Where β ≠ 1 the inverse exists but divides by 1 − β, so a stored state of finite precision loses"
    " digits.",
)

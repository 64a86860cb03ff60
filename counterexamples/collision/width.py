"""Wider values do not separate what a fixed state has merged."""

from sympy import Expr, IndexedBase, Sum, symbols

from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.model.claim import Assumption, Claim, Counterexample, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

t, T, c, l_ = symbols("t T c l")
phi, scalar, other, wide, wide_other, u, base, a = (
    IndexedBase(name) for name in ("phi", "x", "x'", "v", "v'", "u", "b", "a")
)
SIZES = ({T: 3, l_: 1, c: 1}, {T: 4, l_: 2, c: 2})


def _placed(direction: Expr) -> tuple[Definition, Definition]:
    return (
        Definition("first values", wide[t, c], base[t, c] + scalar[t] * u[c], (t, c)),
        Definition("second values", wide_other[t, c], base[t, c] + other[t] * direction, (t, c)),
    )


def _state(direction: Expr) -> Obligation:
    one, two = (Sum(phi[t, l_] * x[t], (t, 1, T)) for x in (scalar, other))
    equal = Hypothesis("scalar collision", two, one)
    setting = Setting(_placed(direction), (equal,), instances=SIZES)
    chain = Chain("entry (l, c) of the second state", setting, Sum(phi[t, l_] * wide_other[t, c], (t, 1, T)))
    shared = Sum(phi[t, l_] * base[t, c], (t, 1, T))
    chain = chain.unfold("insert the values", shared + direction * two, "second values")
    chain = chain.use("the scalar states agree", shared + direction * one, **{"scalar collision": direction})
    first = Sum(phi[t, l_] * wide[t, c], (t, 1, T))
    return chain.unfold("the first state", first, "first values").obligation()


def _softmax(gap: Expr) -> Obligation:
    setting = Setting(_placed(u[c]), instances=({T: 3, c: 1}, {T: 4, c: 2}))
    start = Sum(a[t] * wide_other[t, c], (t, 1, T)) - Sum(a[t] * wide[t, c], (t, 1, T))
    chain = Chain("difference of the softmax outputs, coordinate c", setting, start)
    return chain.unfold("insert the values", gap * u[c], "first values", "second values").obligation()


def _witness(second: list[list[str]], gap: str) -> Obligation:
    shared = {"features": [["1", "0"], ["1", "1"], ["1", "2"]], "keys": [["0"], ["1"], ["2"]]}
    data = {
        "first": {**shared, "values": [["1", "2", "3"]] * 3},
        "second": {**shared, "values": second},
        "query": ["1"],
        "gap": gap,
    }
    label = "three tokens with values of width 3, moved by (1, −2, 1) along u = (1, 0, −1)"
    return Obligation("state-collision", label, "E", data)


MOVED = [["2", "2", "2"], ["-1", "2", "5"], ["2", "2", "2"]]


def parts() -> tuple[Part, ...]:
    """State and softmax outputs of a scalar collision placed in direction u, and a witness."""
    scalar_gap = Sum(a[t] * (other[t] - scalar[t]), (t, 1, T))
    return (
        Part(
            r"If the scalar values $x,x'$ give one state, $\sum_t\phi_tx'_t=\sum_t\phi_tx_t$, so do the"
            r" values $b_t+x_tu$"
            r" and $b_t+x'_tu$ of width $V$, for every $V$, $u$ and $b$.",
            (_state(u[c]),),
        ),
        Part(
            r"Their softmax outputs differ by $\big(\sum_ta_t(x'_t-x_t)\big)u$: by the scalar gap, in"
            r" direction $u$.",
            (_softmax(scalar_gap),),
        ),
        Part(r"At $V=3$, $T=3$, $m=2$.", (_witness(MOVED, "1/4"),)),
    )


CLAIM = Claim(
    id="collision.width",
    title="Wider values do not separate what a fixed state has merged",
    statement=(
        r"If two histories of scalar values with the same keys have one state and softmax outputs a gap $g$"
        r" apart, then"
        r" for every value width $V$ and every $u\in\mathbb{R}^V$ the values $b_t+x_tu$ and $b_t+x'_tu$ have"
        r" one state"
        r" and softmax outputs $g\,u$ apart."
    ),
    source="article A, section 3",
    status=Status.AS_PRINTED,
    scope="every T, m, V; the witness at V = 3",
    variables=(
        Variable("x, x'", r"scalar values of the two histories, $\mathbb{R}^T$"),
        Variable("u", r"direction in the value space, $\mathbb{R}^V$"),
        Variable("b_t", r"any common part of the values, $\mathbb{R}^V$"),
        Variable("a_t", "softmax weights, the same for both histories"),
    ),
    assumptions=(Assumption("both histories have the same keys"),),
    asked="K",
    parts=parts,
    mutants=(
        Mutant("no direction", "the second values placed along another vector", lambda: (_state(2 * u[c]),)),
        Mutant(
            "gap doubled",
            "the softmax gap counted twice",
            lambda: (_softmax(2 * Sum(a[t] * (other[t] - scalar[t]), (t, 1, T))),),
        ),
        Mutant(
            "not in the kernel",
            "values moved by (1, −2, 2)",
            lambda: (_witness([*MOVED[:2], ["3", "2", "1"]], "1/4"),),
        ),
    ),
    remark="Width buys capacity per token, not for more tokens.",
    counterexample=Counterexample(
        fails=(
            "A collision of two histories with scalar values disappears once values have more "
            r"coordinates, since the state $K\times V$ grows with $V$."
        ),
        believed=r"The state has $m\cdot V$ numbers, and $V$ can be as large as one likes.",
        catch=(
            "The values' coordinates never mix. Each column of the state sees its own coordinate of "
            "the values, and a scalar collision placed in any direction $u$ of the value space is a "
            "collision of histories with values of width $V$."
        ),
        gap=(
            "The scalar gap times $u$, unchanged by the width: 0.265815 in the direction "
            "$u=(1,0,-1)$ at $V=3$."
        ),
        witness=("three tokens with values of width 3, moved by (1, −2, 1) along u = (1, 0, −1)",),
        smallest=(
            "Made by hand from the collision of collision.nullspace: its keys and z, placed along u. "
            "Three tokens are the fewest for its features; the width 3 is free."
        ),
        repair="It is the number of tokens against the number of features $m$ that counts, not $V$.",
        repaired_by=("collision.nullspace", "state.dimension-wall"),
    ),
)

"""Two tokens against two are enough to collide in a one-feature normalised state."""

from counterexamples._smt import query
from verify.derive.contradiction import contradiction, term
from verify.model.claim import Assumption, Claim, Counterexample, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

History = tuple[tuple[str, str], ...]

SMALLEST: tuple[History, History] = ((("0", "0"), ("1", "1")), (("0", "1"), ("1", "1")))
SMALLEST_NONZERO: tuple[History, History] = ((("1", "0"), ("2", "1")), (("1", "2"), ("2", "0")))
LARGER: tuple[History, History] = ((("0", "0"), ("2", "1")), (("1", "0"), ("1", "2")))
PRINTED: tuple[History, History] = ((("1", "0"), ("0", "1")), (("1/2", "1/2"), ("1/2", "1/2")))


def _side(history: History) -> dict[str, list[list[str]]]:
    keys = [[key] for key, _ in history]
    return {"features": keys, "keys": keys, "values": [[value] for _, value in history]}


def _collide(pair: tuple[History, History], at: str, gap: str) -> Obligation:
    data = {"first": _side(pair[0]), "second": _side(pair[1]), "query": [at], "gap": gap}
    written = " and ".join("{" + ", ".join(f"({k}, {v})" for k, v in history) + "}" for history in pair)
    return Obligation("state-collision", f"{written} at q = {at}", "E", data)


def _total(history: History, output: str, label: str) -> Obligation:
    """Σkv, read with q = 1 and no mask."""
    data = {
        "queries": [["1"]] * len(history),
        "keys": [[key] for key, _ in history],
        "values": [[value] for _, value in history],
        "chunk": len(history),
        "mask": "none",
        "outputs": [[output]] * len(history),
    }
    return Obligation("linear-attention", label, "E", data)


ONE_TOKEN = """
(declare-const k Int)(declare-const v Int)(declare-const k2 Int)(declare-const v2 Int)
(assert (= (* k v) (* k2 v2)))
(assert (= k k2))
(assert (not (= v v2)))
"""


def _one_token(nonzero: bool) -> Obligation:
    body = ONE_TOKEN + ("(assert (not (= k 0)))" if nonzero else "")
    return query("one token with a nonzero normaliser: the state determines key and value", "QF_NIA", body)


def _keys_of_one(top: int) -> Obligation:
    """Keys from 1 to ``top``: states agree and softmax at q = 0 or the values' sums per key differ."""
    names = ("k1", "k2", "l1", "l2")
    declared = "".join(
        f"(declare-const {name} Int)(assert (and (<= 1 {name}) (<= {name} {top})))\n" for name in names
    )
    values = "".join(
        f"(declare-const {name} Int)(assert (and (<= 0 {name}) (<= {name} {top})))\n"
        for name in ("a1", "a2", "b1", "b2")
    )
    state = """(assert (= (+ k1 k2) (+ l1 l2)))
(assert (= (+ (* k1 a1) (* k2 a2)) (+ (* l1 b1) (* l2 b2))))
"""
    differ = "(assert (not (= (+ a1 a2) (+ b1 b2))))"
    label = f"keys in 1 … {top}, values in 0 … {top}: two tokens with one state and another mean at q = 0"
    expect = "unsat" if top == 1 else "sat"
    return query(label, "QF_NIA", declared + values + state + differ, expect)


def _signs_one_token() -> Obligation:
    """k(v − v₂) = (kv − k₂v₂) − v₂(k − k₂)."""
    product = "(* k (- v v2))"
    case = (term(2, 2, 3, 3), term(0, times=f"(- {product})"), term(1, times=f"(* v2 {product})"))
    return contradiction(_one_token(nonzero=True), case)


def _signs_keys_of_one() -> Obligation:
    """d² = d·(difference of the states) up to products of values times key − 1, where d is that of the sums.

    Literals 2n and 2n + 1 are key n − 1 ≥ 0 and 1 − key n ≥ 0, literals 8, 10, 12, 14 the values' own signs.
    """
    case = [term(18, 18), term(17, times="(- (- (+ a1 a2) (+ b1 b2)))")]
    for n, one in enumerate((1, 1, -1, -1)):
        for m, other in enumerate((1, 1, -1, -1)):
            case.append(term(2 * n + int(one * other < 0), 8 + 2 * n, 8 + 2 * m))
    return contradiction(_keys_of_one(1), case)


def parts() -> tuple[Part, ...]:
    """The printed pair, one that collides, and the smallest ones."""
    first, second = PRINTED
    return (
        Part(
            r"$\{(1,0),(0,1)\}$ and $\{(\frac12,\frac12),(\frac12,\frac12)\}$ have one state (printed). Their"
            r" $\sum kv$ are $0$ and $\frac12$.",
            (
                _total(first, "0", "Σkv of the first history"),
                _total(second, "1/2", "Σkv of the second history"),
            ),
            refutes=True,
        ),
        Part(
            r"$\{(0,0),(2,1)\}$ and $\{(1,0),(1,2)\}$ both have the state $(2,2)$, so the linear reader"
            r" answers 1 for"
            r" both; softmax answers $\sigma(2q)$ and 1, at $q=0$ apart by $\frac12$.",
            (_collide(LARGER, "0", "1/2"),),
        ),
        Part(
            r"$\{(0,0),(1,1)\}$ and $\{(0,1),(1,1)\}$ both have the state $(1,1)$; softmax answers"
            r" $\sigma(q)$ and 1. No two histories of equally many tokens, in natural numbers, are smaller:"
            r" one token is determined by its state when the normaliser is not 0, and with all entries 0"
            r" there is nothing to differ.",
            (_collide(SMALLEST, "0", "1/2"), _one_token(nonzero=True), _signs_one_token()),
        ),
        Part(
            r"With keys that are not 0 and equally many tokens none is smaller than $\{(1,0),(2,1)\}$ and"
            r" $\{(1,2),(2,0)\}$, state $(2,3)$: with entries at most 1 all keys are 1 and equal states mean"
            r" equal softmax outputs.",
            (_collide(SMALLEST_NONZERO, "0", "1/2"), _keys_of_one(1), _signs_keys_of_one(), _keys_of_one(2)),
        ),
    )


CLAIM = Claim(
    id="collision.bilinear",
    title="Two tokens against two are enough to collide in a one-feature normalised state",
    statement=(
        r"In the state $(\sum kv,\sum k)$ the histories $\{(0,0),(1,1)\}$ and $\{(0,1),(1,1)\}$, pairs (key,"
        r" value),"
        r" collide, and among histories of equally many tokens no smaller pair of natural numbers with a"
        r" nonzero normaliser does; with nonzero keys none of these is smaller than $\{(1,0),(2,1)\}$ and"
        r" $\{(1,2),(2,0)\}$. $\{(0,0),(2,1)\}$ and $\{(1,0),(1,2)\}$ collide too."
        r" Softmax tells"
        r" all of them apart."
    ),
    source="article A, section 3",
    status=Status.CORRECTED,
    scope=(
        "two histories of equally many tokens, in natural numbers; smaller meaning fewer tokens, then a"
        " smaller largest entry"
    ),
    variables=(
        Variable("k", "keys, one feature φ(k) = k"),
        Variable("v", "scalar values"),
        Variable("q", "scalar query"),
    ),
    assumptions=(Assumption("the normaliser Σk is not 0, so that the linear reader answers at all"),),
    asked="ES",
    parts=parts,
    mutants=(
        Mutant(
            "printed pair", "the printed pair claimed to collide", lambda: (_collide(PRINTED, "0", "1/2"),)
        ),
        Mutant(
            "zero normaliser",
            "one token claimed determined with key 0 too",
            lambda: (_one_token(nonzero=False),),
        ),
        Mutant("gap", "outputs claimed more than 1/2 apart", lambda: (_collide(LARGER, "0", "3/4"),)),
    ),
    remark="A key of 0 is no oversight of the witness: it is how a linear state forgets that a token was"
    " there.",
    counterexample=Counterexample(
        fails=(
            r"$\{(1,0),(0,1)\}$ and $\{(\frac12,\frac12),(\frac12,\frac12)\}$, pairs (key, value), "
            r"have one state $(\sum kv,\sum k)$."
        ),
        believed=r"Both have the same total key 1 and the same mean value $\frac12$.",
        catch=(
            r"The state does not hold the mean of the values but $\sum kv$, and that is 0 for the "
            r"first and $\frac12$ for the second."
        ),
        gap=(
            r"The printed states are $\frac12$ apart, exactly. The pairs that do collide have softmax "
            r"outputs exactly $\frac12$ apart at $q=0$."
        ),
        witness=(
            "Σkv of the first history",
            "Σkv of the second history",
            "{(0, 0), (1, 1)} and {(0, 1), (1, 1)} at q = 0",
            "{(1, 0), (2, 1)} and {(1, 2), (2, 0)} at q = 0",
        ),
        smallest=(
            "Proved for equally many tokens in natural numbers: one token is determined by its state "
            "(both solvers, all integers), and with entries all 0 there is nothing to differ. With "
            "keys that are not 0, entries up to 1 never collide (both solvers). The search goes "
            "through all pairs of histories in that order. Without the equal count there is {(1, 1)} "
            "against {(0, 0), (1, 1)}."
        ),
        repair=(
            r"$\{(0,0),(2,1)\}$ and $\{(1,0),(1,2)\}$ do collide, in $(2,2)$; smaller still are "
            r"$\{(0,0),(1,1)\}$ and $\{(0,1),(1,1)\}$, since a token with key 0 leaves no trace in "
            "the state but keeps a weight in softmax. For any features see the null space."
        ),
        repaired_by=("collision.bilinear", "collision.nullspace"),
        search="counterexamples.collision._search:smallest",
    ),
)

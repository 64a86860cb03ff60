"""A continuous state of fewer numbers than the history has cannot keep it.

With keys and gates given, the state of a KDA head is linear in the values: S = Σ_j w_j v_jᵀ with n vectors
w_j in R^K. Once n > K some z ≠ 0 has Σ_j z_j w_j = 0, and the values V and V + zuᵀ have one state. For a
state that is only assumed continuous in the values, invariance of domain says the same.
"""

from typing import Any

from sympy import Expr, IndexedBase, Sum, symbols

from verify.derive import Chain, Hypothesis, Setting
from verify.derive.contradiction import contradiction, term
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

j, n, a, c = symbols("j n a c")
w, v, z, u = (IndexedBase(name) for name in ("w", "v", "z", "u"))


def _merged(kept: Expr | int) -> Obligation:
    null = Sum(w[j, a] * z[j], (j, 1, n))
    sizes = ({n: 3, a: 1, c: 1}, {n: 4, a: 2, c: 2})
    setting = Setting((), (Hypothesis("null vector", null, 0),), instances=sizes)
    chain = Chain(
        "entry (a, c) of the other state", setting, Sum(w[j, a] * (v[j, c] + z[j] * u[c]), (j, 1, n))
    )
    first = Sum(w[j, a] * v[j, c], (j, 1, n))
    chain = chain.rearrange("multiply out", first + u[c] * null)
    return chain.use("the vectors are dependent", first + kept, **{"null vector": u[c]}).obligation()


def _fits(bound: str) -> Obligation:
    text = f"""(set-logic QF_NRA)
(declare-const n Real)(declare-const k Real)(declare-const v Real)
(assert (and (> n 0.0) (> k 0.0) (> v 0.0)))
(assert (not (= (<= (* n v) (* k v)) (<= n {bound}))))
(check-sat)
"""
    label = "n·V numbers fit into K·V exactly when n ≤ K"
    return Obligation("smt", label, "S", {"smtlib": text, "expect": "unsat", "logic": "QF_NRA"})


KEYS = [["1", "0"], ["0", "1"], ["3/5", "4/5"]]


def _reads(values: list[list[str]], query: list[str], output: list[str], label: str) -> Obligation:
    writes = [{"beta": "1", "key": key, "value": value} for key, value in zip(KEYS, values, strict=True)]
    data: dict[str, Any] = {"writes": writes, "query": query, "output": output, "unit": True}
    return Obligation("delta-read", label, "E", data)


FIRST = [["0"], ["0"], ["0"]]


def _witness(third: str, label: str) -> tuple[Obligation, ...]:
    """Delta rule, K = 2, V = 1: three writes that leave the zero state."""
    values = [["3"], ["4"], [third]]
    return (
        _reads(values, ["1", "0"], ["0"], f"{label}, first entry"),
        _reads(values, ["0", "1"], ["0"], f"{label}, second entry"),
    )


def _signs_fits() -> Obligation:
    """V·(n − K) and KV − nV."""
    return contradiction(_fits("k"), (term(3), term(2, 4)), (term(3), term(2, 4)))


def parts() -> tuple[Part, ...]:
    """The linear case, a witness, and the count for a continuous state."""
    return (
        Part(
            r"If $\sum_jz_jw_j=0$ the values $v_j$ and $v_j+z_ju$ have one state, for every $u$ and $V$; for"
            r" $n>K$ vectors in"
            r" $\mathbb{R}^K$ such a $z\ne0$ exists (collision.nullspace).",
            (_merged(0),),
        ),
        Part(
            r"At $K=2$, $n=3$: the delta rule at $\beta=1$ with keys $(1,0),(0,1),(3/5,4/5)$ reaches the"
            r" zero state from the"
            r" values $0,0,0$ and from $3,4,0$.",
            (
                _reads(FIRST, ["1", "0"], ["0"], "zero values, first entry"),
                _reads(FIRST, ["0", "1"], ["0"], "zero values, second entry"),
                *_witness("0", "values 3, 4, 0"),
            ),
        ),
        Part(
            r"By invariance of domain a continuous injective state for $n$ values of width $V$ needs at"
            r" least $nV$ numbers; a"
            r" KDA head has $KV$, so the wall is $n>K$.",
            (_fits("k"), _signs_fits()),
        ),
    )


CLAIM = Claim(
    id="state.dimension-wall",
    title="A continuous state of fewer numbers than the history has cannot keep it",
    statement=(
        r"No continuous injective map takes the $nV$ real numbers of $n$ values of width $V$ to fewer than"
        r" $nV$ numbers. One"
        r" KDA head holds $KV$, so with keys and gates fixed more than $K$ values are never all kept: two"
        r" lists of values"
        r" have one state."
    ),
    source="article B, section 1",
    status=Status.AS_PRINTED,
    scope="every n, K, V; the witness at K = 2, n = 3, V = 1",
    variables=(
        Variable("n", "number of tokens"),
        Variable("w_j", r"what is left of $\beta_jk_j$ in the state, $\mathbb{R}^K$"),
        Variable("v_j", r"values, $\mathbb{R}^V$"),
        Variable("u", r"any vector, $\mathbb{R}^V$"),
    ),
    assumptions=(
        Assumption(
            "invariance of domain: no continuous injective map from R^a to R^b with b < a", cited=True
        ),
        Assumption("keys and gates do not depend on the values"),
    ),
    asked="E",
    parts=parts,
    mutants=(
        Mutant("one u kept", "a state that keeps one u", lambda: (_merged(u[c]),)),
        Mutant("another value", "a third value of 1", lambda: _witness("1", "mutant")),
        Mutant("twice the keys", "n ≤ 2K", lambda: (_fits("(* 2.0 k)"),)),
    ),
    remark="Real numbers of infinite precision can be interleaved into one, but not continuously; a state"
    " that is read"
    " through floats cannot use that.",
)

"""One constant gate serves two lifetimes only when they fit; K channels serve at most K that do not.

With x = ln γ the demands γ^{L₁} ≥ a and γ^{L₂} ≤ b are linear: L₁x ≥ ln a and L₂x ≤ ln b. That more than K
demands of which no two fit in one channel do not fit in K channels is counted: a channel that takes at most
one demand leaves at least n − K of n demands over.
"""

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.derive.contradiction import contradiction, term
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

c, K, n = symbols("c K n")
taken, free = IndexedBase("d"), IndexedBase("r")

DECLARED = """(set-logic QF_NRA)
(declare-const x Real)(declare-const lna Real)(declare-const lnb Real)
(declare-const l1 Real)(declare-const l2 Real)
(assert (> l1 0.0))
(assert (> l2 0.0))
(assert (<= lna 0.0))
(assert (<= lnb 0.0))
"""
FITS = "(<= (* lna l2) (* lnb l1))"
MET = "(and (>= (* l1 x) lna) (<= (* l2 x) lnb) (<= x 0.0))"


def _query(label: str, *conditions: str, expect: str = "unsat") -> Obligation:
    asserts = "".join(f"(assert {condition})\n" for condition in conditions)
    text = f"{DECLARED}{asserts}(check-sat)\n"
    return Obligation("smt", label, "S", {"smtlib": text, "expect": expect, "logic": "QF_NRA"})


def _necessary() -> Obligation:
    return _query("a gate that meets both demands makes them fit", MET, f"(not {FITS})")


def _sufficient(gate: str) -> Obligation:
    return _query("ln γ = ln b/L₂ meets both when they fit", FITS, f"(= (* l2 x) {gate})", f"(not {MET})")


def _equal_times(order: str) -> Obligation:
    return _query("one time, b < a: never", "(= l1 l2)", f"({order} lnb lna)", MET)


def _pigeonhole(most: int) -> Obligation:
    room = Definition("room", free[c], most - taken[c], (c,))
    served = Hypothesis("served", Sum(taken[c], (c, 1, K)), n)
    setting = Setting((room,), (served,), nonnegative=(free,), nonempty=(K,), instances=({K: 2}, {K: 3}))
    chain = Chain("number of channels", setting, K)
    both = Sum(taken[c], (c, 1, K)) + Sum(free[c], (c, 1, K))
    chain = chain.unfold("each takes at most one demand", both, "room")
    chain = chain.use("all demands are served", n + Sum(free[c], (c, 1, K)), served=Integer(1))
    return chain.drop("no channel takes fewer than none", n, _rest()).obligation()


def _rest() -> Expr:
    return Sum(free[c], (c, 1, K))


def _signs() -> tuple[Obligation, Obligation, Obligation]:
    """Each demand times the other lifetime; literals 0 and 1 are L₁ > 0 and L₂ > 0."""
    needed = (term(7), term(1, 4), term(0, 5))
    enough = (
        (term(1, 6), term(4), term(5, times="l1")),
        (term(6), term(5, times="(- 1.0)")),
        (term(1, 6), term(3), term(5, times="(- 1.0)")),
    )
    never = (term(5), term(6), term(7), term(4, times="(- x)"))
    return (
        contradiction(_necessary(), needed),
        contradiction(_sufficient("lnb"), *enough),
        contradiction(_equal_times("<"), never),
    )


def parts() -> tuple[Part, ...]:
    """Both directions, equal times, and counting."""
    return (
        Part(
            r"A gate $\gamma\in(0,1]$ with $\gamma^{L_1}\ge a$ and $\gamma^{L_2}\le b$, that is"
            r" $L_1\ln\gamma\ge\ln a$"
            r" and $L_2\ln\gamma\le\ln b$, exists only if $\ln a/L_1\le\ln b/L_2$, that is"
            r" $a^{1/L_1}\le b^{1/L_2}$.",
            (_necessary(), _signs()[0]),
        ),
        Part(r"Then $\gamma=b^{1/L_2}$ is such a gate.", (_sufficient("lnb"), _signs()[1])),
        Part(r"For $L_1=L_2$ and $b<a$ there is none.", (_equal_times("<"), _signs()[2])),
        Part(
            r"If no channel serves two of $n$ demands and all are served, then $n\le K$: more than $K$"
            r" demands that are"
            r" pairwise incompatible make two of them share a channel that fails one.",
            (_pigeonhole(1),),
        ),
    )


CLAIM = Claim(
    id="gate.two-lifetimes",
    title="One constant gate serves two lifetimes only when they fit; K channels serve at most K that do not",
    statement=(
        r"For $0<a,b\le1$ and $L_1,L_2>0$ a constant gate $\gamma\in(0,1]$ with $\gamma^{L_1}\ge a$ and"
        r" $\gamma^{L_2}\le b$ exists iff $a^{1/L_1}\le b^{1/L_2}$; for $L_1=L_2$ and $b<a$ never. Among"
        r" more than $K$"
        r" pairwise incompatible demands two share one of $K$ channels, which then fails one of them."
    ),
    source="article A, section 3",
    status=Status.AS_PRINTED,
    scope="all real lifetimes > 0, all a, b in (0, 1], every K",
    variables=(
        Variable(
            r"\gamma", "constant gate, $(0,1]$; a gate of 0 keeps nothing, so it meets no demand with $a>0$"
        ),
        Variable("a, b", "the share to keep at least and at most, $(0,1]$"),
        Variable("L_1, L_2", "numbers of steps, > 0"),
        Variable("d_c", "number of demands that channel $c$ serves, 0 or 1"),
    ),
    assumptions=(
        Assumption("the logarithm is increasing, so each demand is the same as its logarithm"),
        Assumption("gates are constant: a gate that depends on the token is gate.causal"),
    ),
    asked="KS",
    parts=parts,
    mutants=(
        Mutant("other bound", "the gate a^{1/L₁} taken at the wrong time", lambda: (_sufficient("lna"),)),
        Mutant("b above a", "one time and a < b claimed impossible", lambda: (_equal_times(">"),)),
        Mutant("two per channel", "channels that take two demands", lambda: (_pigeonhole(2),)),
    ),
    remark="The data can only choose between gates that are there: this concerns one gate value for all"
    " tokens.",
)

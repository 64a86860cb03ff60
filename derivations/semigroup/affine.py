"""State updates compose as pairs (A, B): a monoid, not commutative, not a group.

A chunk of tokens acts on the state as S ↦ AS + B. Doing one chunk after the other composes the pairs; entry
by entry the composition is associative, has the neutral pair (I, 0) and keeps the length of no vector
growing if neither part does. Scalar pairs already show that order matters and that there are pairs without
inverse.
"""

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from derivations.kda import _contraction as contraction
from verify.derive import Chain, Definition, Setting
from verify.derive.tree import tree
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

a, b, c, e, f, K = symbols("a b c e f K")
A1, A2, A3, B1, B2, B3, S = (IndexedBase(name) for name in ("A1", "A2", "A3", "B1", "B2", "B3", "S"))
unit = IndexedBase("I")
A21, A32, B21, B32, T = (IndexedBase(name) for name in ("A21", "A32", "B21", "B32", "S'"))
SIZES = ({K: 2, a: 1, b: 2, c: 1},)


def _pair(
    name: str, left: tuple[IndexedBase, ...], composed: tuple[IndexedBase, IndexedBase]
) -> tuple[Definition, ...]:
    """(A″, B″) = (A′, B′)∘(A, B): A″ = A′A, B″ = A′B + B′."""
    later_a, later_b, first_a, first_b = left
    product, shift = composed
    return (
        Definition(f"{name}: A", product[a, b], Sum(later_a[a, e] * first_a[e, b], (e, 1, K)), (a, b)),
        Definition(
            f"{name}: B", shift[a, c], Sum(later_a[a, e] * first_b[e, c], (e, 1, K)) + later_b[a, c], (a, c)
        ),
    )


FIRST = _pair("2 after 1", (A2, B2, A1, B1), (A21, B21))
LATER = _pair("3 after 2", (A3, B3, A2, B2), (A32, B32))
NAMES = tuple(item.name for item in (*FIRST, *LATER))


def _acts() -> Obligation:
    first = Definition("first", T[a, c], Sum(A1[a, f] * S[f, c], (f, 1, K)) + B1[a, c], (a, c))
    setting = Setting((*FIRST, first), instances=SIZES)
    chain = Chain("one after the other", setting, Sum(A2[a, e] * T[e, c], (e, 1, K)) + B2[a, c])
    after = Sum(A21[a, f] * S[f, c], (f, 1, K)) + B21[a, c]
    return chain.unfold("is the composed pair", after, "first", NAMES[0], NAMES[1]).obligation()


def _associative_a() -> Obligation:
    setting = Setting((*FIRST, *LATER), instances=SIZES)
    chain = Chain("associativity of A", setting, Sum(A3[a, f] * A21[f, b], (f, 1, K)))
    return chain.unfold("exchange the sums", Sum(A32[a, f] * A1[f, b], (f, 1, K)), *NAMES).obligation()


def _associative_b(last: Expr) -> Obligation:
    setting = Setting((*FIRST, *LATER), instances=SIZES)
    chain = Chain("associativity of B", setting, Sum(A3[a, f] * B21[f, c], (f, 1, K)) + B3[a, c])
    return chain.unfold(
        "exchange the sums", Sum(A32[a, f] * last, (f, 1, K)) + B32[a, c], *NAMES
    ).obligation()


def _neutral(last: bool, diagonal: int = 1) -> Obligation:
    """Entry (a, b) of IA, or of AI: every summand off the diagonal vanishes, one is left."""
    definitions = (
        Definition("diagonal", unit[e, e], Integer(diagonal), (e,)),
        Definition("above the diagonal", unit[e, f], Integer(0), (e, f), ((e, f - 1),)),
        Definition("below the diagonal", unit[e, f], Integer(0), (e, f), ((f, e - 1),)),
    )
    at, title, summand = (a, "the identity last", unit[a, e] * A1[e, b])
    if not last:
        at, title, summand = (b, "the identity first", A1[a, e] * unit[e, b])
    sizes = ({K: 3, a: 2, b: 1}, {K: 2, a: 1, b: 2})
    setting = Setting(definitions, order=((1, at), (at, K)), instances=sizes)
    chain = Chain(title, setting, Sum(summand, (e, 1, K)))
    after = Sum(summand, (e, at + 1, K))
    chain = chain.split("up to the diagonal", Sum(summand, (e, 1, at)) + after, K, at)
    before = Sum(summand, (e, 1, at - 1))
    chain = chain.split("the diagonal", before + summand.subs(e, at) + after, at, at - 1)
    names = tuple(item.name for item in definitions)
    return chain.unfold("the entries of I", A1[a, b], *names).obligation()


def _certificate(label: str, terms: tuple[tuple[Expr | int, Expr | int], ...]) -> Obligation:
    """1 as a combination of equations that would have to hold."""
    data = {
        "equations": [tree(equation) for _, equation in terms],
        "multipliers": [tree(multiplier) for multiplier, _ in terms],
        "target": tree(Integer(1)),
    }
    return Obligation("polynomial-certificate", label, "E", data)


def _order_matters(first_factor: int) -> Obligation:
    """Scalars (2, 1) and (1, 1): 1·1 + 1 = 2 against 2·1 + 1 = 3."""
    p, q, r, s = symbols("A_1 B_1 A_2 B_2")
    difference = r * q + s - p * s - q
    terms = ((-1, difference), (-s, p - first_factor), (q, r - 1), (-1, s - 1))
    return _certificate("if (2, 1) and (1, 1) commuted, 1 would be 0", terms)


def _no_inverse(target: int) -> Obligation:
    inverse = symbols("A")
    zero = Integer(0)
    return _certificate(
        "no pair composes with (0, 0) to (1, 0): A·0 would be 1", ((-1, inverse * zero - target),)
    )


def parts() -> tuple[Part, ...]:
    """Action, neutral pair, associativity, contraction, and two scalar witnesses."""
    return (
        Part(
            r"$S\mapsto A_1S+B_1$ followed by $S\mapsto A_2S+B_2$ is $S\mapsto A_2A_1S+(A_2B_1+B_2)$: pairs"
            r" are closed under composition. $(I,0)$ is neutral: $IA=AI=A$ and, likewise,"
            r" $IB+0=A0+B=B$.",
            (_acts(), _neutral(last=True), _neutral(last=False)),
        ),
        Part(
            r"Composition is associative: $A_3(A_2A_1)=(A_3A_2)A_1$ and"
            r" $A_3(A_2B_1+B_2)+B_3=(A_3A_2)B_1+(A_3B_2+B_3)$, for every $K$ and $V$.",
            (_associative_a(), _associative_b(B1[f, c])),
        ),
        Part(
            r"If no $A_i$ lengthens a vector, no product of them does (induction on their number).",
            (contraction.telescope(), contraction.never_longer()),
        ),
        Part(r"Not commutative: the scalar pairs $(2,1)$ and $(1,1)$.", (_order_matters(2),)),
        Part(r"Not a group: $(0,0)$ has no inverse.", (_no_inverse(1),)),
    )


CLAIM = Claim(
    id="semigroup.affine",
    title="State updates compose as pairs (A, B): a monoid, not commutative, not a group",
    statement=(
        r"The pairs $(A,B)$, $A\in\mathbb{R}^{K\times K}$, $B\in\mathbb{R}^{K\times V}$, acting by $S\mapsto"
        r" AS+B$, are a"
        r" monoid under $(A_2,B_2)\circ(A_1,B_1)=(A_2A_1,A_2B_1+B_2)$ with neutral element $(I,0)$. It is not"
        r" commutative and not a group; pairs whose $A$ is a contraction are closed under composition."
    ),
    source="article A, section 4; article D",
    status=Status.AS_PRINTED,
    scope="every K and V; the two witnesses are scalars",
    variables=(
        Variable("A_i", r"\mathbb{R}^{K\times K}"),
        Variable("B_i", r"\mathbb{R}^{K\times V}"),
        Variable("S", r"\mathbb{R}^{K\times V}"),
    ),
    assumptions=(
        Assumption("exact arithmetic: in floating point composition is not associative"),
        Assumption(
            "scalars embed as (aI, bE), E a fixed matrix that is not 0: such pairs compose like (a, b), so"
            " two that do not commute give such pairs at every K and V; A·0 = I fails in every diagonal entry"
        ),
    ),
    asked="KE",
    parts=parts,
    mutants=(
        Mutant(
            "wrong shift", "B₂ in place of B₁ in the associativity of B", lambda: (_associative_b(B2[f, c]),)
        ),
        Mutant("equal factors", "(1, 1) and (1, 1) claimed not to commute", lambda: (_order_matters(1),)),
        Mutant("twice the identity", "2I claimed neutral", lambda: (_neutral(last=True, diagonal=2),)),
        Mutant("zero is neutral", "no pair composes with (0, 0) to (0, 0)", lambda: (_no_inverse(0),)),
    ),
    remark="Associativity is what lets a scan cut the tokens anywhere; the missing inverse is"
    " state.no-rollback.",
)

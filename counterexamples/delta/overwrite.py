"""The delta rule overwrites near keys.

The statement that fails: two writes under keys with k₁·k₂ = 0.99 leave a share of 0.98 of something readable.

Why one would believe it: 0.99² = 0.9801 does occur, and a rule that «corrects only the error» sounds as if it
left other keys alone.

The catch: the second write erases along k₂ whatever the state answers there, and the state answers ρv₁.
Reading k₁ afterwards gives (1 − ρ²)v₁ + ρv₂: at ρ = 0.99 a share of 0.0199 of the first value and 0.99 of the
second. 0.98 is neither; it is ρ², the share that was lost.

The repair: the closed form, for every key and value width, and softmax, which tells the two keys apart with a
large enough query.
"""

from sympy import Expr, IndexedBase, Sum, Symbol, symbols

from counterexamples._smt import query
from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

K, V, i, j, c = symbols("K V i j c", integer=True, positive=True)
rho, n = Symbol("rho"), Symbol("n")
k1, k2, v1, v2 = (IndexedBase(name) for name in ("k1", "k2", "v1", "v2"))
s1, s2, o = (IndexedBase(name) for name in ("S1", "S2", "o"))

SIZES: tuple[dict[Symbol, int], ...] = ({K: 2, V: 2, c: 1}, {K: 3, V: 2, c: 2})

UNIT_KEYS = [["1", "0", "0", "0", "0"], ["99/100", "13/100", "5/100", "2/100", "1/100"]]
"""Two unit keys with k₁·k₂ = 99/100: 100² = 99² + 13² + 5² + 2² + 1², and four squares is the fewest."""


def _writes() -> Setting:
    second = s1[i, c] - k2[i] * (Sum(k2[j] * s1[j, c], (j, 1, K)) - v2[c])
    return Setting(
        definitions=(
            Definition("first write", s1[i, c], k1[i] * v1[c], (i, c)),
            Definition("second write", s2[i, c], second, (i, c)),
        ),
        hypotheses=(
            Hypothesis("unit", Sum(k1[i] ** 2, (i, 1, K)), 1),
            Hypothesis("overlap", Sum(k1[i] * k2[i], (i, 1, K)), rho),
        ),
        instances=SIZES,
    )


def _read(share: Expr) -> Obligation:
    overlap = Sum(k1[i] * k2[i], (i, 1, K))
    square = Sum(k1[i] ** 2, (i, 1, K))
    chain = Chain("reading k₁ after two writes of strength 1", _writes(), Sum(k1[i] * s2[i, c], (i, 1, K)))
    chain = chain.unfold(
        "the second write: erase along k₂, add v₂",
        Sum(k1[i] * s1[i, c], (i, 1, K)) - overlap * (Sum(k2[j] * s1[j, c], (j, 1, K)) - v2[c]),
        "second write",
    )
    chain = chain.unfold(
        "the first write, from the zero state",
        square * v1[c] - overlap**2 * v1[c] + overlap * v2[c],
        "first write",
    )
    after = share * v1[c] + rho * v2[c]
    chain = chain.use("unit key and overlap", after, unit=v1[c], overlap=v2[c] - v1[c] * (overlap + rho))
    return chain.obligation()


def _error(total: Expr) -> Obligation:
    setting = Setting(
        definitions=(Definition("read", o[c], (1 - rho**2) * v1[c] + rho * v2[c], (c,)),),
        hypotheses=(
            Hypothesis("first", Sum(v1[c] ** 2, (c, 1, V)), n),
            Hypothesis("second", Sum(v2[c] ** 2, (c, 1, V)), n),
            Hypothesis("orthogonal", Sum(v1[c] * v2[c], (c, 1, V)), 0),
        ),
        instances=({V: 2}, {V: 3}),
    )
    first, second, mixed = (Sum(x, (c, 1, V)) for x in (v1[c] ** 2, v2[c] ** 2, v1[c] * v2[c]))
    chain = Chain(
        "squared error for orthogonal values of one norm", setting, Sum((o[c] - v1[c]) ** 2, (c, 1, V))
    )
    spread = rho**4 * first - 2 * rho**3 * mixed + rho**2 * second
    chain = chain.unfold("the read, multiplied out", spread, "read")
    chain = chain.use("equal norms, orthogonal", total, first=rho**4, second=rho**2, orthogonal=-2 * rho**3)
    return chain.obligation()


def _replay(first_share: str, second_share: str) -> Obligation:
    return Obligation(
        "delta-read",
        "the two coefficients at ρ = 0.99, replayed on rational unit keys (K = 5, V = 2)",
        "E",
        {
            "writes": [
                {"beta": "1", "key": UNIT_KEYS[0], "value": ["1", "0"]},
                {"beta": "1", "key": UNIT_KEYS[1], "value": ["0", "1"]},
            ],
            "query": UNIT_KEYS[0],
            "output": [first_share, second_share],
            "unit": True,
        },
    )


def _size_of_error(low: str, high: str) -> Obligation:
    body = f"""
(declare-const e Real)
(assert (>= e 0.0))
(assert (= (* e e) (+ (* 0.99 0.99) (* 0.99 0.99 0.99 0.99))))
(assert (not (and (< {low} e) (< e {high}))))"""
    return query(f"at ρ = 0.99 the error is between {low} and {high} of the signal", "QF_NRA", body)


def _threshold() -> Obligation:
    body = """
(declare-const r Real)
(assert (>= r 0.787))
(assert (not (> (+ (* r r) (* r r r r)) 1.0)))"""
    return query("for ρ ≥ 0.787 the error exceeds the signal", "QF_NRA", body)


def parts() -> tuple[Part, ...]:
    """The closed form, its size, and the printed coefficient."""
    return (
        Part(
            r"Reading $k_1$ after writing $(k_1,v_1),(k_2,v_2)$ with $\beta=1$ gives"
            r" $(1-\rho^2)v_1+\rho v_2$, for every $K$ and $V$.",
            (_read(1 - rho**2),),
        ),
        Part(r"At $\rho=0.99$ the coefficients are $0.0199$ and $0.99$.", (_replay("199/10000", "99/100"),)),
        Part(
            r"For orthogonal values of one norm the squared error is $(\rho^4+\rho^2)\|v_1\|^2$, so at"
            r" $\rho=0.99$ the error is $1.393$ times the signal, and it exceeds the signal from"
            r" $\rho=0.787$ on.",
            (_error((rho**4 + rho**2) * n), _size_of_error("1.393", "1.3931"), _threshold()),
        ),
        Part(
            r"At $\rho=0.99$ one of the two values is read with coefficient $0.98$ (printed).",
            (_replay("199/10000", "99/100"),),
            refutes=True,
        ),
    )


CLAIM = Claim(
    id="delta.overwrite",
    title="The delta rule overwrites near keys",
    statement=r"From the zero state, unit keys with $\rho=k_1\cdot k_2$ and $\beta=1$: reading $k_1$ after"
    r" writing $(k_1,v_1)$ and then $(k_2,v_2)$ gives $(1-\rho^2)v_1+\rho v_2$. At $\rho=0.99$ the"
    r" coefficients are $0.0199$ and $0.99$; for orthogonal values of one norm the error is"
    r" $\rho\sqrt{1+\rho^2}$ of the signal.",
    source="article A, section 3",
    status=Status.CORRECTED,
    scope="every key width K, value width V and real ρ; the figures at ρ = 0.99",
    variables=(
        Variable(r"k_1,k_2", r"\mathbb{R}^K, \|k_1\|=\|k_2\|=1"),
        Variable(r"v_1,v_2", r"\mathbb{R}^V"),
        Variable(r"\rho", r"[-1,1]"),
    ),
    assumptions=(
        Assumption("the state is zero before the first write"),
        Assumption("β = 1 for both writes; only ‖k₁‖ = 1 is used"),
    ),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant("one ρ missing", "the retained share written as 1 − ρ", lambda: (_read(1 - rho),)),
        Mutant("sign flipped", "the retained share written as 1 + ρ²", lambda: (_read(1 + rho**2),)),
        Mutant("printed coefficient", "0.98 for the first value", lambda: (_replay("98/100", "99/100"),)),
        Mutant(
            "cross term kept",
            "the squared error with a cross term",
            lambda: (_error((rho**4 + rho**2 - 2 * rho**3) * n),),
        ),
        Mutant(
            "error too small",
            "the error at most 1.39 of the signal",
            lambda: (_size_of_error("1.38", "1.39"),),
        ),
    ),
    remark="The figure 0.98 is ρ² = 0.9801 at ρ = 0.99: the share of the first value that is lost, not a"
    " coefficient of the read.",
)

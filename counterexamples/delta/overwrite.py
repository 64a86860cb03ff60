"""The delta rule overwrites near keys."""

from sympy import Expr, IndexedBase, Sum, Symbol, symbols

from counterexamples._smt import query
from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.derive.contradiction import contradiction, term
from verify.model.claim import Assumption, Claim, Counterexample, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

K, V, i, j, c = symbols("K V i j c", integer=True, positive=True)
rho, n = Symbol("rho"), Symbol("n")
k1, k2, v1, v2 = (IndexedBase(name) for name in ("k1", "k2", "v1", "v2"))
s1, s2, o = (IndexedBase(name) for name in ("S1", "S2", "o"))

SIZES: tuple[dict[Symbol, int], ...] = ({K: 2, V: 2, c: 1}, {K: 3, V: 2, c: 2})

UNIT_KEYS = [["1", "0", "0", "0", "0"], ["99/100", "14/100", "1/100", "1/100", "1/100"]]
"""Two unit keys with k₁·k₂ = 99/100: 100² = 99² + 14² + 1² + 1² + 1², and four squares is the fewest."""


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


def _replay(first_share: str, second_share: str, printed: str = "") -> Obligation:
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
            **({"printed": printed} if printed else {}),
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


def _signs_size() -> Obligation:
    """(b − e)(b + e) has the sign of b² − 1.94069601 at b = 1.393 and b = 1.3931."""
    below = (term(0, 2), term(2, times="1.393"), term(1), term(times="0.00024701"))
    above = (term(0, 2), term(2, times="1.3931"), term(1, times="(- 1.0)"), term(times="0.0000316"))
    return contradiction(_size_of_error("1.393", "1.3931"), below, above)


def _signs_threshold() -> Obligation:
    """r² + r⁴ − 1 in powers of r − 0.787, all of them with positive coefficients."""
    coefficients = ("0.002986958161", "3.523773612", "4.716214", "3.148", "1.0")
    powers = [term(*[0] * power, times=factor) for power, factor in enumerate(coefficients)]
    return contradiction(_threshold(), (term(1), *powers))


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
            (
                _error((rho**4 + rho**2) * n),
                _size_of_error("1.393", "1.3931"),
                _threshold(),
                _signs_size(),
                _signs_threshold(),
            ),
        ),
        Part(
            r"At $\rho=0.99$ one of the two values is read with coefficient $0.98$ (printed).",
            (_replay("199/10000", "99/100", "0.98"),),
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
    counterexample=Counterexample(
        fails=(
            r"Two writes under keys with $k_1\cdot k_2=0.99$ leave a share of $0.98$ of something "
            "readable."
        ),
        believed=(
            "$0.99^2=0.9801$ does occur, and a rule that «corrects only the error» sounds as if it "
            "left other keys alone."
        ),
        catch=(
            "The second write erases along $k_2$ whatever the state answers there, and the state "
            r"answers $\rho v_1$. Reading $k_1$ afterwards gives $(1-\rho^2)v_1+\rho v_2$. $0.98$ is "
            r"neither coefficient; it is $\rho^2$, the share that was lost."
        ),
        gap=r"At $\rho=0.99$ the coefficients are exactly $0.0199$ and $0.99$; neither is $0.98$.",
        witness=("the two coefficients at ρ = 0.99, replayed on rational unit keys (K = 5, V = 2)",),
        smallest=(
            "Rational unit keys with this overlap need five channels: 1 − ρ² = 199/10⁴, and 199 = "
            "8·24 + 7 is no sum of three squares, of fractions neither (Legendre; Davenport and "
            "Cassels). The search finds the four squares 14², 1², 1², 1²."
        ),
        repair=(
            "The closed form, for every key and value width, and softmax, which tells the two keys "
            "apart with a large enough query."
        ),
        repaired_by=("delta.overwrite", "delta.overwrite-general", "softmax.separates-near-keys"),
        search="counterexamples.delta._search:unit_keys",
    ),
)

"""Which rational matrices are one KDA step: decided, with the step or a reason.

With R = βkkᵀ the off-diagonal entries are M_ij = −R_ijα_j and the diagonal ones (1 − R_jj)α_j. Where three
channels mix, one α_j is forced by four entries, and with it everything else; where two mix, α_j is a root of
a quadratic that always has a nonzero real root; a matrix without entries off the diagonal is a gate. With
α in [0, 1], ‖k‖ = 1 and β in [0, 2] more is asked of the same numbers.
"""

from collections.abc import Callable
from fractions import Fraction

from sympy import Expr, IndexedBase, Integer, symbols

from derivations.kda import _contraction as contraction
from derivations.kda import _step_evidence
from derivations.kda._represent import Impossible, Step, Surd, represent
from verify.derive import Chain, Definition, Setting
from verify.derive.contradiction import contradiction, term
from verify.derive.tree import tree
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

beta = symbols(r"\beta")
i, j, l = symbols("i j l")  # noqa: E741
k, alpha = IndexedBase("k"), IndexedBase(r"\alpha")
M = IndexedBase("M")

THREE_CHANNELS = [["5/12", "-1/3", "-2/3"], ["-1/6", "1/3", "-4/3"], ["-1/6", "-2/3", "2/3"]]
HALVED = [["5/24", "-1/6", "-1/3"], ["-1/12", "1/6", "-2/3"], ["-1/12", "-1/3", "1/3"]]
DEAD_CHANNEL = [["5/12", "-1/3", "0"], ["-1/6", "1/3", "0"], ["-1/6", "-2/3", "0"]]
TWO_CHANNELS = [["1", "2"], ["1", "1"]]
SLANTED = [["1", "2"], ["0", "1"]]
OUTSIDE = (
    [["1", "0"], ["1", "0"]],
    [["0", "1"], ["-1", "0"]],
    [["0", "1/4"], ["1/2", "1/2"]],
    [["0", "3/4"], ["1/2", "-1/4"]],
    [["2/3", "-1/3", "1/6"], ["-1/3", "2/3", "1/6"], ["-1/3", "-1/3", "-1/3"]],
    [["5/8", "1/8", "1/8"], ["1/8", "5/8", "1/8"], ["1/8", "1/8", "5/8"]],
    [["0", "-1/2", "-1/4"], ["-1/2", "0", "-1/4"], ["-1/4", "-1/4", "3/8"]],
)
"""Bounds broken, one each: length, signs, room, strength; with three channels: decay, erase, strength."""


def _numbers(matrix: list[list[str]]) -> list[list[Fraction]]:
    return [[Fraction(entry) for entry in row] for row in matrix]


def _entries() -> tuple[Definition, ...]:
    """Entries of (I − βkkᵀ)Diag(α) at the places that occur; i, j, l are different channels."""

    def off(row: Expr, column: Expr) -> Definition:
        return Definition(f"({row}, {column})", M[row, column], -beta * k[row] * k[column] * alpha[column])

    def on(row: Expr) -> Definition:
        return Definition(f"({row}, {row})", M[row, row], (1 - beta * k[row] ** 2) * alpha[row])

    return (off(i, j), off(j, i), off(j, l), off(i, l), on(i), on(j))


def _setting() -> Setting:
    nonzero = (beta, k[i], k[j], k[l], alpha[i], alpha[j], alpha[l])
    return Setting(_entries(), nonzero=nonzero, instances=({i: 1, j: 2, l: 3},))


def _forced(sign: int) -> Obligation:
    chain = Chain(
        "the decay that three channels force", _setting(), M[j, j] - sign * M[i, j] * M[j, l] / M[i, l]
    )
    return chain.unfold("insert the entries", alpha[j], "(i, j)", "(j, l)", "(i, l)", "(j, j)").obligation()


def _two_channels(square: Expr) -> Obligation:
    first = M[i, i] * M[i, j] / M[j, i]
    start = (alpha[j] - first) * (alpha[j] - M[j, j]) - square
    chain = Chain("the quadratic of two channels", _setting(), start)
    return chain.unfold("insert the entries", Integer(0), "(i, j)", "(j, i)", "(i, i)", "(j, j)").obligation()


def _mirrored() -> Obligation:
    chain = Chain("mirrored entries", _setting(), M[i, j] * alpha[i] - M[j, i] * alpha[j])
    return chain.unfold("insert the entries", Integer(0), "(i, j)", "(j, i)").obligation()


def _zero_column(diagonal: Expr) -> Obligation:
    """βk_ik_jM_jj = −(1 − βk_j²)M_ij: within the support, M_ij = 0 makes M_jj vanish too."""
    start = beta * k[i] * k[j] * diagonal + (1 - beta * k[j] ** 2) * M[i, j]
    chain = Chain("a column without an entry off the diagonal", _setting(), start)
    return chain.unfold("insert the entries", Integer(0), "(i, j)", "(i, i)", "(j, j)").obligation()


def _root(condition: str) -> Obligation:
    """(t − p)(t − q) = m² with m ≠ 0: s² is the discriminant, and not both roots are 0."""
    text = f"""(set-logic QF_NRA)
(declare-const p Real)(declare-const q Real)(declare-const m Real)(declare-const s Real)
(declare-const t1 Real)(declare-const t2 Real)
(assert {condition})
(assert (= (* s s) (+ (* (- p q) (- p q)) (* 4.0 m m))))
(assert (= (* 2.0 t1) (+ p q s)))
(assert (= (* 2.0 t2) (- (+ p q) s)))
(assert (not (and (= (* (- t1 p) (- t1 q)) (* m m)) (= (* (- t2 p) (- t2 q)) (* m m))
                  (or (not (= t1 0.0)) (not (= t2 0.0))))))
(check-sat)
"""
    label = "the two roots solve the quadratic, and one is not 0"
    return Obligation("smt", label, "S", {"smtlib": text, "expect": "unsat", "logic": "QF_NRA"})


def _found(matrix: list[list[str]], bounded: bool = False, change: int = 0) -> Obligation:
    """The program's step for a matrix, multiplied out by the checker; ``change`` is added to R at (0, 0)."""
    step = represent(_numbers(matrix), bounded)
    assert isinstance(step, Step), matrix
    (corner, *row), *rows = step.erase
    erase = ((Surd(corner.p + change, corner.q), *row), *rows)
    label = "the step that the program finds, multiplied out"
    changed = Step(step.alpha, erase, step.radicand)
    return _step_evidence.product(label, _numbers(matrix), (changed,), bounded)


def _refused(
    matrix: list[list[str]], bounded: bool = True, other: list[list[str]] | None = None
) -> Obligation:
    """The program's reason why a matrix is no step, looked up by the checker in that matrix or another."""
    found = represent(_numbers(matrix), bounded)
    assert isinstance(found, Impossible), matrix
    label = f"the program's reason why {matrix} is no step"
    return _step_evidence.impossible(label, _numbers(other or matrix), found, bounded)


def _of_a_gate(matrix: list[list[str]]) -> Callable[[], tuple[Obligation, ...]]:
    size = range(len(matrix))
    gate = [["1/2" if i == j else "0" for j in size] for i in size]
    return lambda: (_refused(matrix, other=gate),)


def _room(asked: str) -> Obligation:
    """(t − a)(t − b) = m² with a, b ≤ t ≤ c: then a, b ≤ c and (c − a)(c − b) ≥ m²."""
    text = f"""(set-logic QF_NRA)
(declare-const a Real)(declare-const b Real)(declare-const c Real)(declare-const m Real)(declare-const t Real)
(assert (= (* (- t a) (- t b)) (* m m)))
(assert {asked})
(assert (<= t c))
(assert (not (and (<= a c) (<= b c) (>= (* (- c a) (- c b)) (* m m)))))
(check-sat)
"""
    label = "what two channels ask of the largest decay"
    return Obligation("smt", label, "S", {"smtlib": text, "expect": "unsat", "logic": "QF_NRA"})


def _strength() -> Obligation:
    """β = R_ii + R_jj = 2 − (a + b)/α_j, as (I − R)_jjα_j = M_jj = a and (I − R)_iirα_j = M_ii = rb."""
    own, other = symbols("a b")
    setting = Setting(nonzero=(alpha[j],), instances=({j: 1}, {j: 2}))
    chain = Chain("strength of a step of two channels", setting, 1 - own / alpha[j] + 1 - other / alpha[j])
    return chain.rearrange("one quotient", 2 - (own + other) / alpha[j]).obligation()


def _none(matrix: list[list[str]], expect: str = "unsat") -> Obligation:
    """No real step is this matrix: the equations for the solvers, R = βkkᵀ entry by entry."""
    size = range(len(matrix))
    lines = ["(set-logic QF_NRA)", "(declare-const beta Real)"]
    for c in size:
        lines.append(f"(declare-const k{c} Real)(declare-const a{c} Real)")
    for row in size:
        for c in size:
            value = Fraction(matrix[row][c])
            text = f"(/ {abs(value.numerator)}.0 {value.denominator}.0)"
            text = f"(- {text})" if value < 0 else text
            kept = "1.0" if row == c else "0.0"
            lines.append(f"(assert (= (* (- {kept} (* beta k{row} k{c})) a{c}) {text}))")
    data = {"smtlib": "\n".join([*lines, "(check-sat)\n"]), "expect": expect, "logic": "QF_NRA"}
    return Obligation("smt", f"no real step is {matrix}", "S", data)


def _triple(sign: int) -> Obligation:
    """1 as a combination of four entries of the step minus those of (0 1 1; 1 0 1; 1 1 1)."""
    k0, k1, k2, a1, a2 = symbols("k_0 k_1 k_2 alpha_1 alpha_2")
    mixed, corner = beta * k0 * k2, beta * k2**2
    terms = (
        (mixed - 1, -mixed * a2 - 1),
        (-mixed, (1 - corner) * a2 - 1),
        (mixed * corner * a2, -beta * k0 * k1 * a1 - 1),
        (-sign * mixed**2 * a2, -beta * k1 * k2 * a1 - 1),
    )
    data = {
        "equations": [tree(equation) for _, equation in terms],
        "multipliers": [tree(multiplier) for multiplier, _ in terms],
        "target": tree(Integer(1)),
    }
    label = (
        "entries (0, 2), (2, 2), (0, 1), (2, 1) of the second matrix: 1 is a combination of what must vanish"
    )
    return Obligation("polynomial-certificate", label, "E", data)


def _signs_root() -> Obligation:
    """4(t − p)(t − q) − 4m² is the equation of s plus a multiple of the root's; 4m² > 0 at s = 0."""
    first, second = ("(- (* (- t1 p) (- t1 q)) (* m m))", "(- (* (- t2 p) (- t2 q)) (* m m))")
    cases = [
        (
            term(4, 4),
            term(1, times=f"(- (/ {rest} 4.0))"),
            term(place, times=f"(- (/ (* {rest} (+ (- (* 2.0 {root}) p q) {s})) 4.0))"),
        )
        for rest, place, root, s in ((first, 2, "t1", "s"), (second, 3, "t2", "(- s)"))
    ]
    zero = (
        term(0, 0, times="4.0"),
        term(square="(- p q)"),
        term(1),
        term(4, times="(- s)"),
        term(5, times="s"),
        term(2, times="(/ s 2.0)"),
        term(3, times="(- (/ s 2.0))"),
    )
    return contradiction(_root("(not (= m 0.0))"), *cases, zero)


def _signs_room() -> Obligation:
    """(c − a)(c − b) = (t − a)(t − b) + w² + w(t − a) + w(t − b) with w = c − t."""
    first, second = ((term(place), term(3), term(4)) for place in (1, 2))
    third = (term(4), term(0), term(3, 3), term(1, 3), term(2, 3))
    return contradiction(_room("(and (<= a t) (<= b t))"), first, second, third)


def parts() -> tuple[Part, ...]:
    """What entries force, what two channels leave open, and matrices of both kinds."""
    return (
        Part(
            r"$M_{ij}\alpha_i=M_{ji}\alpha_j$ for $i\ne j$: if $M_{ij}\ne0=M_{ji}$ then $\alpha_i=0$, so"
            r" column $i$"
            r" vanishes. And $M_{ij}\ne0$ iff $\beta k_ik_j\alpha_j\ne0$, so every column with an entry off"
            r" the diagonal"
            r" shows the same support of $k$. For $i\ne j$ in it $\beta k_ik_jM_{jj}=-(1-\beta k_j^2)M_{ij}$,"
            r" so every column of that support without an entry off the diagonal is zero. A matrix that"
            r" breaks one of these rules is no step.",
            (_mirrored(), _zero_column(M[j, j])),
        ),
        Part(
            r"If three channels mix, $i,j,l$ different, $M_{il}\ne0$ and $\alpha_j\ne0$:"
            r" $\alpha_j=M_{jj}-M_{ij}M_{jl}/"
            r"M_{il}$ is forced, $R_{ij}=-M_{ij}/\alpha_j$ and $R_{jj}=1-M_{jj}/\alpha_j$ with it, and"
            r" $R=R_{\cdot j}R_{\cdot j}^\top/R_{jj}$: comparing all entries decides.",
            (_forced(1),),
        ),
        Part(
            r"If only two mix and $M_{ij}\ne0\ne M_{ji}$, $\alpha_j$ is a root of"
            r" $(t-M_{ii}M_{ij}/M_{ji})(t-M_{jj})="
            r"M_{ij}^2$; its roots are real and one is not 0, so two channels always have a step (over the"
            r" reals).",
            (_two_channels(M[i, j] ** 2), _root("(not (= m 0.0))"), _signs_root()),
        ),
        Part(
            r"Steps found and multiplied out: three channels mixing, the same with a dead channel, a"
            r" gate, and two channels whose decays are irrational.",
            (
                _found(THREE_CHANNELS),
                _found(DEAD_CHANNEL),
                _found([["1/2", "0"], ["0", "-3"]]),
                _found([["1", "2"], ["-1", "3"]]),
            ),
        ),
        Part(
            r"No steps: the shear (mirrored entries), and $\begin{pmatrix}0&1&1\\1&0&1\\1&1&1\end{pmatrix}$,"
            r" whose third"
            r" decay would be forced to $1-1=0$ with a column that is not 0. The solvers find a step where"
            r" only"
            r" two channels mix.",
            (
                _none(SLANTED),
                _refused(SLANTED, bounded=False),
                _triple(1),
                _refused([["0", "1", "1"], ["1", "0", "1"], ["1", "1", "1"]], bounded=False),
                _none(TWO_CHANNELS, "sat"),
            ),
        ),
        Part(
            r"With $\alpha\in[0,1]^K$, $\|k\|=1$, $\beta\in[0,2]$: $\|M e_j\|\le\alpha_j$, which is"
            r" $\beta\le2$ once $R_{jj}>0$; a single nonzero column of the support needs length at most 1"
            r" ($\alpha_j=1$ will do); forced decays need $\alpha_j\in[0,1]$ and $R_{jj}\alpha_j\ge0$; two"
            r" channels with $\alpha_i=r\alpha_j$ need, with $a=M_{jj}$, $b=M_{ii}/r$, $c=\min(1,1/r)$, that"
            r" $a,b\le c$, $(c-a)(c-b)\ge M_{ij}^2$ and $a+b\ge0$, since $\beta=2-(a+b)/\alpha_j$.",
            (contraction.one_step(), _room("(and (<= a t) (<= b t))"), _signs_room(), _strength()),
        ),
        Part(
            r"Within these bounds: steps found, one of them with irrational decays, and a matrix refused by"
            r" each of the conditions.",
            (
                _found(HALVED, bounded=True),
                _found([["-1/2", "0"], ["0", "1/3"]], bounded=True),
                _found([["1/2", "1/5"], ["1/4", "1/3"]], bounded=True),
                *(_refused(matrix) for matrix in OUTSIDE),
            ),
        ),
    )


CLAIM = Claim(
    id="kda.representable",
    title="Which rational matrices are one KDA step: decided, with the step or a reason",
    statement=(
        r"If a rational matrix $M$ is $(I-\beta kk^\top)\mathrm{Diag}(\alpha)$ for some real"
        r" $\alpha,\beta,k$ and not diagonal, then its columns with an entry off the diagonal show one"
        r" support of $k$, every column of that support without an entry off the diagonal is zero, and, where"
        r" at least three channels mix and two of their columns are not 0, the decay"
        r" $\alpha_j=M_{jj}-M_{ij}M_{jl}/M_{il}$ of such a column is forced, is not 0 and reproduces every"
        r" entry. A program decides, with $\alpha\in[0,1]^K$ and $\beta\in[0,2]$ demanded or not: it returns"
        r" $(\alpha,\beta,k)$ with every entry compared, over $\mathbb{Q}(\sqrt D)$ where two channels ask"
        r" for it, or the entries that contradict each other."
    ),
    source="new",
    status=Status.NEW,
    scope="every size; any real α, β, k, and those with α in [0, 1], β in [0, 2]; k scaled to length 1",
    variables=(
        Variable("M", r"\mathbb{Q}^{K\times K}"),
        Variable("i, j, l", "different channels in the support of k"),
        Variable("R", r"$\beta kk^\top$, symmetric of rank at most 1"),
        Variable("t", "a candidate for α_j"),
    ),
    assumptions=(
        Assumption("entry (a, b) of (I − βkkᵀ)Diag(α) is (δ_ab − βk_ak_b)α_b"),
        Assumption(
            "a zero column may take decay 0; a column without partners off the diagonal is its own decay"
        ),
    ),
    asked="SE",
    parts=parts,
    mutants=(
        Mutant("sign", "the forced decay with a plus", lambda: (_forced(-1),)),
        Mutant("diagonal", "M_ii in place of M_jj in the zero column", lambda: (_zero_column(M[i, i]),)),
        Mutant("quadratic", "M_ij in place of its square", lambda: (_two_channels(M[i, j]),)),
        Mutant("m = 0", "a nonzero root claimed without an entry off the diagonal", lambda: (_root("true"),)),
        Mutant("other strength", "the step found with β + 1", lambda: (_found(THREE_CHANNELS, change=1),)),
        Mutant(
            "reason misplaced",
            "the shear's reason claimed of two channels that do have a step",
            lambda: (_refused(SLANTED, bounded=False, other=TWO_CHANNELS),),
        ),
        *(
            Mutant(
                f"bound {place}", f"the reason why {matrix} is no step claimed of a gate", _of_a_gate(matrix)
            )
            for place, matrix in enumerate(OUTSIDE, 1)
        ),
        Mutant("room of any sign", "the decays' room without a, b ≤ t", lambda: (_room("true"),)),
        Mutant("certificate", "the certificate with one sign flipped", lambda: (_triple(-1),)),
        Mutant("shear", "the shear claimed to be a step", lambda: (_none(SLANTED, "sat"),)),
    ),
    remark="attnproof refute representable asks this of any matrix, and of products of several steps.",
)

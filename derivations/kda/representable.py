"""Which rational matrices are one KDA step: decided, with the step or a reason.

With R = βkkᵀ the off-diagonal entries are M_ij = −R_ijα_j and the diagonal ones (1 − R_jj)α_j. Where three
channels mix, one α_j is forced by four entries, and with it everything else; where two mix, α_j is a root of
a quadratic that always has a nonzero real root; a matrix without entries off the diagonal is a gate.
"""

from fractions import Fraction

from sympy import Expr, IndexedBase, Integer, symbols

from derivations.kda._represent import Step, represent
from verify.derive import Chain, Definition, Setting
from verify.derive.tree import tree
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

beta = symbols(r"\beta")
i, j, l = symbols("i j l")  # noqa: E741
k, alpha = IndexedBase("k"), IndexedBase(r"\alpha")
M = IndexedBase("M")

THREE_CHANNELS = [["5/12", "-1/3", "-2/3"], ["-1/6", "1/3", "-4/3"], ["-1/6", "-2/3", "2/3"]]
DEAD_CHANNEL = [["5/12", "-1/3", "0"], ["-1/6", "1/3", "0"], ["-1/6", "-2/3", "0"]]
TWO_CHANNELS = [["1", "2"], ["1", "1"]]
SLANTED = [["1", "2"], ["0", "1"]]


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


def _found(matrix: list[list[str]], change: Fraction = Fraction(0)) -> Obligation:
    """The program's step for a matrix, multiplied out by the checker."""
    step = represent(_numbers(matrix))
    assert isinstance(step, Step)
    data = {
        "direction": [str(x) for x in step.direction],
        "norm_squared": str(step.norm_squared),
        "beta": str(step.beta + change),
        "alpha": [str(x) for x in step.alpha],
        "matrix": matrix,
        "unit": True,
    }
    return Obligation("kda-step", "the step that the program finds, multiplied out", "E", data)


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
            (_two_channels(M[i, j] ** 2), _root("(not (= m 0.0))")),
        ),
        Part(
            r"Steps found and multiplied out: three channels mixing, the same with a dead channel, and a"
            r" gate.",
            (
                _found(THREE_CHANNELS),
                _found(DEAD_CHANNEL),
                _found([["1/2", "0"], ["0", "-3"]]),
            ),
        ),
        Part(
            r"No steps: the shear (mirrored entries), and $\begin{pmatrix}0&1&1\\1&0&1\\1&1&1\end{pmatrix}$,"
            r" whose third"
            r" decay would be forced to $1-1=0$ with a column that is not 0. The solvers find a step where"
            r" only"
            r" two channels mix.",
            (_none(SLANTED), _triple(1), _none(TWO_CHANNELS, "sat")),
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
        r" entry. A program decides: it returns $(\alpha,\beta,k)$ with every entry compared, or the"
        r" quadratic whose real root is $\alpha_j$, or which of these conditions fails."
    ),
    source="new",
    status=Status.NEW,
    scope="every size; any real α, β, k (no bounds), k scaled to length 1",
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
        Mutant("other strength", "the step found with β + 1", lambda: (_found(THREE_CHANNELS, Fraction(1)),)),
        Mutant("certificate", "the certificate with one sign flipped", lambda: (_triple(-1),)),
        Mutant("shear", "the shear claimed to be a step", lambda: (_none(SLANTED, "sat"),)),
    ),
    remark="Bounds (β in [0, 2], decays in [0, 1]) can be read off the answer; with them fewer matrices are"
    " steps.",
)

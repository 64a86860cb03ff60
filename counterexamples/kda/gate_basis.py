"""A KDA step is not bound to the coordinate basis."""

from sympy import Rational, symbols

from counterexamples._certificate import combination
from counterexamples._smt import query
from verify.model.claim import Assumption, Claim, Counterexample, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

beta, t, a1, a3, k1, k2, k3 = symbols("beta t alpha_1 alpha_3 k_1 k_2 k_3")

# Entries of (I − βkkᵀ)Diag(α) − t·11ᵀ that must vanish, by their place; t = 1/K for the projector.
AT_11 = (1 - beta * k1**2) * a1 - t
AT_21 = -beta * k2 * k1 * a1 - t
AT_13 = -beta * k1 * k3 * a3 - t
AT_23 = -beta * k2 * k3 * a3 - t

FOUR_ENTRIES = """
(declare-const alpha_1 Real)(declare-const alpha_3 Real)(declare-const beta Real)
(declare-const k_1 Real)(declare-const k_2 Real)(declare-const k_3 Real)(declare-const t Real)
(assert (not (= t 0.0)))
(assert (= (* (- 1.0 (* beta k_1 k_1)) alpha_1) t))
(assert (= (- (* beta k_2 k_1 alpha_1)) t))
(assert (= (- (* beta k_1 k_3 alpha_3)) t))
"""
LAST_ENTRY = "(assert (= (- (* beta k_2 k_3 alpha_3)) t))\n"

HALVES = [["1/2", "1/2"], ["1/2", "1/2"]]
ACROSS = [["2/3", "-1/3", "-1/3"], ["-1/3", "2/3", "-1/3"], ["-1/3", "-1/3", "2/3"]]


def _gate_alone(multiplier: int) -> Obligation:
    label = "entry (1, 2) of Diag(α) minus the projector is 0 − 1/2 for every α, so it never vanishes"
    return combination(label, 1, ((multiplier, Rational(-1, 2)),))


def _step(direction: list[str], beta: str, matrix: list[list[str]]) -> Obligation:
    data = {
        "direction": direction,
        "norm_squared": str(len(direction)),
        "beta": beta,
        "alpha": ["1"] * len(direction),
        "matrix": matrix,
        "unit": True,
    }
    label = f"k = ({', '.join(direction)})/√{len(direction)}, β = {beta}, α = 1 multiplied out"
    return Obligation("kda-step", label, "E", data)


def _line(sign: int) -> Obligation:
    """t² from the entries: (1,3), (2,3) give t·(k₁ − k₂); with (1,1), (2,1) t·α₁; with (2,1) again t²."""
    label = "t² is a combination of four entries that must vanish, so t = 0 (Nullstellensatz certificate)"
    lead = -beta * k1 * k2
    slope = lead * beta * k1 * a1
    terms = ((lead * t, AT_11), (-t - lead * t, AT_21), (slope * k2, AT_13), (sign * slope * k1, AT_23))
    return combination(label, t**2, terms)


def parts() -> tuple[Part, ...]:
    """What the gate alone cannot do, what the full step can, and where that ends."""
    return (
        Part(
            r"The gate alone: no $\alpha$ gives $\mathrm{Diag}(\alpha)=P$, the projector on $(1,1)/\sqrt2$.",
            (_gate_alone(-2),),
        ),
        Part(
            r"A KDA layer cannot forget along any direction but the coordinate axes (printed, in general"
            r" wording).",
            (_step(["1", "-1"], "1", HALVES),),
            refutes=True,
        ),
        Part(
            r"One full KDA step is that projector: $k=(1,-1)/\sqrt2$, $\beta=1$, $\alpha=(1,1)$; in three"
            r" channels $k=(1,1,1)/\sqrt3$ gives the projector across $(1,1,1)$.",
            (_step(["1", "-1"], "1", HALVES), _step(["1", "1", "1"], "1", ACROSS)),
        ),
        Part(
            r"For every $K\ge3$ no real $\alpha,\beta,k$ make one step the projector $\frac1K11^\top$ on"
            r" the line through $(1,\dots,1)$: the entries $(1,1),(2,1),(1,3),(2,3)$ cannot share one"
            r" value $t\ne0$.",
            (_line(-1), query("four entries share no t ≠ 0", "QF_NRA", FOUR_ENTRIES + LAST_ENTRY)),
        ),
        Part(
            r"Without the entry $(2,3)$ the other three can share a $t\ne0$.",
            (query("three entries share some t ≠ 0", "QF_NRA", FOUR_ENTRIES, "sat"),),
        ),
    )


CLAIM = Claim(
    id="kda.gate-basis",
    title="A KDA step is not bound to the coordinate basis",
    statement=r"$\mathrm{Diag}(\alpha)$ is never the projector $P$ on $(1,1)/\sqrt2$, but $(I-\beta"
    r" kk^\top)\mathrm{Diag}(\alpha)=P$ for $k=(1,-1)/\sqrt2$, $\beta=1$, $\alpha=(1,1)$. For $K\ge3$ no"
    r" KDA step is the projector $\frac1K11^\top$.",
    source="article A, section 3",
    status=Status.CORRECTED,
    scope="the witnesses at K = 2 and 3; the impossibility for every K ≥ 3 and any real α, β, k",
    variables=(
        Variable(r"\alpha,k", r"\mathbb{R}^K"),
        Variable(r"\beta", r"\mathbb{R}"),
        Variable("t", r"\mathbb{R}\setminus\{0\}"),
    ),
    assumptions=(
        Assumption("one step; products of several steps are another question"),
        Assumption(
            "entry (a, b) of (I − βkkᵀ)Diag(α) is (δ_ab − βk_ak_b)α_b: Diag on the right scales columns"
        ),
    ),
    asked="KE",
    parts=parts,
    mutants=(
        Mutant("wrong multiplier", "−1/2 scaled by 2 instead of −2", lambda: (_gate_alone(2),)),
        Mutant("half an erase", "the full step with β = 1/2", lambda: (_step(["1", "-1"], "1/2", HALVES),)),
        Mutant("wrong key", "the full step along (1, 1)/√2", lambda: (_step(["1", "1"], "1", HALVES),)),
        Mutant("sign flipped", "the certificate with +k₁ on the entry (2, 3)", lambda: (_line(1),)),
        Mutant(
            "entry forgotten",
            "the entry (2, 3) left out of the query",
            lambda: (query("three entries share no t ≠ 0", "QF_NRA", FOUR_ENTRIES),),
        ),
    ),
    counterexample=Counterexample(
        fails=(
            "A per-channel gate forgets along coordinate axes only, so a layer built on it cannot "
            "keep one slanted direction and forget the one across it."
        ),
        believed=(
            r"It is true of the gate alone, since $\mathrm{Diag}(\alpha)$ is diagonal and the "
            r"projector on $(1,1)/\sqrt2$ is not."
        ),
        catch=(
            r"KDA is not the gate alone. With the erase along $k=(1,-1)/\sqrt2$, $\beta=1$ and "
            r"$\alpha=(1,1)$ the step is that projector. More generally $\alpha=1$, $\beta=1$ gives "
            r"$I-kk^\top$, the projector across any unit key."
        ),
        gap=r"0: the step is the projector with all four entries $\frac12$, exactly.",
        witness=("k = (1, -1)/√2, β = 1, α = 1 multiplied out",),
        smallest=(
            "Two channels are the fewest: in one there is no slanted direction. The search goes "
            "through whole directions, strengths and decays in halves, and finds this step and no "
            "smaller one."
        ),
        repair=(
            "With its own limit: in two channels one step projects on any line. From three channels "
            "on it projects on any hyperplane, but one step is never the projector on the line "
            r"through $(1,\dots,1)$."
        ),
        repaired_by=("kda.gate-basis", "kda.transition-spectrum"),
        search="counterexamples.kda._search:projector",
    ),
)

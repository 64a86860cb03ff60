"""One KDA step cannot shear."""

from sympy import Expr, symbols

from counterexamples._certificate import combination
from counterexamples._smt import query
from verify.model.claim import Assumption, Claim, Counterexample, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

beta, lam, alpha_i, alpha_j, k_i, k_j = symbols("beta lambda alpha_i alpha_j k_i k_j")
mixed = beta * k_i * k_j
kept = 1 - beta * k_i**2

# Entries of (I − βkkᵀ)Diag(α) − (I − λe_ie_jᵀ) that must vanish, by their place.
AT_II = kept * alpha_i - 1
AT_IJ = -mixed * alpha_j + lam
AT_JI = -mixed * alpha_i

ENTRIES = """
(declare-const alpha_i Real)(declare-const alpha_j Real)(declare-const beta Real)
(declare-const k_i Real)(declare-const k_j Real)(declare-const lambda Real)
(assert (= (* (- 1.0 (* beta k_i k_i)) alpha_i) 1.0))
(assert (= (* (- (* beta k_i k_j)) alpha_j) (- lambda)))
"""
OPPOSITE_ENTRY = "(assert (= (* (- (* beta k_j k_i)) alpha_i) 0.0))\n"


def certificate(at_ii: Expr, at_ji: Expr) -> Obligation:
    """λ as the entry (i, j) plus the given multiples of the entries (i, i) and (j, i)."""
    label = "λ is a combination of three entries that must vanish (Nullstellensatz certificate)"
    return combination(label, lam, ((1, AT_IJ), (at_ii, AT_II), (at_ji, AT_JI)))


def three_entries(body: str, label: str, expect: str = "unsat") -> Obligation:
    """The entries (i, i), (i, j), (j, i) as an SMT query."""
    return query(label, "QF_NRA", body, expect)


def _rank_one(entry: str) -> Obligation:
    return Obligation(
        "diagonal-plus-rank-one",
        "the shear with λ = 3/4 in three channels as Diag(1, 1, 1) + (−3/4, 0, 0)(0, 1, 0)ᵀ",
        "E",
        {
            "diagonal": ["1", "1", "1"],
            "left": [entry, "0", "0"],
            "right": ["0", "1", "0"],
            "matrix": [["1", "-3/4", "0"], ["0", "1", "0"], ["0", "0", "1"]],
        },
    )


def parts() -> tuple[Part, ...]:
    """Impossible for KDA, possible with a free rank-one part, and not for trivial reasons."""
    nonzero = "(assert (not (= lambda 0.0)))\n"
    return (
        Part(
            r"For every $K\ge2$ and $i\ne j$, no real $\alpha,\beta,k$ give"
            r" $(I-\beta kk^\top)\mathrm{Diag}(\alpha)=I-\lambda e_ie_j^\top$ with $\lambda\ne0$: the entries"
            r" $(i,i),(i,j),(j,i)$ alone force $\lambda=0$, and they are the same for every $K$.",
            (
                certificate(-alpha_j * mixed, -alpha_j * kept),
                three_entries(ENTRIES + OPPOSITE_ENTRY + nonzero, "no real solution with λ ≠ 0"),
            ),
        ),
        Part(
            r"The conditions are not contradictory in themselves: $\lambda=0$ has a solution, and without the"
            r" entry $(j,i)$ so has $\lambda=1$.",
            (
                three_entries(ENTRIES + OPPOSITE_ENTRY, "solvable when λ is free (then it is 0)", "sat"),
                three_entries(
                    ENTRIES + "(assert (= lambda 1.0))\n", "solvable without the entry (j, i)", "sat"
                ),
            ),
        ),
        Part(
            r"A diagonal-plus-rank-one step $\mathrm{Diag}(1)+ab^\top$ gives the shear at once:"
            r" $a=-\lambda e_i$, $b=e_j$ (written out for $K=3$, $\lambda=3/4$).",
            (_rank_one("-3/4"),),
        ),
    )


def _entry_forgotten() -> tuple[Obligation, ...]:
    return (three_entries(ENTRIES + "(assert (not (= lambda 0.0)))\n", "without the entry (j, i)"),)


CLAIM = Claim(
    id="kda.no-shear",
    title="One KDA step cannot shear",
    statement=r"For $K\ge2$, $i\ne j$ and $\lambda\ne0$ no real $\alpha\in\mathbb R^K$, $\beta\in\mathbb R$,"
    r" $k\in\mathbb R^K$ satisfy $(I-\beta kk^\top)\mathrm{Diag}(\alpha)=I-\lambda e_ie_j^\top$;"
    r" $\mathrm{Diag}(1)+ab^\top$ with $a=-\lambda e_i$, $b=e_j$ does it in one step.",
    source="article A, section 3",
    status=Status.AS_PRINTED,
    scope="every K ≥ 2; any real α, β, k (no bound and no unit key needed)",
    variables=(
        Variable(r"\alpha,k", r"\mathbb{R}^K"),
        Variable(r"\beta", r"\mathbb{R}"),
        Variable(r"\lambda", r"\mathbb{R}\setminus\{0\}"),
    ),
    assumptions=(
        Assumption(
            "entry (a, b) of (I − βkkᵀ)Diag(α) is (δ_ab − βk_ak_b)α_b: Diag on the right scales columns"
        ),
    ),
    asked="KSE",
    parts=parts,
    mutants=(
        Mutant(
            "sign flipped",
            "the certificate with the wrong sign on the entry (i, i)",
            lambda: (certificate(alpha_j * mixed, -alpha_j * kept),),
        ),
        Mutant("entry forgotten", "the entry (j, i) left out of the query", _entry_forgotten),
        Mutant("wrong factor", "the rank-one step with +λ", lambda: (_rank_one("3/4"),)),
    ),
    remark="The certificate reads: λ = (i,j) − α_j·βk_ik_j·(i,i) − α_j(1 − βk_i²)·(j,i), each pair"
    " standing for the entry of the difference that must vanish. Multiply out and every other term"
    " cancels.",
    counterexample=Counterexample(
        fails=(
            "A gate per channel plus an erase along any key is expressive enough for a shear "
            r"$I-\lambda e_ie_j^\top$ (add a multiple of channel $j$ to channel $i$), the simplest "
            "non-symmetric transition."
        ),
        believed=(
            r"$(I-\beta kk^\top)\mathrm{Diag}(\alpha)$ has $2K+1$ parameters, is not symmetric in "
            "general, and its rank-one part does mix channels."
        ),
        catch=(
            r"The gate scales columns, so the entries at $(i,j)$ and $(j,i)$ are $-\beta "
            r"k_ik_j\alpha_j$ and $-\beta k_ik_j\alpha_i$: they vanish together as soon as no "
            r"$\alpha$ does. The shear wants one of them zero and the other not, and its unit "
            r"diagonal keeps $\alpha_i$ away from zero."
        ),
        gap=(
            r"$\lambda$ is a combination of entries that must vanish, so $\lambda=0$, exactly: no "
            "shear, however small."
        ),
        witness=(
            "λ is a combination of three entries that must vanish (Nullstellensatz certificate)",
            "no real solution with λ ≠ 0",
        ),
        smallest=(
            "Three entries are the fewest of these: without the entry (j, i) both solvers find a "
            "solution. Two channels are the fewest in which there is a shear. The certificate was "
            "found by hand."
        ),
        repair=(
            "Let the two vectors of the rank-one part differ (diagonal plus rank one): one step is enough."
        ),
        repaired_by=("kda.no-shear", "gdn2.norm"),
    ),
)

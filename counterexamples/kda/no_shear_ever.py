"""No finite product of KDA steps is a shear."""

from sympy import Expr, Integer, symbols

from counterexamples._smt import query
from derivations.kda import _contraction as contraction
from verify.derive import Chain, Definition, Setting
from verify.derive.contradiction import contradiction, term
from verify.model.claim import Assumption, Claim, Counterexample, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part


def _stretched(condition: str, label: str, expect: str = "unsat") -> Obligation:
    """The image of e_j has entries −λ and 1 and nothing else, and is no longer than e_j."""
    body = f"""
(declare-const lambda Real)(declare-const at_i Real)(declare-const at_j Real)
(declare-const before Real)(declare-const after Real)
(assert (= before 1.0))
(assert (= at_i (- lambda)))
(assert (= at_j 1.0))
(assert (= after (+ (* at_i at_i) (* at_j at_j))))
(assert (<= after before))
(assert {condition})"""
    return query(label, "QF_NRA", body, expect)


def _image(length: Expr) -> Obligation:
    """The image of e_j is e_j − λe_i: squared length (−λ)² + 1²."""
    lam, at_i, at_j = symbols("lambda y_i y_j")
    entries = Definition("entry i", at_i, -lam), Definition("entry j", at_j, Integer(1))
    chain = Chain("squared length of the image of e_j under the shear", Setting(entries), at_i**2 + at_j**2)
    return chain.unfold("all other entries are 0", length, "entry i", "entry j").obligation()


def _signs_stretched() -> Obligation:
    """before − after + λ² is 0 by the equations."""
    case = (
        term(4),
        term(5, 5),
        term(0, times="(- 1.0)"),
        term(3),
        term(1, times="(- at_i lambda)"),
        term(2, times="(+ at_j 1.0)"),
    )
    return contradiction(_stretched("(not (= lambda 0.0))", "no λ ≠ 0 leaves the length of e_j"), case)


def parts() -> tuple[Part, ...]:
    """Each step contracts, so does every product; the shear does not."""
    return (
        Part(
            r"One step with $\|k\|=1$, $\beta\in[0,2]$, $\alpha\in[0,1]^K$ lengthens no vector.",
            (contraction.one_step(Integer(1)),),
        ),
        Part(
            r"Nor do any number of steps: $\|w_t\|^2=\|w_j\|^2-\sum_{j<i\le t}R_i$ with $R_i\ge0$ what step"
            r" $i$"
            r" takes away (induction on the number of steps).",
            (contraction.telescope(), contraction.never_longer()),
        ),
        Part(
            r"The shear $I-\lambda e_ie_j^\top$, $i\ne j$, maps $e_j$ to $e_j-\lambda e_i$, of squared length"
            r" $1+\lambda^2$; it lengthens $e_j$ unless $\lambda=0$.",
            (
                _image(1 + symbols("lambda") ** 2),
                _stretched("(not (= lambda 0.0))", "no λ ≠ 0 leaves the length of e_j"),
                _signs_stretched(),
                _stretched("(= lambda 0.0)", "λ = 0 does", "sat"),
            ),
        ),
    )


CLAIM = Claim(
    id="kda.no-shear-ever",
    title="No finite product of KDA steps is a shear",
    statement=(
        r"For $K\ge2$, $i\ne j$, $\lambda\ne0$ and every $n$ there are no unit keys $k_t$, strengths"
        r" $\beta_t\in[0,2]$ and decays $\alpha_t\in[0,1]^K$ with $\prod_{t\le"
        r" n}(I-\beta_tk_tk_t^\top)\mathrm{Diag}"
        r"(\alpha_t)=I-\lambda e_ie_j^\top$; neither is any limit of such products a shear."
    ),
    source="new",
    status=Status.NEW,
    scope="every K ≥ 2 and every number of steps; limits too, since the bound on lengths is closed",
    variables=(
        Variable("k_t", r"\mathbb{R}^K, \|k_t\|=1"),
        Variable(r"\beta_t", "[0,2]"),
        Variable(r"\alpha_t", "[0,1]^K"),
        Variable(r"\lambda", r"\mathbb{R}\setminus\{0\}"),
    ),
    assumptions=(
        Assumption("unit keys, β in [0, 2], decays in [0, 1]: outside them steps may stretch"),
        Assumption(
            "limits: lengths are continuous, so if no product lengthens a vector x, no limit M of products"
            " does: ‖Mx‖ = lim ‖M_n x‖ ≤ ‖x‖"
        ),
    ),
    asked="KS",
    parts=parts,
    mutants=(
        Mutant(
            "β up to 3", "one step with 3 − β as the room", lambda: (contraction.one_step(Integer(1), 3),)
        ),
        Mutant("losses added", "the steps' losses with the wrong sign", lambda: (contraction.telescope(1),)),
        Mutant("squares forgotten", "a squared length of 1 + λ", lambda: (_image(1 + symbols("lambda")),)),
        Mutant(
            "no condition on λ",
            "the contradiction claimed for λ = 0 too",
            lambda: (_stretched("true", "no λ at all leaves the length of e_j"),),
        ),
    ),
    remark="The one-step impossibility (kda.no-shear) is algebraic and needs no bounds; this one is metric"
    " and"
    " needs them, but holds for every number of steps.",
    counterexample=Counterexample(
        fails=(
            r"What one KDA step cannot do, several in a row can, so a shear $I-\lambda e_ie_j^\top$ "
            "is out of reach for one step only."
        ),
        believed=(
            "Products of Householder reflections reach every orthogonal matrix, and two steps have "
            "twice the parameters."
        ),
        catch=(
            r"With unit keys, $\beta\in[0,2]$ and decays in $[0,1]$ every step is a contraction, "
            "products of contractions are contractions, and the shear stretches $e_j$ to squared "
            r"length $1+\lambda^2$."
        ),
        gap=r"$\lambda^2$, exactly, in the squared length of $e_j$: no product comes closer.",
        witness=(
            "squared length before all steps",
            "squared length of the image of e_j under the shear",
            "no λ ≠ 0 leaves the length of e_j",
        ),
        smallest=(
            "Proved at once for every number of steps and every λ ≠ 0; two channels are the fewest "
            "in which there is a shear."
        ),
        repair=(
            "Allow a transition of norm above 1 (a diagonal plus a rank-one part with two different "
            "vectors), and give up the bound that keeps the state from growing."
        ),
        repaired_by=("kda.no-shear", "gdn2.norm"),
    ),
)

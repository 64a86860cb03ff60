"""Separating the erase from the write direction loses the contraction.

With c = k·j for unit k, j and σ the larger root of σ² = ησ + 1 − ηc, σ = (η + √(η² − 4ηc + 4))/2, the
defect of the bound σ‖x‖ is a square: (σ² − 1)(σ²‖x‖² − ‖(I − ηkjᵀ)x‖²) = ‖(σ² − 1)x + η(j·x)k − ησ(j·x)j‖².
It vanishes at x = σj − k, so σ is the norm.
"""

from sympy import Expr, IndexedBase, Integer, Sum, symbols

from verify.derive import Chain, Definition, Hypothesis, Setting
from verify.derive.contradiction import contradiction, term
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.evidence import Obligation, Part

e, a, n = symbols("e a n")
eta, sigma, c, read, s = symbols(r"\eta \sigma c r s")
k, j, x, y = (IndexedBase(name) for name in ("k", "j", "x", "y"))
SIZES = ({n: 2, a: 1}, {n: 3, a: 2})


def _dot(left: Expr, right: Expr) -> Sum:
    return Sum(left * right, (e, 1, n))


UNIT_K = Hypothesis("unit k", _dot(k[e], k[e]), 1)
UNIT_J = Hypothesis("unit j", _dot(j[e], j[e]), 1)
OVERLAP = Hypothesis("overlap", _dot(k[e], j[e]), c)
READ = Hypothesis("read", _dot(j[e], x[e]), read)


def _root(last: Expr) -> Hypothesis:
    return Hypothesis("root", sigma**2, eta * sigma + 1 - last)


def _defect(last: Expr) -> Obligation:
    """The defect times σ² − 1, as a square."""
    setting = Setting((), (UNIT_K, UNIT_J, OVERLAP, READ, _root(last)), instances=({n: 2}, {n: 3}))
    above = sigma**2 - 1
    moved = above * x[e] + eta * read * k[e] - eta * sigma * read * j[e]
    chain = Chain("the square", setting, _dot(moved, moved))
    xx, kx = _dot(x[e], x[e]), _dot(k[e], x[e])
    kk, jj, kj, jx = UNIT_K.lhs, UNIT_J.lhs, OVERLAP.lhs, READ.lhs
    spread = above**2 * xx + eta**2 * read**2 * kk + eta**2 * sigma**2 * read**2 * jj
    spread += 2 * above * eta * read * kx - 2 * above * eta * sigma * read * jx
    spread -= 2 * eta**2 * sigma * read**2 * kj
    chain = chain.rearrange("multiply out", spread)
    plain = above**2 * xx + 2 * above * eta * read * kx
    plain += read**2 * (eta**2 + eta**2 * sigma**2 - 2 * above * eta * sigma - 2 * eta**2 * sigma * c)
    uses = {
        "unit k": eta**2 * read**2,
        "unit j": eta**2 * sigma**2 * read**2,
        "overlap": -2 * eta**2 * sigma * read**2,
        "read": -2 * above * eta * sigma * read,
    }
    chain = chain.use("unit vectors, overlap, read", plain, **uses)
    image = xx - 2 * eta * read * kx + eta**2 * read**2
    return chain.use(
        "the equation of σ", above * (sigma**2 * xx - image), root=-2 * eta * sigma * read**2
    ).obligation()


def _image() -> Obligation:
    moved = Definition("image", y[e], x[e] - eta * k[e] * read, (e,))
    setting = Setting((moved,), (UNIT_K,), instances=({n: 2}, {n: 3}))
    chain = Chain("squared length of the image", setting, _dot(y[e], y[e]))
    xx, kx, kk = _dot(x[e], x[e]), _dot(k[e], x[e]), UNIT_K.lhs
    spread = xx - 2 * eta * read * kx + eta**2 * read**2 * kk
    chain = chain.unfold("multiply out", spread, "image")
    after = xx - 2 * eta * read * kx + eta**2 * read**2
    return chain.use("unit key", after, **{"unit k": eta**2 * read**2}).obligation()


def _attained(image: Expr) -> Obligation:
    """(I − ηkjᵀ)(σj − k) = σ(j − σk), entry a."""
    setting = Setting((), (UNIT_J, OVERLAP, _root(eta * c)), instances=SIZES)
    inside = sigma * UNIT_J.lhs - _dot(k[e], j[e])
    chain = Chain("the image of σj − k", setting, sigma * j[a] - k[a] - eta * k[a] * inside)
    known = sigma * j[a] - k[a] - eta * k[a] * (sigma - c)
    chain = chain.use("unit j, overlap", known, **{"unit j": -eta * k[a] * sigma, "overlap": eta * k[a]})
    return chain.use("the equation of σ", image, root=k[a]).obligation()


def _same_length() -> Obligation:
    """‖j − σk‖ = ‖σj − k‖: the squared lengths differ by (1 − σ²)(‖j‖² − ‖k‖²)."""
    setting = Setting((), (UNIT_K, UNIT_J), instances=({n: 2}, {n: 3}))
    one, other = j[e] - sigma * k[e], sigma * j[e] - k[e]
    chain = Chain("the two squared lengths", setting, _dot(one, one) - _dot(other, other))
    chain = chain.rearrange("the products cancel", (1 - sigma**2) * (UNIT_J.lhs - UNIT_K.lhs))
    weight = 1 - sigma**2
    return chain.use(
        "both are unit vectors", Integer(0), **{"unit j": weight, "unit k": -weight}
    ).obligation()


def _query(label: str, *conditions: str, expect: str = "unsat") -> Obligation:
    asserts = "".join(f"(assert {condition})\n" for condition in conditions)
    text = f"""(set-logic QF_NRA)
(declare-const eta Real)(declare-const sigma Real)(declare-const c Real)
(assert (>= (* 2.0 sigma) eta))
(assert (= (* sigma sigma) (+ (* eta sigma) (- 1.0 (* eta c)))))
{asserts}(check-sat)
"""
    return Obligation("smt", label, "S", {"smtlib": text, "expect": expect, "logic": "QF_NRA"})


def _above_one(overlap: str) -> Obligation:
    label = "the larger root exceeds 1"
    return _query(label, "(> eta 0.0)", f"(< c {overlap})", "(>= c (- 1.0))", "(<= sigma 1.0)")


def _equal_vectors() -> Obligation:
    return _query(
        "c = 1: the larger root is the larger of 1 and η − 1",
        "(= c 1.0)",
        "(not (= sigma (ite (> (- eta 1.0) 1.0) (- eta 1.0) 1.0)))",
    )


def _signs_above_one() -> Obligation:
    """η(1 − c) + (1 − σ)² + (1 − σ)(2σ − η) is minus the equation of σ."""
    return contradiction(_above_one("1.0"), (term(2, 3), term(5, 5), term(0, 5), term(1)))


def _signs_equal_vectors() -> Obligation:
    """At c = 1 the equation is uz = 0 with u = σ − 1 and z = σ + 1 − η = u + 2 − η."""
    z = "(+ (- sigma eta) 1.0)"
    uz = f"(* (- sigma 1.0) {z})"
    large = (
        term(3, 4, 4),
        term(0, 4, 4),
        term(1, times=f"(- (* 2.0 {z}))"),
        term(2, times=f"(* 2.0 eta {z})"),
    )
    small = (term(4, 4, 4, 4), term(0, 3, 4, 4), term(1, times=f"(- {uz})"), term(2, times=f"(* eta {uz})"))
    return contradiction(_equal_vectors(), large, small)


def parts() -> tuple[Part, ...]:
    """The defect as a square, where it vanishes, and that the norm exceeds 1."""
    return (
        Part(
            r"For every $x$ with $r=j\cdot x$: $\|(I-\eta kj^\top)x\|^2=\|x\|^2-2\eta r\,(k\cdot"
            r" x)+\eta^2r^2$, and"
            r" $\|(\sigma^2-1)x+\eta rk-\eta\sigma rj\|^2=(\sigma^2-1)(\sigma^2\|x\|^2-\|(I-\eta"
            r" kj^\top)x\|^2)$. So for"
            r" $\sigma>1$ the norm is at most $\sigma$.",
            (_image(), _defect(eta * c)),
        ),
        Part(
            r"It is attained: $(I-\eta kj^\top)(\sigma j-k)=\sigma(j-\sigma k)$ and $\|j-\sigma k\|=\|\sigma"
            r" j-k\|$,"
            r" which is not 0 for $\sigma>1$.",
            (_attained(sigma * (j[a] - sigma * k[a])), _same_length()),
        ),
        Part(
            r"For $\eta>0$ and $k\ne j$ (so $c<1$) the larger root $\sigma$ exceeds 1; for $c=1$ it is"
            r" $\max(1,\eta-1)$, the norm of the erase factor of the delta rule.",
            (
                _above_one("1.0"),
                _signs_above_one(),
                _equal_vectors(),
                _signs_equal_vectors(),
            ),
        ),
    )


CLAIM = Claim(
    id="gdn2.norm",
    title="Separating the erase from the write direction loses the contraction",
    statement=(
        r"For unit $k\ne j$ and $\eta>0$, $\|I-\eta kj^\top\|_2=\frac12\big(\eta+\sqrt{\eta^2-4\eta\,k\cdot"
        r" j+4}\big)>1$:"
        r" a transition that erases along one direction what it reads along another lengthens some vector."
    ),
    source="new",
    status=Status.NEW,
    scope="every dimension n ≥ 2, all unit vectors k ≠ j, every η > 0",
    variables=(
        Variable("k, j", r"unit vectors, $\mathbb{R}^n$; $c=k\cdot j$"),
        Variable(r"\eta", "strength of the erase, > 0"),
        Variable(r"\sigma", r"the larger root of $\sigma^2=\eta\sigma+1-\eta c$"),
        Variable("x", r"any vector, $\mathbb{R}^n$"),
    ),
    assumptions=(
        Assumption("‖k‖ = ‖j‖ = 1; the larger root is (η + √(η² − 4ηc + 4))/2, where 4 − 4ηc + η² ≥ 0"),
    ),
    asked="KC",
    parts=parts,
    mutants=(
        Mutant("other root", "the equation of σ with +ηc", lambda: (_defect(-eta * c),)),
        Mutant("image", "the image with the wrong sign", lambda: (_attained(sigma * (j[a] + sigma * k[a])),)),
        Mutant("c = 1 allowed", "above 1 claimed for c < 2", lambda: (_above_one("2.0"),)),
    ),
    remark="The larger the angle between k and j, the larger the norm: √(η² + 4)/2 + η/2 at a right angle.",
)

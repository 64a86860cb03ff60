"""A user's matrix as one KDA step or a product of some, or why it is none: the claim a request settles."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction

from derivations.kda import _products, _step_evidence
from derivations.kda._represent import Matrix, Step, Surd, represent
from derivations.kda._stretch import reduce
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.errors import SearchEnded
from verify.model.evidence import Obligation, Part

BOUNDS = "‖k‖ = 1, β in [0, 2] and α in [0, 1]"
LARGEST_WRITTEN = 4
"""Size of the largest matrix that the statement writes out."""
LARGEST_APPROACHED = 8
"""Size of the largest matrix whose steps from its singular value decomposition are multiplied out exactly."""
SHOWN_BITS = 200
"""Bits of a number that sentences write out."""


def claim(name: str, matrix: Matrix, steps: int = 1) -> Claim:
    """The claim ``request.NAME``: what the matrix is.

    Args:
        name: of the request.
        matrix: d×d.
        steps: how many KDA steps may be multiplied.

    Raises:
        SearchEnded: more than one step are allowed, the matrix lengthens no vector, and fewer than the 2d
            steps that always suffice were asked for and not found.
    """
    found = represent(matrix, bounded=True)
    if isinstance(found, Step):
        return _claim(name, matrix, "is one KDA step", (_one_step(matrix, found, True),), steps)
    if found.rule == "stretch":
        part = Part(
            f"No number of KDA steps with {BOUNDS} multiplies to M: each lengthens no vector (claim"
            f" kda.no-shear-ever), and M lengthens x = ({_row(found.at['vector'])}).",
            (_step_evidence.impossible("‖Mx‖ > ‖x‖", matrix, found, True),),
        )
        return _claim(name, matrix, "is no product of KDA steps", (part, _without_bounds(matrix)), steps)
    refused = Part(
        f"M is no KDA step with {BOUNDS}: {found.reason}.",
        (_step_evidence.impossible("entries that no step has", matrix, found, True),),
    )
    if steps == 1:
        return _claim(name, matrix, "is no KDA step", (refused, _without_bounds(matrix)), steps)
    return _several(name, matrix, steps, refused)


def _several(name: str, matrix: Matrix, steps: int, refused: Part) -> Claim:
    found, tried = _products.search(matrix, steps)
    if found is not None:
        label = f"{len(found)} steps multiplied out"
        part = Part(
            f"M is the product of {len(found)} KDA steps with {BOUNDS} ({_list(found)}).",
            (_step_evidence.product(label, matrix, found, True),),
        )
        return _claim(name, matrix, f"is a product of {len(found)} KDA steps", (refused, part), steps)
    enough = 2 * len(matrix)
    if steps < enough:
        raise SearchEnded(
            f"no product of {steps} KDA steps was found and none is ruled out; tried {tried}. The"
            f" matrix lengthens no vector, so {enough} steps suffice: ask with --steps {enough}"
        )
    squares = reduce(matrix)
    assert isinstance(squares, tuple), "a matrix that lengthens a vector was refused before"
    parts = [
        refused,
        Part(
            f"M lengthens no vector, so it is a product of at most {enough} KDA steps: reflections (β = 2)"
            " for the orthogonal factors of a singular value decomposition, a gate for the singular values.",
            (_step_evidence.contraction("I − MᵀM as squares", matrix, squares),),
        ),
    ]
    if len(matrix) <= LARGEST_APPROACHED:
        parts.append(_near(matrix))
    cited = Assumption(
        "singular value decomposition, and every orthogonal d×d matrix is a product of at most d reflections"
        " (Cartan and Dieudonné)",
        cited=True,
    )
    return _claim(name, matrix, f"is a product of at most {enough} KDA steps", parts, steps, cited)


def _near(matrix: Matrix) -> Part:
    steps = _products.approximate(matrix)
    within = _products.distance(matrix, steps)
    item = _step_evidence.product("steps from the decomposition", matrix, steps, True, within)
    sentence = f"The product of {len(steps)} exact steps is within {float(within):.0e} of M (Frobenius norm)."
    return Part(sentence, (item,))


def _one_step(matrix: Matrix, step: Step, bounded: bool) -> Part:
    where = f"with {BOUNDS}" if bounded else "for real α, β and k without bounds"
    sentence = f"M = (I − βkkᵀ)Diag(α) {where}: {_shown(step)}."
    return Part(sentence, (_step_evidence.product("the step multiplied out", matrix, (step,), bounded),))


def _without_bounds(matrix: Matrix) -> Part:
    found = represent(matrix)
    if isinstance(found, Step):
        return _one_step(matrix, found, False)
    label = "entries that no step has, whatever its bounds"
    return Part(
        f"Nor is M one step for any real α, β and k: {found.reason}.",
        (_step_evidence.impossible(label, matrix, found, False),),
    )


def _claim(
    name: str, matrix: Matrix, what: str, parts: Sequence[Part], steps: int, *more: Assumption
) -> Claim:
    size = len(matrix)
    rows = "; ".join(_row(row) for row in matrix)
    written = f"M = ({rows})" if size <= LARGEST_WRITTEN else "the matrix M of the request"
    asked = "one KDA step" if steps == 1 else f"a product of at most {steps} KDA steps"
    return Claim(
        id=f"request.{name}",
        title=f"The {size}×{size} matrix M {what}",
        statement=f"Is {written} {asked}? It {what}.",
        source="request",
        status=Status.NEW,
        scope=f"this matrix; {BOUNDS}, and any real α, β, k where a part says so",
        variables=(
            Variable("M", f"the {size}×{size} matrix of the request"),
            Variable(r"\alpha,k", rf"\mathbb{{R}}^{{{size}}}"),
            Variable(r"\beta", r"\mathbb{R}"),
        ),
        assumptions=(
            Assumption(
                "entry (a, b) of (I − βkkᵀ)Diag(α) is (δ_ab − βk_ak_b)α_b; channels are counted from 1"
            ),
            *more,
        ),
        asked="E",
        parts=lambda: tuple(parts),
        mutants=_mutants(matrix, parts),
    )


def _mutants(matrix: Matrix, parts: Sequence[Part]) -> tuple[Mutant, ...]:
    """Every piece of evidence, claimed for two other matrices of which it says something false."""
    clipped = [
        [min(max(x, Fraction(0)), Fraction(1)) if i == j else Fraction(0) for j, x in enumerate(row)]
        for i, row in enumerate(matrix)
    ]
    shifted = [[x + 3 * int(i == j == 0) for j, x in enumerate(row)] for i, row in enumerate(matrix)]
    zero = [[Fraction(0) for _ in row] for row in matrix]

    def planted(item: Obligation, other: Matrix) -> Callable[[], tuple[Obligation, ...]]:
        data = {**item.data, "matrix": _step_evidence.text(other)}
        return lambda: (Obligation(item.kind, item.label, item.strength, data),)

    made = []
    for item in (obligation for part in parts for obligation in part.obligations):
        others = {
            "kda-product": [("M with 3 added to its first entry", shifted)],
            "contraction": [("M with 3 added to its first entry", shifted)],
        }.get(
            item.kind, [("the diagonal of M clipped to [0, 1], a gate", clipped), ("the zero matrix", zero)]
        )
        made += [
            Mutant(f"{item.label}: other matrix", f"the same claimed of {which}", planted(item, other))
            for which, other in others
        ]
        if item.kind == "kda-product" and item.data["bounded"]:
            made.append(
                Mutant(
                    "too strong",
                    "the first step with 3 more strength along its first channel",
                    _stronger(item),
                )
            )
    return tuple(made)


def _stronger(item: Obligation) -> Callable[[], tuple[Obligation, ...]]:
    first, *others = item.data["factors"]
    rows = [list(row) for row in first["erase"]]
    corner = rows[0][0]
    rows[0][0] = (
        [str(Fraction(corner[0]) + 3), corner[1]] if isinstance(corner, list) else str(Fraction(corner) + 3)
    )
    data = {**item.data, "factors": [{**first, "erase": rows}, *others]}
    return lambda: (Obligation(item.kind, item.label, item.strength, data),)


def _list(steps: Sequence[Step]) -> str:
    return "; ".join(f"{place}. {_shown(step)}" for place, step in enumerate(steps, 1))


def _shown(step: Step) -> str:
    """α, β and k: k lies along any nonzero column R_·j of R = βkkᵀ, and ‖R_·j‖² = βR_jj."""
    size = range(len(step.alpha))
    alpha = f"α = ({', '.join(_number(x, step.radicand) for x in step.alpha)})"
    strength = Surd(
        sum((step.erase[i][i].p for i in size), Fraction(0)),
        sum((step.erase[i][i].q for i in size), Fraction(0)),
    )
    pivot = next((j for j in size if any(step.erase[j][j])), None)
    if pivot is None:
        return f"{alpha}, β = 0"
    head = f"{alpha}, β = {_number(strength, step.radicand)}"
    if step.radicand:
        rows = "; ".join(", ".join(_number(x, step.radicand) for x in row) for row in step.erase)
        return f"{head}, βkkᵀ = ({rows})"
    column = [row[pivot].p for row in step.erase]
    norm = sum((x * x for x in column), Fraction(0))
    scale = next(x for x in column if x)
    short = [x / scale for x in column]
    return f"{head}, k = ({_row(short)})/√({_digits(norm / scale**2)})"


def _number(value: Surd, radicand: Fraction) -> str:
    if not value.q:
        return _digits(value.p)
    root = f"√({_digits(radicand)})"
    sign, size = ("−" if value.q < 0 else "+"), abs(value.q)
    tail = root if size == 1 else f"{_digits(size)}·{root}"
    return f"{_digits(value.p)} {sign} {tail}" if value.p else f"{'−' if value.q < 0 else ''}{tail}"


def _row(row: Sequence[Fraction]) -> str:
    return ", ".join(map(_digits, row))


def _digits(value: Fraction) -> str:
    if value.numerator.bit_length() + value.denominator.bit_length() <= SHOWN_BITS:
        return str(value)
    return f"{Decimal(value.numerator) / Decimal(value.denominator):.12g}…"

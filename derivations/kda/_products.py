"""Several KDA steps whose product is a given contraction: exact factorisations, a search, and a limit.

Every contraction is a product of at most 2d steps: in a singular value decomposition UΣVᵀ each orthogonal
factor is a product of at most d reflections I − 2kkᵀ, which are steps with β = 2, and (I − 2kkᵀ)Σ is one too.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product
from math import gcd, isqrt

from derivations.kda._represent import Matrix, Step, Surd, represent

Vector = Sequence[Fraction]
STRENGTHS = tuple(Fraction(n, 4) for n in (8, 6, 5, 7, 3, 2, 1))
LARGEST = 3
"""Largest entry, in size, of the directions that the search tries."""
BUDGET = 32_000
"""Matrices, times d³, that the search decides for each number of steps."""
DEEPEST = 3
"""Most steps that the search peels."""
DIGITS = 40
"""Digits to which an approximate product is computed."""


def search(matrix: Matrix, count: int) -> tuple[list[Step] | None, str]:
    """At most ``count`` steps, first applied first, whose product is the matrix exactly; what was tried."""
    for name, found in (("columns", _orthogonal_columns(matrix)), ("rows", _orthogonal_rows(matrix))):
        if found is not None and len(found) <= count:
            return found, f"orthogonal {name}"
    decided, budget = 0, max(BUDGET // len(matrix) ** 3, 1)
    for depth in range(1, min(count, DEEPEST) + 1):
        left = [budget]
        steps = _peeled(matrix, depth, left)
        if steps is not None:
            return steps, "peeling"
        decided += budget - left[0]
    tried = f"orthogonal columns and rows of rational length (reflections), and {decided} last steps with"
    return (
        None,
        f"{tried} integer keys (entries up to {LARGEST}), β in quarters and α = 1, up to {DEEPEST} deep",
    )


def _peeled(matrix: Matrix, count: int, left: list[int]) -> list[Step] | None:
    """Take a candidate for the last step off and decide what remains."""
    left[0] -= 1
    found = represent(matrix, bounded=True)
    if isinstance(found, Step):
        return [found]
    if count == 1 or found.rule == "stretch":
        return None
    for key, strength in _candidates(len(matrix)):
        if left[0] <= 0:
            return None
        steps = _peeled(_undone(matrix, key, strength), count - 1, left)
        if steps is not None:
            return [*steps, _erase(key, strength)]
    return None


def _candidates(size: int) -> Iterator[tuple[list[Fraction], Fraction]]:
    """Primitive integer directions, one of each pair ±k, with every strength: small and sparse ones first."""
    for largest in range(1, LARGEST + 1):
        entries = [x for x in range(-largest, largest + 1) if x]
        for places in (
            chosen for weight in range(1, size + 1) for chosen in combinations(range(size), weight)
        ):
            for values in product(entries, repeat=len(places)):
                if values[0] > 0 and gcd(*values) == 1 and max(map(abs, values)) == largest:
                    at = dict(zip(places, values, strict=True))
                    for strength in STRENGTHS:
                        yield [Fraction(at.get(place, 0)) for place in range(size)], strength


def _undone(matrix: Matrix, key: Vector, strength: Fraction) -> Matrix:
    """(I − βkkᵀ)⁻¹M = M + β/(1 − β)·k(kᵀM), k scaled to length 1."""
    scale = strength / (1 - strength) / sum(x * x for x in key)
    size = range(len(matrix))
    read = [sum((key[i] * matrix[i][j] for i in size), Fraction(0)) for j in size]
    return [[matrix[i][j] + scale * key[i] * read[j] for j in size] for i in size]


def _erase(key: Vector, strength: Fraction, alpha: Vector | None = None) -> Step:
    norm = sum(x * x for x in key) or Fraction(1)
    erase = tuple(tuple(Surd(strength * x * y / norm) for y in key) for x in key)
    return Step(tuple(Surd(x) for x in alpha or [Fraction(1)] * len(key)), erase)


def _orthogonal_columns(matrix: Matrix) -> list[Step] | None:
    """M = H_r…H_1·Diag(a) with reflections, where columns are orthogonal and of rational length."""
    size = range(len(matrix))
    columns = [[row[j] for row in matrix] for j in size]
    lengths = []
    for j in size:
        if any(_dot(columns[i], columns[j]) for i in range(j)):
            return None
        square = _dot(columns[j], columns[j])
        length = Fraction(isqrt(square.numerator), isqrt(square.denominator))
        if length**2 != square or length > 1:
            return None
        lengths.append(length)
    targets = [
        [x / length for x in column] if length else None
        for column, length in zip(columns, lengths, strict=True)
    ]
    return _gated(_reflections(targets), lengths)


def _orthogonal_rows(matrix: Matrix) -> list[Step] | None:
    """M = Diag(a)·H_1…H_r, from the columns of the transpose."""
    turned = _orthogonal_columns([list(column) for column in zip(*matrix, strict=True)])
    if turned is None:
        return None
    zero, alpha = [Fraction(0)] * len(matrix), [x.p for x in turned[0].alpha]
    mirrors = [Step(_erase(zero, Fraction(0)).alpha, step.erase) for step in turned if _acts(step)]
    return [*reversed(mirrors), _erase(zero, Fraction(0), alpha)]


def _acts(step: Step) -> bool:
    return any(entry.p for row in step.erase for entry in row)


def _gated(mirrors: Sequence[Vector], alpha: Vector) -> list[Step]:
    """Diag(α) followed by reflections, the first of which shares its step."""
    first, *others = mirrors or [[Fraction(0)] * len(alpha)]
    two = Fraction(2)
    return [_erase(first, two if mirrors else Fraction(0), alpha), *(_erase(key, two) for key in others)]


def _reflections(targets: Sequence[Vector | None], negligible: Fraction = Fraction(0)) -> list[Vector]:
    """Keys of reflections, first applied first, that take e_j to ``targets[j]`` (orthonormal) where given.

    A reflection along e − target leaves alone whatever is orthogonal to both: all earlier targets. One whose
    squared key is ``negligible`` is left out.
    """
    keys: list[Vector] = []
    for j, target in enumerate(targets):
        if target is None:
            continue
        image: Vector = [Fraction(int(i == j)) for i in range(len(target))]
        for key in keys:
            scale = 2 * _dot(key, image) / _dot(key, key)
            image = [x - scale * y for x, y in zip(image, key, strict=True)]
        difference = [x - y for x, y in zip(image, target, strict=True)]
        if _dot(difference, difference) > negligible:
            keys.append(difference)
    return keys


def _dot(left: Vector, right: Vector) -> Fraction:
    return sum((x * y for x, y in zip(left, right, strict=True)), Fraction(0))


def approximate(matrix: Matrix) -> list[Step]:
    """At most 2d exact steps, first applied first, whose product is near a contraction (from its SVD)."""
    import mpmath

    size = range(len(matrix))
    with mpmath.workdps(2 * DIGITS):
        exact = [[mpmath.mpf(x.numerator) / x.denominator for x in row] for row in matrix]
        u, sigma, vt = mpmath.svd_r(mpmath.matrix(exact))

        def near(value: object) -> Fraction:
            return Fraction(int(mpmath.nint(value * mpmath.mpf(10) ** DIGITS)), 10**DIGITS)

        left = [[near(u[i, j]) for i in size] for j in size]
        right = [[near(vt[j, i]) for i in size] for j in size]
        alpha = [min(max(near(x), Fraction(0)), Fraction(1)) for x in sigma]
    negligible = Fraction(1, 10**DIGITS)
    keys, turned = _reflections(left, negligible), _reflections(right, negligible)
    return [*(_erase(key, Fraction(2)) for key in reversed(turned)), *_gated(keys, alpha)]


def distance(matrix: Matrix, steps: Sequence[Step]) -> Fraction:
    """A power of ten that bounds the Frobenius distance of the product of rational steps from the matrix."""
    size = range(len(matrix))
    found = [[Fraction(int(i == j)) for j in size] for i in size]
    for step in steps:
        factor = [[(int(i == j) - step.erase[i][j].p) * step.alpha[j].p for j in size] for i in size]
        found = [[_dot(row, [found[e][j] for e in size]) for j in size] for row in factor]
    total = sum(((found[i][j] - matrix[i][j]) ** 2 for i in size for j in size), Fraction(0))
    bound = Fraction(1, 10**DIGITS)
    while bound**2 < total:
        bound *= 10
    return bound

"""Two histories with one linear-attention state for features known up to an error: an interval test.

Data: ``features``, T×m integers in units of 2^−``bits``, each within ``feature_radius`` units of the true
one; ``keys`` T×K; ``z``, T integers in units of 2^−bits; ``pivots``, m tokens; ``inverse``, m×m integers R in
units of 2^−``inverse_bits``; ``z_radius`` in units of 2^−bits; ``first``, values V, T×V; ``w`` (V), ``query``
(K) and ``gap``. Shown: for all features in these enclosures the pivots' block A is invertible, there is
exactly one z* with Φᵀz* = 0 that agrees with z off the pivots, it lies within ``z_radius`` of z, and so the
values V and V + z*wᵀ have one state and normaliser, while the softmax outputs at the query are at least
``gap`` apart. For ‖I − RA‖ ≤ β < 1 gives ‖z* − z‖ ≤ ‖RΦᵀz‖/(1 − β), in the largest-entry norm.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from operator import mul
from typing import Any

from verify.checkers.enclosure import Interval, decimal, exp
from verify.checkers.reading import Matrix, Vector, Wrong, dot, matrix, natural, vector, word
from verify.checkers.terms import IllFormed, rational
from verify.model.evidence import Check, Obligation

NAME = "enclosed collision checker"
KINDS = frozenset({"enclosed-collision"})
MOST_BITS = 2**14

Integers = list[list[int]]


def judge(obligation: Obligation) -> Check:
    """``proved`` when a null vector certainly lies around z and the outputs are certainly apart."""
    return word(NAME, obligation, _collision)


def _collision(data: Mapping[str, Any]) -> str:
    features, inverse = _integers(data["features"]), _integers(data["inverse"])
    keys, first, w = matrix(data["keys"]), matrix(data["first"]), vector(data["w"])
    ((radius, away), z) = (
        _integers([[data["feature_radius"], data["z_radius"]]])[0],
        _integers([data["z"]])[0],
    )
    pivots = [natural(token) for token in data["pivots"]]
    bits, digits = (_bits(data[name]) for name in ("bits", "inverse_bits"))
    if not len(features) == len(keys) == len(first) == len(z) or len(first[0]) != len(w):
        raise Wrong("features, keys, values and z count different numbers of tokens or coordinates")
    if len(set(map(tuple, keys))) < len(keys):
        raise Wrong("two tokens have one key")
    if not len(pivots) == len(set(pivots)) == len(features[0]) == len(inverse) == len(inverse[0]):
        raise Wrong(f"{len(pivots)} pivots and {len(features[0])} features give no square block")
    if radius < 0 or away < 0 or not any(z[token] for token in set(range(len(z))) - set(pivots)):
        raise Wrong("a radius is negative, or z is zero off the pivots")
    # What is cheap comes first: a falsehood that shows there needs no product of matrices.
    around = [(x, away if token in pivots else 0) for token, x in enumerate(z)]
    apart = _apart(keys, around, bits, vector(data["query"])) * max(map(abs, w))
    gap = rational(data["gap"])
    if gap <= 0 or apart < gap:
        raise Wrong(f"the softmax outputs are only certainly {decimal(apart)} apart, not {gap}")
    unit = Fraction(1, 1 << (bits + digits))
    moved, off = _moved(features, radius, z, inverse) * unit, Fraction(0)
    if moved <= away:
        off = _off([features[token] for token in pivots], radius, inverse, unit)
    if moved > away * (1 - off):
        raise Wrong(f"the null vector may be more than {decimal(_unit(away, bits))} from z")
    return (
        f"z is within {decimal(_unit(away, bits))} of a null vector, ‖I − RA‖ at most {decimal(off)}; softmax"
        f" outputs at least {gap} apart (enclosed: {decimal(apart)})"
    )


def _moved(features: Integers, radius: int, z: list[int], inverse: Integers) -> int:
    """A bound on ‖RΦᵀz‖, in units of R times those of Φ times those of z."""
    residual = [sum(map(mul, column, z)) for column in zip(*features, strict=True)]
    spread = radius * sum(map(abs, z))
    bound: int = max(abs(sum(map(mul, row, residual))) + sum(map(abs, row)) * spread for row in inverse)
    return bound


def _off(block: Integers, radius: int, inverse: Integers, unit: Fraction) -> Fraction:
    """A bound on ‖I − RA‖, below 1; ``block`` holds the columns of A, ``unit`` is that of R times A."""
    off = 0
    for i, row in enumerate(inverse):
        near = (sum(map(mul, row, column)) - unit.denominator * (i == j) for j, column in enumerate(block))
        off = max(off, sum(map(abs, near)) + len(row) * sum(map(abs, row)) * radius)
        if off * unit >= 1:
            raise Wrong("the block of the pivots is not certainly invertible: ‖I − RA‖ may reach 1")
    return off * unit


def _apart(keys: Matrix, z: Sequence[tuple[int, int]], bits: int, query: Vector) -> Fraction:
    """A lower bound of |a(q)·z*|, for z* within the given room around each entry of z."""
    logits = [dot(query, key) for key in keys]
    top = max(logits)
    weights = [exp(logit - top) for logit in logits]
    total = moved = Interval.point(0)
    for weight, (middle, room) in zip(weights, z, strict=True):
        total = total + weight
        moved = moved + weight * Interval(_unit(middle - room, bits), _unit(middle + room, bits))
    return (moved / total).magnitude


def _unit(value: int, bits: int) -> Fraction:
    return Fraction(value, 1 << bits)


def _bits(value: object) -> int:
    bits = natural(value)
    if bits > MOST_BITS:
        raise IllFormed(f"{bits} bits are more than {MOST_BITS}")
    return bits


def _integers(value: object) -> Integers:
    rows = matrix(value)
    if any(x.denominator != 1 for row in rows for x in row):
        raise IllFormed("features, inverse and z are integers, in units of a power of two")
    return [[x.numerator for x in row] for row in rows]

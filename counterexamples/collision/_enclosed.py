"""Two histories with one linear-attention state, for enclosed features: data of an ``enclosed-collision``."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from flint import arb, arb_mat, ctx, fmpz_mat

from counterexamples.collision._construct import LARGEST_VALUE_BITS, text
from counterexamples.collision._features import Features
from counterexamples.collision._nullspace import no_collision, pivots, primes
from counterexamples.collision._query import separating
from verify.model.errors import RequestError, SearchEnded

PRECISIONS = (256, 512, 1024, 2048)
LEAST_BITS_OF_Z = 64
"""Bits after the point to which z must be known."""

Rows = Sequence[Sequence[Fraction]]


def collide(features: Features, keys: Rows, width: int) -> dict[str, Any]:
    """Values V and V + z wᵀ with the exact null vector z enclosed around rationals; w is 1 everywhere.

    Args:
        features: enclosures T×m at any precision.
        keys: T×K, distinct.
        width: V, the width of the values.

    Raises:
        RequestError: T ≤ m.
        SearchEnded: no m tokens have certainly independent features, at no precision tried, or no query
            tried separates the two histories.
    """
    for precision in PRECISIONS:
        rows = features.balls(precision)
        tokens, count = len(rows), len(rows[0])
        if tokens <= count:
            raise RequestError(no_collision(tokens, count))
        found = _null_vector(rows, precision)
        if found is not None:
            return _with_query(found, keys, width)
    raise SearchEnded(
        f"no {count} of the {tokens} tokens have certainly independent features at"
        f" {', '.join(map(str, PRECISIONS))} bits; a collision exists, but the features depend on one another"
        " and balls cannot show how: leave out features that others determine"
    )


def _null_vector(rows: Sequence[Sequence[arb]], precision: int) -> dict[str, Any] | None:
    """z, its radius and what certifies it; None where the precision does not suffice."""
    middles, radius = _integers(rows, precision)
    tokens, count = len(rows), len(rows[0])
    basis = pivots([list(column) for column in zip(*middles, strict=True)], next(primes()))
    if len(basis) < count:
        return None
    free = next(t for t in range(tokens) if t not in basis)
    with ctx.workprec(precision):
        block = arb_mat([[arb(middles[t][row]) for t in basis] for row in range(count)])
        target = arb_mat([[arb(-middles[free][row])] for row in range(count)])
        try:
            inverse = block.inv()
        except ZeroDivisionError:
            return None
        solved = (inverse * target).entries()
        inverse = inverse * arb(2) ** precision
    if not all(x.is_finite() for x in solved):
        return None
    z = _rounded_vector(solved, basis, free, tokens, precision)
    size = max(abs(x) for t in basis for x in middles[t])
    digits = max(0, (count * size).bit_length() - precision) + 4
    preconditioner = [[_nearest(x, digits) for x in row] for row in inverse.tolist()]
    away = _distance(middles, radius, z, basis, preconditioner, digits, precision)
    if away is None or away >> (precision - LEAST_BITS_OF_Z):
        return None
    return {
        "features": [[str(x) for x in row] for row in middles],
        "feature_radius": str(radius),
        "bits": precision,
        "pivots": basis,
        "inverse": [[str(x) for x in row] for row in preconditioner],
        "inverse_bits": digits,
        "z": [str(x) for x in z],
        "z_radius": str(away),
    }


def _integers(rows: Sequence[Sequence[arb]], bits: int) -> tuple[list[list[int]], int]:
    """Midpoints and one radius for all, in units of 2^−bits."""
    middles = [[_nearest(x, bits) for x in row] for row in rows]
    widest = 0
    for row in rows:
        for x in row:
            mantissa, exponent = x.rad().man_exp()
            shift = int(exponent) + bits
            size = int(mantissa)
            widest = max(widest, size << shift if shift >= 0 else -(-size >> -shift))
    return middles, widest + 1


def _nearest(x: arb, bits: int) -> int:
    mantissa, exponent = x.mid().man_exp()
    return round(int(mantissa) * Fraction(2) ** (int(exponent) + bits))


def _rounded_vector(
    solved: Sequence[arb], basis: Sequence[int], free: int, tokens: int, bits: int
) -> list[int]:
    """z in units of 2^−bits, with the largest entry below 16; the free token's entry a power of two."""
    top = max(1, *(abs(_nearest(x, 0)) for x in solved))
    shift = max(0, top.bit_length() - LARGEST_VALUE_BITS)
    z = [0] * tokens
    z[free] = 1 << (bits - shift) if bits >= shift else 0
    for t, x in zip(basis, solved, strict=True):
        z[t] = _nearest(x, bits - shift)
    return z


def _distance(
    middles: Sequence[Sequence[int]],
    radius: int,
    z: Sequence[int],
    basis: Sequence[int],
    inverse: Sequence[Sequence[int]],
    digits: int,
    bits: int,
) -> int | None:
    """How far z may be from the null vector of any features in the enclosures, in units of 2^−bits.

    With A the features of the pivots and R the preconditioner: ‖I − RA‖ ≤ β < 1 gives
    ‖z − z₀‖ ≤ ‖R Φᵀz₀‖/(1 − β), in the largest-entry norm.
    """
    count, one = len(basis), 1 << (digits + bits)
    left = fmpz_mat([list(row) for row in inverse])
    block = fmpz_mat([[middles[t][row] for t in basis] for row in range(count)])
    rest = fmpz_mat([list(column) for column in zip(*middles, strict=True)]) * fmpz_mat(len(z), 1, list(z))
    residual = left * rest
    near = (left * block).tolist()
    length = sum(abs(x) for x in z)
    beta, moved = 0, 0
    for i, row in enumerate(inverse):
        size = sum(abs(x) for x in row)
        off = sum(abs(int(x) - (one if i == j else 0)) for j, x in enumerate(near[i]))
        beta = max(beta, off + count * size * radius)
        moved = max(moved, abs(int(residual[i, 0])) + size * radius * length)
    if beta >= one or not z or not any(z[t] for t in range(len(z)) if t not in basis):
        return None
    return int(Fraction(moved, one) / (1 - Fraction(beta, one))) + 1


def _with_query(found: dict[str, Any], keys: Rows, width: int) -> dict[str, Any]:
    bits, radius = found["bits"], int(found["z_radius"])
    with ctx.workprec(bits + 64):
        unit = arb(2) ** -bits
        basis = set(found["pivots"])
        z = [
            arb(int(x)) * unit + (arb(0, arb(radius) * unit) if t in basis else 0)
            for t, x in enumerate(found["z"])
        ]
    query, gap = separating(keys, z, Fraction(1))
    first = [[Fraction(max(-int(x), 0), 1 << bits)] * width for x in found["z"]]
    return {
        **found,
        "keys": text(keys),
        "first": text(first),
        "w": ["1"] * width,
        "query": [str(x) for x in query],
        "gap": str(gap),
    }

"""Two histories with one linear-attention state, for any exact features of fewer columns than tokens."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from derivations.softmax.definition import attend
from verify.model.errors import RequestError
from verify.numbers.convert import Number, to_fraction

Row = Sequence[Number]


def null_vector(features: Sequence[Row]) -> list[Fraction]:
    """A z ≠ 0 with featuresᵀ z = 0, for features T×m with T > m (exact elimination).

    Raises:
        RequestError: the feature matrix has full row rank, so T ≤ m and there is no such z.
    """
    from verify.numbers.exact import Exact

    reduced, rank = Exact().matrix(features).transpose().rref()
    tokens = len(features)
    pivots = [next(t for t in range(tokens) if reduced[row, t] != 0) for row in range(rank)]
    free = next((t for t in range(tokens) if t not in pivots), None)
    if free is None:
        raise RequestError(
            f"{tokens} tokens have {rank} independent features: no collision; give more tokens than features"
        )
    z = [Fraction(int(t == free)) for t in range(tokens)]
    for row, t in enumerate(pivots):
        entry = reduced[row, free]
        z[t] = -Fraction(int(entry.p), int(entry.q))
    return z


def collide(
    features: Sequence[Row] | Callable[[Row], Row],
    keys: Sequence[Row],
    values: Sequence[Row],
    direction: Row,
    query: Row | None = None,
    *,
    precision: int = 256,
) -> dict[str, Any]:
    """Data of a ``state-collision`` obligation: values V and V + z wᵀ, one state, two softmax outputs.

    Args:
        features: T×m exact numbers, or the feature map itself (key → m exact numbers).
        keys: T×d; the softmax weights are ∝ exp(query·key).
        values: T×V.
        direction: w, V numbers, not all zero.
        query: d numbers; by default the best of a few fixed ones.
        precision: bits for the enclosure of the gap between the softmax outputs.

    Raises:
        RequestError: there is no collision (T ≤ m and independent features), or no query tried tells
            the two histories apart at this precision.
    """
    rows = [features(key) for key in keys] if callable(features) else features
    z, w = null_vector(rows), [to_fraction(x) for x in direction]
    first = [[to_fraction(x) for x in row] for row in values]
    second = [
        [x + amount * step for x, step in zip(row, w, strict=True)]
        for row, amount in zip(first, z, strict=True)
    ]
    queries = _queries(len(keys[0])) if query is None else [[to_fraction(x) for x in query]]
    gap, seen = max((_gap(keys, first, second, candidate, precision), candidate) for candidate in queries)
    if gap <= 0:
        raise RequestError(f"no query tried tells the two histories apart at {precision} bits; give another")
    shared = {"features": _text(rows), "keys": _text(keys)}
    return {
        "first": {**shared, "values": _text(first)},
        "second": {**shared, "values": _text(second)},
        "z": [str(x) for x in z],
        "w": [str(x) for x in w],
        "query": [str(x) for x in seen],
        "gap": str(gap),
    }


def _queries(width: int) -> list[list[Fraction]]:
    """Slanted directions at several lengths: different keys rarely have equal products with all of them."""
    slant = [Fraction(1, i + 1) for i in range(width)]
    return [[size * x for x in slant] for size in map(Fraction, ("1/4", "1", "4", "-1/4", "-1", "-4"))]


def _text(rows: Sequence[Row]) -> list[list[str]]:
    return [[str(to_fraction(x)) for x in row] for row in rows]


def _gap(
    keys: Sequence[Row], first: Sequence[Row], second: Sequence[Row], query: Row, precision: int
) -> Fraction:
    """A rational certainly below the largest difference of a coordinate of the two softmax outputs."""
    from verify.numbers.ball import Ball

    balls = Ball(precision)

    def column(row: Row) -> Any:
        return balls.matrix([[to_fraction(x)] for x in row])

    def output(values: Sequence[Row]) -> Any:
        k, v = [column(row) for row in keys], [column(row) for row in values]
        return attend(balls, column(query), k, v, scale=balls.number(1))

    differences = balls.sub(output(first), output(second)).entries()
    return max(_below(x) for x in differences)


def _below(ball: Any) -> Fraction:
    mantissa, exponent = ball.abs_lower().man_exp()
    # Fewer bits than the enclosure has, so that a re-check at another precision has room.
    drop = max(0, int(mantissa).bit_length() - 20)
    return Fraction(int(mantissa) >> drop) * Fraction(2) ** (int(exponent) + drop)

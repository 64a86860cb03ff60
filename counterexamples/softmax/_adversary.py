"""An adversary against attention that does not read every score: two inputs it cannot tell apart.

It lets the algorithm run, notes what it reads, and raises one score that was not read. The algorithm sees the
same scores again, so it answers as before, while the exact output of that row has moved to the raised token.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from derivations.softmax.definition import weights
from verify.model.errors import RequestError
from verify.numbers.convert import Number, to_fraction

Table = list[list[Fraction]]
Oracle = Callable[[int, int], Fraction]
"""The score of a query and a key, counted from 0: the only way to learn anything about the scores."""
Algorithm = Callable[[Oracle, Sequence[Sequence[Fraction]]], Sequence[Sequence[Number]]]
"""Takes the oracle and the N values (N×V), returns the N outputs (N×V)."""

PRECISION = 256
"""Bits of the enclosures of the outputs."""
FARTHEST = 2**14
"""How far above the others a score is raised at most."""


@dataclass
class _Watched:
    """Scores behind an oracle that notes which pairs are asked for."""

    scores: Table
    read: list[tuple[int, int]] = field(default_factory=list)

    def __call__(self, query: int, key: int) -> Fraction:
        size = len(self.scores)
        if not (0 <= query < size and 0 <= key < size):
            raise RequestError(f"the algorithm reads the score {(query, key)}, outside {size}×{size}")
        self.read.append((query, key))
        return self.scores[query][key]


def deceive(
    algorithm: Algorithm,
    values: Sequence[Sequence[Number]],
    gap: Number,
    scores: Sequence[Sequence[Number]] | None = None,
) -> dict[str, Any]:
    """Data of an ``unread-score`` obligation: two inputs, one answer, outputs at least ``gap`` apart.

    Args:
        algorithm: any deterministic algorithm that reads scores through the oracle alone.
        values: N×V exact numbers; the algorithm may use them freely.
        gap: how far apart (largest coordinate) the exact outputs of one row shall be; an unread token's
            value must be farther than this from the row's output.
        scores: N×N exact scores of the first input; by default all 0.

    Raises:
        RequestError: every score was read, no unread token's value is farther than ``gap`` from its row's
            output, or the algorithm did not repeat itself on the same answers.
    """
    exact = [[to_fraction(x) for x in row] for row in values]
    size, wanted = len(exact), to_fraction(gap)
    first = [[Fraction(0)] * size for _ in exact]
    if scores is not None:
        first = [[to_fraction(x) for x in row] for row in scores]
    read, answer = _run(algorithm, first, exact)
    query, key = _target(first, exact, set(read), wanted)
    second = [list(row) for row in first]
    second[query][key] = _raised(first[query], exact, key, wanted)
    again, repeated = _run(algorithm, second, exact)
    if (again, repeated) != (read, answer):
        raise RequestError(
            "the algorithm reads or answers differently on equal scores: it must be deterministic"
        )
    return {
        "first": _text(first),
        "second": _text(second),
        "values": _text(exact),
        "read": [list(pair) for pair in sorted(set(read))],
        "pair": [query, key],
        "answer": _text(answer),
        "gap": str(wanted),
    }


def _run(algorithm: Algorithm, scores: Table, values: Table) -> tuple[list[tuple[int, int]], Table]:
    oracle = _Watched(scores)
    outputs = [[to_fraction(x) for x in row] for row in algorithm(oracle, [list(row) for row in values])]
    if [len(row) for row in outputs] != [len(row) for row in values]:
        raise RequestError("the algorithm must return one output per query, as wide as a value")
    return oracle.read, outputs


def _target(scores: Table, values: Table, read: set[tuple[int, int]], gap: Fraction) -> tuple[int, int]:
    """The unread pair whose value is farthest from its row's output."""
    size = len(values)
    unread = [(i, j) for i in range(size) for j in range(size) if (i, j) not in read]
    if not unread:
        raise RequestError(f"the algorithm read all {size * size} scores: it may well be exact")
    rows = {i: _output(scores[i], values) for i, _ in unread}
    reach, query, key = max((_distance(rows[i], _points(values[j])), i, j) for i, j in unread)
    if reach <= gap:
        raise RequestError(
            f"no unread token's value is certainly farther than {gap} from its row's output; ask for less"
            f" than {float(reach):.6g} or give values that differ more"
        )
    return query, key


def _raised(row: Sequence[Fraction], values: Table, key: int, gap: Fraction) -> Fraction:
    """The first score among top + 1, top + 2, top + 4, … that moves the output far enough."""
    before, lead = _output(row, values), 1
    while lead < FARTHEST:
        score = max(row) + lead
        moved = [*row[:key], score, *row[key + 1 :]]
        if _distance(before, _output(moved, values)) > gap:
            return score
        lead *= 2
    raise RequestError(f"the gap {gap} is too close to the largest possible one; ask for less")


def _output(row: Sequence[Fraction], values: Table) -> list[Any]:
    from verify.numbers.ball import Ball

    balls = Ball(PRECISION)
    attention = weights(balls, balls.matrix([[score] for score in row]))
    return list(balls.matmul(balls.transpose(balls.matrix(values)), attention).entries())


def _points(value: Sequence[Fraction]) -> list[Any]:
    from verify.numbers.ball import Ball

    balls = Ball(PRECISION)
    return [balls.number(x) for x in value]


def _distance(one: Sequence[Any], other: Sequence[Any]) -> Fraction:
    """A rational certainly at most the largest difference of a coordinate."""
    found = Fraction(0)
    for left, right in zip(one, other, strict=True):
        mantissa, exponent = (left - right).abs_lower().man_exp()
        found = max(found, Fraction(int(mantissa)) * Fraction(2) ** int(exponent))
    return found


def _text(rows: Table) -> list[list[str]]:
    return [[str(x) for x in row] for row in rows]

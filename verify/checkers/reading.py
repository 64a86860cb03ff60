"""Reading witnesses: exact numbers, vectors and matrices from JSON, and small arithmetic on them."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import lcm
from operator import mul
from typing import Any

from verify.checkers.terms import IllFormed, rational
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

Vector = list[Fraction]
Matrix = list[Vector]


class Wrong(Exception):
    """A witness is well formed but does not show what it should; the text says what differs."""


def word(name: str, obligation: Obligation, check: Callable[[Mapping[str, Any]], str]) -> Check:
    """The checker's word: ``proved`` with what ``check`` returns, ``refuted`` with what it raises."""
    try:
        return Check(name, "checker", Verdict.PROVED, check(obligation.data))
    except Wrong as difference:
        return Check(name, "checker", Verdict.REFUTED, str(difference))
    except (IllFormed, LookupError, TypeError, ValueError, ArithmeticError, RecursionError) as problem:
        return Check(name, "checker", Verdict.REFUTED, f"malformed witness: {problem!r}")


def natural(value: object) -> int:
    """An integer of at least 0."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise IllFormed(f"{value!r} is not a natural number")
    return value


def flag(value: object) -> bool:
    """``true`` or ``false``."""
    if not isinstance(value, bool):
        raise IllFormed(f"{value!r} is neither true nor false")
    return value


def vector(value: object) -> Vector:
    """A non-empty list of rationals."""
    if not isinstance(value, list | tuple) or not value:
        raise IllFormed(f"{value!r} is not a non-empty list of rationals")
    return [rational(item) for item in value]


def matrix(value: object) -> Matrix:
    """A non-empty list of rows of one length."""
    if not isinstance(value, list | tuple) or not value:
        raise IllFormed(f"{value!r} is not a non-empty list of rows")
    rows = [vector(row) for row in value]
    if len({len(row) for row in rows}) != 1:
        raise IllFormed("the rows of a matrix differ in length")
    return rows


def _common(values: Sequence[Fraction]) -> tuple[list[int], int]:
    """Numerators over one denominator: sums of products need no common divisors then."""
    scale = lcm(*(x.denominator for x in values))
    return [x.numerator * (scale // x.denominator) for x in values], scale


def dot(left: Sequence[Fraction], right: Sequence[Fraction]) -> Fraction:
    """Inner product of two vectors of one length."""
    if len(left) != len(right):
        raise ValueError(f"vectors of {len(left)} and {len(right)} numbers have no inner product")
    (numerators, scale), (others, other) = _common(left), _common(right)
    return Fraction(sum(map(mul, numerators, others)), scale * other)


def transpose(rows: Matrix) -> Matrix:
    """The transposed matrix."""
    return [list(column) for column in zip(*rows, strict=True)]


def product(left: Matrix, right: Matrix) -> Matrix:
    """Matrix product.

    Raises:
        ValueError: the rows of one are not as long as the columns of the other.
    """
    if any(len(row) != len(right) for row in left):
        raise ValueError("the rows of the left factor are not as long as the columns of the right one")
    columns = [_common(column) for column in transpose(right)]
    return [
        [Fraction(sum(map(mul, row, column)), scale * other) for column, other in columns]
        for row, scale in map(_common, left)
    ]


def shown(value: Sequence[Fraction] | Matrix) -> str:
    """A vector or matrix as short text."""
    text = "[" + ", ".join(str(item) if isinstance(item, Fraction) else shown(item) for item in value) + "]"
    return text if len(text) <= 200 else text[:200] + " …"


def same(what: str, found: Sequence[Fraction] | Matrix, stated: Sequence[Fraction] | Matrix) -> None:
    """Demand equality.

    Raises:
        Wrong: they differ; says both.
    """
    if found != stated:
        raise Wrong(f"{what} is {shown(found)}, not the stated {shown(stated)}")

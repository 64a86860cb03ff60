"""The features that a user's map gives to keys: exactly where they are rational, else in balls.

A feature map takes a key, a list of K numbers, and returns m numbers. It is tried in this order, and the
first way it can compute is taken: on fractions, on SymPy numbers (it may use SymPy's functions in both), and
on balls. Floats it returns count in balls only, where they cannot be results of rounded operations.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import sympy
from flint import arb, ctx, fmpq, fmpz

from counterexamples.collision._balls import FUNCTIONS, FeatureBall, ball, exact
from counterexamples.collision._features import Features, exactly
from verify.model.errors import AttnproofError, RequestError

Rows = Sequence[Sequence[Any]]
FeatureMap = Callable[[list[Any]], Any]

FIRST_PRECISION = 256
NAMED: dict[Any, str] = {getattr(sympy, name): name for name in FUNCTIONS - {"sqrt", "exp"}}


def of_function(function: FeatureMap, name: str, keys: Sequence[Sequence[Fraction]]) -> Features:
    """The features of a map on given keys.

    Raises:
        RequestError: the map raises, or does not give m finite real numbers for every key.
    """
    for number, how in ((Fraction, "fractions"), (sympy.sympify, "SymPy numbers")):
        rows = _expressions(function, keys, number)
        if rows is not None:
            _rectangular(rows, name)
            if all(isinstance(x, Fraction) for row in rows for x in row):
                return exactly(f"computed exactly on {how}", rows)
            return Features(f"computed on {how} and enclosed", None, partial(_enclosed, rows))
    enclosed = _in_balls(function, name, keys, FIRST_PRECISION)
    if all(x.is_exact() for row in enclosed for x in row):
        return exactly(
            "computed exactly, on balls of radius 0", [[exact(x) for x in row] for row in enclosed]
        )
    return Features("computed on balls", None, partial(_in_balls, function, name, keys))


def _expressions(
    function: FeatureMap, keys: Sequence[Sequence[Fraction]], number: Callable[[Fraction], Any]
) -> list[list[Any]] | None:
    """The map's values as exact numbers or constant expressions; None where it cannot give them so."""
    rows = []
    for key in keys:
        try:
            row = [_constant(x) for x in function([number(x) for x in key])]
        except (Exception, SystemExit):
            # Not a fault yet: the map may need other numbers. Balls, tried last, report it.
            return None
        if any(x is None for x in row):
            return None
        rows.append(row)
    return rows


def _constant(value: object) -> Any:
    """An exact number or a constant expression that ``_value`` can enclose; None for anything else."""
    if isinstance(value, fmpz | fmpq):
        return Fraction(int(fmpq(value).p), int(fmpq(value).q))
    if isinstance(value, sympy.Basic):
        if value.is_Rational:
            return Fraction(int(value.p), int(value.q))
        known = all(_known(item) for item in sympy.preorder_traversal(value))
        return value if known and not value.free_symbols else None
    if hasattr(value, "__index__"):
        return Fraction(int(value))
    return value if isinstance(value, Fraction) else None


def _known(item: Any) -> bool:
    return (
        item.is_Rational
        or item in (sympy.pi, sympy.E)
        or item.func in (sympy.Add, sympy.Mul, sympy.Pow, sympy.exp, sympy.Abs, sympy.Max, sympy.Min)
        or item.func in NAMED
    )


def _enclosed(rows: Rows, precision: int) -> list[list[arb]]:
    with ctx.workprec(precision):
        return [
            [_finite(_value(x), f"feature {place + 1} of token {t + 1}") for place, x in enumerate(row)]
            for t, row in enumerate(rows)
        ]


def _value(item: Any) -> arb:
    """A ball around an exact number or a constant expression."""
    if isinstance(item, Fraction) or item.is_Rational:
        return ball(Fraction(item))
    if item in (sympy.pi, sympy.E):
        return arb.pi() if item == sympy.pi else arb(1).exp()
    values = [_value(part) for part in item.args]
    if item.is_Add:
        return sum(values, arb(0))
    if item.is_Mul:
        product = arb(1)
        for x in values:
            product = product * x
        return product
    if item.func in (sympy.Max, sympy.Min):
        chosen = values[0]
        for x in values[1:]:
            chosen = chosen.max(x) if item.func is sympy.Max else chosen.min(x)
        return chosen
    if item.func is sympy.Abs:
        return abs(values[0])
    if item.is_Pow:
        power = int(item.exp) if item.exp.is_Integer else values[1]
        return (FeatureBall(values[0]) ** power).ball
    function: Callable[[], arb] = getattr(values[0], NAMED.get(item.func, "exp"))
    return function()


def _in_balls(
    function: FeatureMap, name: str, keys: Sequence[Sequence[Fraction]], precision: int
) -> list[list[arb]]:
    rows = []
    with ctx.workprec(precision):
        for t, key in enumerate(keys):
            where = f"on token {t + 1}, key ({', '.join(map(str, key))})"
            try:
                row = [ball(x) for x in function([FeatureBall(x) for x in key])]
            except AttnproofError as problem:
                raise RequestError(f"{name} {where}: {problem}") from problem
            except (Exception, SystemExit) as problem:
                raise RequestError(f"{name} raises {type(problem).__name__} {where}: {problem}") from problem
            rows.append([_finite(x, f"feature {place + 1} of {name} {where}") for place, x in enumerate(row)])
    _rectangular(rows, name)
    return rows


def _finite(value: arb, what: str) -> arb:
    if not value.is_finite():
        raise RequestError(f"{what} is not a finite real number ({value}); give other keys or another map")
    return value


def _rectangular(rows: Rows, name: str) -> None:
    lengths = {len(row): t for t, row in enumerate(rows)}
    if len(lengths) > 1 or 0 in lengths:
        told = ", ".join(f"{length} on token {t + 1}" for length, t in sorted(lengths.items()))
        raise RequestError(
            f"{name} must give the same number of features, at least one, for every key: {told}"
        )

"""Scores computed in a narrow format on literal queries and keys, with the bound on their errors."""

from fractions import Fraction

from verify.model.evidence import Obligation
from verify.numbers.formats import Format, round_to

Numbers = list[Fraction]


def selection(
    label: str,
    query: str,
    keys: list[str],
    kept: list[int],
    bound: str,
    target: Format,
    *,
    bounded: bool = True,
) -> Obligation:
    """What is kept by scores whose products and sums, in turn, round to ``target``.

    Args:
        label: what is shown.
        query: K rationals.
        keys: K rationals each.
        kept: indices of the kept keys.
        bound: on the dropped mass.
        target: the format.
        bounded: whether the errors are stated (otherwise the scores are claimed to be exact: for a mutant).
    """
    q, listed = _read(query), [_read(key) for key in keys]
    scores = [_dot(q, key, target) for key in listed]
    relative = len(q) * target.unit_roundoff
    errors = [
        relative / (1 - relative) * sum(abs(x * y) for x, y in zip(q, key, strict=True)) for key in listed
    ]
    data = {
        "query": [str(x) for x in q],
        "keys": [[str(x) for x in key] for key in listed],
        "scale": "1",
        "scores": [str(x) for x in scores],
        "errors": [str(x) if bounded else "0" for x in errors],
        "kept": kept,
        "bound": bound,
    }
    return Obligation("scored-selection", label, "B", data)


def _read(text: str) -> Numbers:
    return [Fraction(item) for item in text.split()]


def _dot(left: Numbers, right: Numbers, target: Format) -> Fraction:
    total = Fraction(0)
    for x, y in zip(left, right, strict=True):
        total = _rounded(total + _rounded(x * y, target), target)
    return total


def _rounded(x: Fraction, target: Format) -> Fraction:
    value = round_to(target, x)
    if value is None:
        raise ArithmeticError(f"{x} overflows {target.name}")
    return value

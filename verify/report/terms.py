"""Formulas as certificates keep them (the grammar of ``verify.checkers.terms``): to LaTeX, to numbers."""

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

ARITY = {"q": 1, "v": 1, "at": 2, "^": 2, "exp": 1, "log": 1, "sum": 4}
GREEK = re.compile(
    "alpha|beta|[Gg]amma|[Dd]elta|epsilon|zeta|eta|[Tt]heta|iota|kappa|[Ll]ambda|mu|nu|[Xx]i|[Pp]i|rho"
    "|[Ss]igma|tau|[Uu]psilon|[Pp]hi|chi|[Pp]si|[Oo]mega"
)

LONGEST = 24
"""Operands of a sum or product that are written out; of more, only the first and the last are."""


def is_term(value: Any) -> bool:
    """Whether a JSON value is a formula."""
    if not isinstance(value, list) or not value or not isinstance(value[0], str):
        return False
    head, *rest = value
    if head in ("+", "*"):
        return bool(rest) and all(is_term(item) for item in rest)
    if ARITY.get(head) != len(rest):
        return False
    if head == "q":
        return isinstance(rest[0], str) and re.fullmatch(r"-?\d+(/[1-9]\d*)?", rest[0]) is not None
    if head == "v":
        return isinstance(rest[0], str)
    if head == "at":
        return isinstance(rest[0], str) and isinstance(rest[1], list) and all(is_term(i) for i in rest[1])
    if head == "^":
        return is_term(rest[0]) and isinstance(rest[1], int)
    if head == "sum":
        return isinstance(rest[0], str) and all(is_term(item) for item in rest[1:])
    return is_term(rest[0])


def name_latex(name: str) -> str:
    """LaTeX of a name: ``alpha_i`` is α with index i, ``k1`` is k with index 1; ``\\pi`` is LaTeX."""
    if re.fullmatch(r"\\[A-Za-z]+", name):
        return name
    found = re.fullmatch(r"([A-Za-z]+?)_?(\d*|(?<=_)\w+)", name)
    if not found:
        return rf"\mathrm{{{name}}}"
    stem, index = found.groups()
    shown = rf"\{stem}" if GREEK.fullmatch(stem) else stem if len(stem) == 1 else rf"\mathrm{{{stem}}}"
    return f"{shown}_{{{index}}}" if index else shown


def latex(term: list[Any]) -> str:
    """LaTeX of a formula, operands in the order in which they stand, but never a negative number first."""
    head, *rest = term
    if head == "q":
        number = Fraction(rest[0])
        if number.denominator == 1:
            return str(number)
        return rf"{'-' if number < 0 else ''}\frac{{{abs(number.numerator)}}}{{{number.denominator}}}"
    if head == "v":
        return name_latex(rest[0])
    if head == "at":
        return f"{{{name_latex(rest[0])}}}_{{{','.join(latex(index) for index in rest[1])}}}"
    if head == "+":
        if rest[0][0] == "q" and rest[0][1].startswith("-"):
            rest = [*rest[1:], rest[0]]
        return " + ".join(_shortened([latex(item) for item in rest])).replace("+ -", "- ")
    if head == "*":
        return _product(rest)
    if head == "^":
        return _power(rest[0], rest[1])
    if head in ("exp", "log"):
        return rf"\{head}\left({latex(rest[0])}\right)"
    bound, lower, upper, body = rest
    limits = rf"\sum_{{{name_latex(bound)}={latex(lower)}}}^{{{latex(upper)}}}"
    return f"{limits} {_grouped(body, ('+',))}"


def _shortened(operands: list[str]) -> list[str]:
    """The first three and the last of very many operands; the certificate has them all."""
    if len(operands) <= LONGEST:
        return operands
    return [*operands[:3], rf"\underbrace{{\cdots}}_{{{len(operands) - 4}\text{{ more}}}}", operands[-1]]


def _grouped(term: list[Any], heads: tuple[str, ...]) -> str:
    return rf"\left({latex(term)}\right)" if term[0] in heads else latex(term)


def _product(factors: list[Any]) -> str:
    above = [item for item in factors if item[0] != "^" or item[2] >= 0]
    below = [["^", item[1], -item[2]] for item in factors if item[0] == "^" and item[2] < 0]
    sign = ""
    if len(above) > 1 and above[0] == ["q", "-1"]:
        sign, above = "-", above[1:]
    top = r" \, ".join(_shortened([_grouped(item, ("+", "sum")) for item in above])) or "1"
    if not below:
        return sign + top
    if len(above) == 1:
        top = latex(above[0])
    return rf"{sign}\frac{{{top}}}{{{latex(below[0]) if len(below) == 1 else _product(below)}}}"


def _power(base: list[Any], exponent: int) -> str:
    if exponent < 0:
        return rf"\frac{{1}}{{{_power(base, -exponent)}}}"
    if exponent == 1:
        return latex(base)
    return f"{_grouped(base, ('+', '*', '^', 'sum', 'exp', 'log'))}^{{{exponent}}}"


def value(term: list[Any], names: Mapping[str, float]) -> float:
    """A formula in floating point, for drawing.

    Args:
        term: the formula; sums with integer limits are written out.
        names: values of variables; a member ``a[i]`` has the value of its family ``a``.

    Raises:
        KeyError: a name has no value.
    """
    head, *rest = term
    if head == "q":
        return float(Fraction(rest[0]))
    if head in ("v", "at"):
        return names[rest[0]]
    if head == "+":
        return math.fsum(value(item, names) for item in rest)
    if head == "*":
        return math.prod(value(item, names) for item in rest)
    if head == "^":
        return float(value(rest[0], names) ** rest[1])
    if head in ("exp", "log"):
        return (math.exp if head == "exp" else math.log)(value(rest[0], names))
    bound, lower, upper, body = rest
    span = range(round(value(lower, names)), round(value(upper, names)) + 1)
    return math.fsum(value(body, {**names, bound: float(index)}) for index in span)

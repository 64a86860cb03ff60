"""Formulas as nested tuples, as they stand in certificates: reading and substitution.

A term is one of ``("q", "3/4")``, ``("v", name)``, ``("at", family, (index, …))``, ``("+", a, …)``,
``("*", a, …)``, ``("^", base, integer)``, ``("exp", a)``, ``("log", a)`` and
``("sum", bound, lower, upper, body)`` (both limits included).
"""

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

Term = tuple[Any, ...]

ZERO: Term = ("q", "0")
ONE: Term = ("q", "1")


RESERVED = frozenset("<>#$@?;")
"""Characters no name may hold: the checkers build names of their own with them."""
_RATIONAL = re.compile(r"-?[0-9]+(/[0-9]*[1-9][0-9]*)?")


class IllFormed(Exception):
    """A certificate holds something that is not a term, or a rule met a term it cannot treat."""


def read(value: Any) -> Term:
    """A term from JSON (lists for tuples); rejects whatever is not one."""
    if not isinstance(value, list | tuple) or not value:
        raise IllFormed(f"not a term: {value!r}")
    head, *rest = value
    if head == "q" and len(rest) == 1 and isinstance(rest[0], str | int):
        return ("q", str(rational(rest[0])))
    if head == "v" and len(rest) == 1:
        return ("v", name(rest[0]))
    if head == "at" and len(rest) == 2 and isinstance(rest[1], list | tuple) and rest[1]:
        return ("at", name(rest[0]), tuple(read(index) for index in rest[1]))
    if head in ("+", "*") and rest:
        return (head, *(read(item) for item in rest))
    if head == "^" and len(rest) == 2 and type(rest[1]) is int:
        return ("^", read(rest[0]), rest[1])
    if head in ("exp", "log") and len(rest) == 1:
        return (head, read(rest[0]))
    if head == "sum" and len(rest) == 4:
        return ("sum", name(rest[0]), *(read(item) for item in rest[1:]))
    raise IllFormed(f"not a term: {value!r}")


def rational(value: object) -> Fraction:
    """An integer or text such as ``"-3/4"``; floats are refused, for they hide their exact value."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    if isinstance(value, str) and _RATIONAL.fullmatch(value):
        numerator, _, denominator = value.partition("/")
        return Fraction(int(numerator), int(denominator)) if denominator else Fraction(int(numerator))
    raise IllFormed(f"{value!r} is not an exact rational such as 2 or '-3/4'")


def name(value: Any) -> str:
    """A variable's or family's name from JSON; LaTeX is fine, characters of ``RESERVED`` are not."""
    if not isinstance(value, str) or not value or RESERVED & set(value):
        raise IllFormed(f"not a name: {value!r}")
    return value


def plus(*items: Term) -> Term:
    """Sum of terms."""
    return ("+", *items)


def times(*items: Term) -> Term:
    """Product of terms."""
    return ("*", *items)


def minus(left: Term, right: Term) -> Term:
    """Difference of two terms."""
    return plus(left, times(("q", "-1"), right))


def children(term: Term) -> Iterator[Term]:
    """The direct subterms."""
    head = term[0]
    if head == "at":
        yield from term[2]
    elif head in ("+", "*"):
        yield from term[1:]
    elif head in ("^", "exp", "log"):
        yield term[1]
    elif head == "sum":
        yield from term[2:]


def rebuild(term: Term, change: Callable[[Term], Term]) -> Term:
    """The same head over changed direct subterms."""
    head = term[0]
    if head == "at":
        return ("at", term[1], tuple(change(index) for index in term[2]))
    if head in ("+", "*"):
        return (head, *(change(item) for item in term[1:]))
    if head == "^":
        return ("^", change(term[1]), term[2])
    if head in ("exp", "log"):
        return (head, change(term[1]))
    if head == "sum":
        return ("sum", term[1], *(change(item) for item in term[2:]))
    return term


def free_variables(term: Term) -> frozenset[str]:
    """Names of the variables not bound by a sum."""
    if term[0] == "v":
        return frozenset({term[1]})
    if term[0] == "sum":
        _, bound, lower, upper, body = term
        return free_variables(lower) | free_variables(upper) | (free_variables(body) - {bound})
    return frozenset().union(*(free_variables(item) for item in children(term)))


def families(term: Term) -> frozenset[str]:
    """Names of the families of which a term uses members."""
    own = {term[1]} if term[0] == "at" else set()
    return frozenset(own).union(*(families(item) for item in children(term)))


def substitute(term: Term, name: str, value: Term) -> Term:
    """Replace a free variable by a term; refuses a substitution that a sum would capture."""
    if term == ("v", name):
        return value
    if term[0] == "sum":
        _, bound, lower, upper, body = term
        lower, upper = (substitute(limit, name, value) for limit in (lower, upper))
        if bound != name and name in free_variables(body):
            if bound in free_variables(value):
                raise IllFormed(f"the sum over {bound} would capture {bound} in the value of {name}")
            body = substitute(body, name, value)
        return ("sum", bound, lower, upper, body)
    return rebuild(term, lambda item: substitute(item, name, value))

"""Formulas as nested tuples, as they stand in certificates: reading, substitution, differentiation.

A term is one of ``("q", "3/4")``, ``("v", name)``, ``("at", family, (index, …))``, ``("+", a, …)``,
``("*", a, …)``, ``("^", base, integer)``, ``("exp", a)``, ``("log", a)`` and
``("sum", bound, lower, upper, body)`` (both limits included).
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

Term = tuple[Any, ...]

ZERO: Term = ("q", "0")
ONE: Term = ("q", "1")


class IllFormed(Exception):
    """A certificate holds something that is not a term, or a rule met a term it cannot treat."""


def read(value: Any) -> Term:
    """A term from JSON (lists for tuples); rejects whatever is not one."""
    if not isinstance(value, list | tuple) or not value:
        raise IllFormed(f"not a term: {value!r}")
    head, *rest = value
    if head == "q" and len(rest) == 1:
        return ("q", str(Fraction(rest[0])))
    if head == "v" and len(rest) == 1 and isinstance(rest[0], str):
        return ("v", rest[0])
    if head == "at" and len(rest) == 2 and isinstance(rest[0], str):
        return ("at", rest[0], tuple(read(index) for index in rest[1]))
    if head in ("+", "*"):
        return (head, *(read(item) for item in rest))
    if head == "^" and len(rest) == 2 and isinstance(rest[1], int):
        return ("^", read(rest[0]), rest[1])
    if head in ("exp", "log") and len(rest) == 1:
        return (head, read(rest[0]))
    if head == "sum" and len(rest) == 4 and isinstance(rest[0], str):
        return ("sum", rest[0], *(read(item) for item in rest[1:]))
    raise IllFormed(f"not a term: {value!r}")


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


def derivative(term: Term, variable: Term, distinct: frozenset[frozenset[str]]) -> Term:
    """Derivative in a variable ``("v", x)`` or in one member ``("at", a, (k,))`` of a family.

    Members with another index are independent of ``a[k]``: the pair of index names must be listed in
    ``distinct``. A sum over the family's index picks the one summand with that index (which must lie in
    the range: a side condition of the statement).
    """
    head = term[0]
    if term == variable:
        return ONE
    if head == "at":
        return _independent(term, variable, distinct)
    if head in ("q", "v"):
        return ZERO
    if head == "+":
        return plus(*(derivative(item, variable, distinct) for item in term[1:]))
    if head == "*":
        return plus(
            *(
                times(*term[1:place], derivative(item, variable, distinct), *term[place + 1 :])
                for place, item in enumerate(term[1:], start=1)
            )
        )
    if head == "sum":
        return _derivative_of_sum(term, variable, distinct)
    inner = derivative(term[1], variable, distinct)
    if head == "^":
        return times(("q", str(term[2])), ("^", term[1], term[2] - 1), inner)
    return times(term, inner) if head == "exp" else times(inner, ("^", term[1], -1))


def _independent(term: Term, variable: Term, distinct: frozenset[frozenset[str]]) -> Term:
    if variable[0] == "at" and term[1] == variable[1]:
        names = [index[1] for index in (*term[2], *variable[2]) if index[0] == "v"]
        if len(names) != 2 or frozenset(names) not in distinct:
            raise IllFormed(f"nothing says that {term} and {variable} are different members")
    return ZERO


def _derivative_of_sum(term: Term, variable: Term, distinct: frozenset[frozenset[str]]) -> Term:
    _, bound, lower, upper, body = term
    if bound in free_variables(variable):
        raise IllFormed(f"the sum binds {bound}, which the variable of differentiation uses")
    if variable[0] == "v":
        return ("sum", bound, lower, upper, derivative(body, variable, distinct))
    family, (index,) = variable[1], variable[2]
    apart = distinct | {frozenset({bound, index[1]})}
    direct = ("sum", bound, lower, upper, derivative(body, variable, apart))
    member: Term = ("at", family, (("v", bound),))
    picked = substitute(derivative(body, member, apart), bound, index)
    return plus(direct, picked)

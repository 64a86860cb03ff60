"""SMT-LIB text over the reals as branches of polynomial literals: the part of the language that is needed.

Commands: set-logic, declare-const, define-fun, assert, check-sat. Formulas: and, or, not, = (of numbers or of
formulas), <=, <, >=, >. Terms: +, −, *, division by a number, ite, decimals, names.
"""

import itertools
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from verify.checkers.polynomials import Polynomial, add, atom_polynomial, constant, multiply
from verify.checkers.terms import IllFormed

Branches = list[list["Literal"]]
_TOKEN = re.compile(r";[^\n]*|[()]|[^\s();]+")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
RELATIONS = ("=", "<=", "<", ">=", ">")
OPPOSITE = {"<=": ">", "<": ">=", ">=": "<", ">": "<=", "=": "!=", "!=": "="}


@dataclass(frozen=True)
class Literal:
    """``polynomial`` stands in ``relation`` (``=``, ``>=``, ``>`` or ``!=``) to 0."""

    polynomial: Polynomial
    relation: str


def branches(text: str, most: int) -> Branches:
    """The disjunctive normal form of all assertions together.

    Raises:
        IllFormed: the text uses more of the language, or there are more branches than ``most``.
    """
    definitions: dict[str, tuple[list[str], Any]] = {}
    found: Branches = [[]]
    for command in _commands(text):
        if command[0] == "assert":
            (formula,) = command[1:]
            found = _all([found, _normal(_expanded(formula, definitions, {}), True)])
            if len(found) > most:
                raise IllFormed(f"more than {most} branches")
        elif command[0] == "define-fun":
            _, name, parameters, _, body = command
            definitions[name] = ([parameter for parameter, _ in parameters], body)
        elif command[0] not in ("set-logic", "declare-const", "check-sat"):
            raise IllFormed(f"the command {command[0]!r} is not read here")
    return found


def polynomial(text: str) -> Polynomial:
    """A term of its own, such as ``"(* 2.0 x)"``."""
    (term,) = _commands(text)
    return _polynomial(term)


def _commands(text: str) -> list[Any]:
    """Nested lists of words."""
    stack: list[list[Any]] = [[]]
    for token in _TOKEN.findall(text):
        if token == "(":
            stack.append([])
        elif token == ")":
            if len(stack) < 2:
                raise IllFormed("a bracket is closed that was not opened")
            stack[-2].append(stack.pop())
        elif not token.startswith(";"):
            stack[-1].append(token)
    if len(stack) != 1:
        raise IllFormed("a bracket is not closed")
    return stack[0]


def _expanded(item: Any, definitions: dict[str, tuple[list[str], Any]], bound: dict[str, Any]) -> Any:
    """The item with defined names written out."""
    if isinstance(item, str):
        if item in bound:
            return bound[item]
        return _expanded(definitions[item][1], definitions, {}) if item in definitions else item
    head, *rest = item
    arguments = [_expanded(part, definitions, bound) for part in rest]
    if head not in definitions:
        return [head, *arguments]
    parameters, body = definitions[head]
    return _expanded(body, definitions, dict(zip(parameters, arguments, strict=True)))


def _normal(item: Any, positive: bool) -> Branches:
    """A formula, or its negation, as branches."""
    head, *rest = item
    if head == "not":
        return _normal(rest[0], not positive)
    if head in ("and", "or"):
        parts = [_normal(part, positive) for part in rest]
        return _all(parts) if (head == "and") == positive else [branch for part in parts for branch in part]
    if head == "=" and isinstance(rest[0], list) and rest[0][0] in (*RELATIONS, "and", "or", "not"):
        first, second = rest
        same = [(first, True, second, positive), (first, False, second, not positive)]
        return [branch for one, p, two, q in same for branch in _all([_normal(one, p), _normal(two, q)])]
    if head not in RELATIONS or len(rest) < 2:
        raise IllFormed(f"{head!r} is no formula that is read here")
    if choice := _choice(item):
        condition, chosen, other = choice
        then = _all([_normal(condition, True), _normal(chosen, positive)])
        return then + _all([_normal(condition, False), _normal(other, positive)])
    relation = head if positive else OPPOSITE[head]
    pairs = [_literal(relation, left, right) for left, right in itertools.pairwise(rest)]
    return [pairs] if positive else [[pair] for pair in pairs]


def _choice(item: Any) -> tuple[Any, Any, Any] | None:
    """The first (ite c x y) inside: its condition, and the item with x and with y in its place."""
    if isinstance(item, str):
        return None
    if item[0] == "ite":
        condition, chosen, other = item[1:]
        return condition, chosen, other
    for place, part in enumerate(item):
        if found := _choice(part):
            condition, *pair = found
            chosen, other = ([*item[:place], new, *item[place + 1 :]] for new in pair)
            return condition, chosen, other
    return None


def _all(parts: list[Branches]) -> Branches:
    """The conjunction: one branch of each part, joined."""
    return [[literal for branch in choice for literal in branch] for choice in itertools.product(*parts)]


def _literal(relation: str, left: Any, right: Any) -> Literal:
    if relation in ("<=", "<"):
        relation, left, right = (">=" if relation == "<=" else ">"), right, left
    return Literal(add(_polynomial(left), _minus(_polynomial(right))), relation)


def _polynomial(item: Any) -> Polynomial:
    if isinstance(item, str):
        return constant(Fraction(item)) if _NUMBER.fullmatch(item) else atom_polynomial(f"<{item}>")
    head, *rest = item
    values = [_polynomial(part) for part in rest]
    if head == "-" and len(values) == 1:
        return _minus(values[0])
    if head == "/" and len(values) == 2 and set(values[1]) == {()}:
        return multiply(values[0], constant(1 / values[1][()]))
    if head not in ("+", "-", "*") or not values:
        raise IllFormed(f"{head!r} is no term that is read here")
    total, *others = values
    for value in others:
        total = multiply(total, value) if head == "*" else add(total, value if head == "+" else _minus(value))
    return total


def _minus(value: Polynomial) -> Polynomial:
    return multiply(constant(Fraction(-1)), value)

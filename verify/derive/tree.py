"""SymPy expressions as plain nested lists (the form certificates keep) and back."""

from fractions import Fraction
from typing import Any

import sympy
from sympy import Expr, Indexed, IndexedBase, Sum, Symbol, exp, log

from verify.model.errors import RequestError

Tree = list[Any]


def tree(expression: Expr | int) -> Tree:
    """Nested lists for an expression: rationals, symbols, families ``a[j]``, ``+ * ^`` (integer powers),
    ``exp``, ``log`` and finite sums; see ``verify.checkers.terms`` for the grammar.

    Raises:
        RequestError: the expression uses something else.
    """
    given = sympy.sympify(expression)
    if given.is_Rational:
        return ["q", str(Fraction(int(given.p), int(given.q)))]
    if isinstance(given, Symbol):
        return ["v", given.name]
    if isinstance(given, Indexed):
        return ["at", str(given.base.label), [tree(index) for index in given.indices]]
    if given.is_Add or given.is_Mul:
        return ["+" if given.is_Add else "*", *(tree(item) for item in given.args)]
    if isinstance(given, exp | log):
        return ["exp" if isinstance(given, exp) else "log", tree(given.args[0])]
    if given.is_Pow and given.exp.is_Integer:
        return ["^", tree(given.base), int(given.exp)]
    if isinstance(given, Sum):
        body: Tree = tree(given.function)
        for bound, lower, upper in given.limits:
            body = ["sum", bound.name, tree(lower), tree(upper), body]
        return body
    raise RequestError(f"the term language has no place for {given.func.__name__} in {given}")


def expression(value: Tree) -> Expr:
    """The SymPy expression of nested lists; the inverse of :func:`tree` up to the order of operands."""
    head, *rest = value
    if head == "q":
        return sympy.Rational(rest[0])
    if head == "v":
        return Symbol(rest[0])
    if head == "at":
        return IndexedBase(rest[0])[tuple(expression(index) for index in rest[1])]
    if head == "+":
        return sympy.Add(*(expression(item) for item in rest))
    if head == "*":
        return sympy.Mul(*(expression(item) for item in rest))
    if head == "^":
        return expression(rest[0]) ** rest[1]
    if head in ("exp", "log"):
        return (exp if head == "exp" else log)(expression(rest[0]))
    bound, lower, upper, body = rest
    return Sum(expression(body), (Symbol(bound), expression(lower), expression(upper)))

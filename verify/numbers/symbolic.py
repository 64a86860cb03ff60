"""Symbolic expressions (SymPy ``Expr`` and ``ImmutableMatrix``), never simplified on the way."""

from collections.abc import Sequence

import sympy

from verify.model.errors import RequestError
from verify.numbers.convert import Number, to_fraction


class Symbolic:
    """Expressions as SymPy builds them; `equal` decides equality of rational functions."""

    name = "symbolic"

    def number(self, value: Number | sympy.Expr) -> sympy.Expr:
        if isinstance(value, sympy.Expr):
            return value
        fraction = to_fraction(value)
        return sympy.Rational(fraction.numerator, fraction.denominator)

    def zeros(self, m: int, n: int) -> sympy.ImmutableMatrix:
        return sympy.ImmutableMatrix.zeros(m, n)

    def eye(self, n: int) -> sympy.ImmutableMatrix:
        return sympy.ImmutableMatrix.eye(n)

    def matrix(self, rows: Sequence[Sequence[Number | sympy.Expr]]) -> sympy.ImmutableMatrix:
        return sympy.ImmutableMatrix([[self.number(x) for x in row] for row in rows])

    def shape(self, a: sympy.ImmutableMatrix) -> tuple[int, int]:
        return int(a.rows), int(a.cols)

    def entry(self, a: sympy.ImmutableMatrix, i: int, j: int) -> sympy.Expr:
        return a[i, j]

    def to_lists(self, a: sympy.ImmutableMatrix) -> list[list[sympy.Expr]]:
        lists: list[list[sympy.Expr]] = a.tolist()
        return lists

    def row_vectors(self, a: sympy.ImmutableMatrix) -> list[sympy.ImmutableMatrix]:
        return [a.row(i).T for i in range(a.rows)]

    def stack_rows(self, vectors: Sequence[sympy.ImmutableMatrix]) -> sympy.ImmutableMatrix:
        return sympy.ImmutableMatrix.vstack(*(vector.T for vector in vectors))

    def add(self, a: sympy.ImmutableMatrix, b: sympy.ImmutableMatrix) -> sympy.ImmutableMatrix:
        return a + b

    def sub(self, a: sympy.ImmutableMatrix, b: sympy.ImmutableMatrix) -> sympy.ImmutableMatrix:
        return a - b

    def matmul(self, a: sympy.ImmutableMatrix, b: sympy.ImmutableMatrix) -> sympy.ImmutableMatrix:
        return a * b

    def transpose(self, a: sympy.ImmutableMatrix) -> sympy.ImmutableMatrix:
        return a.T

    def scale(self, s: sympy.Expr, a: sympy.ImmutableMatrix) -> sympy.ImmutableMatrix:
        return s * a

    def scale_rows(self, d: sympy.ImmutableMatrix, a: sympy.ImmutableMatrix) -> sympy.ImmutableMatrix:
        return sympy.ImmutableMatrix(a.rows, a.cols, lambda i, j: d[i, 0] * a[i, j])

    def outer(self, u: sympy.ImmutableMatrix, w: sympy.ImmutableMatrix) -> sympy.ImmutableMatrix:
        return u * w.T

    def exp(self, x: sympy.Expr) -> sympy.Expr:
        return sympy.exp(x)

    def exp_entries(self, a: sympy.ImmutableMatrix) -> sympy.ImmutableMatrix:
        return a.applyfunc(sympy.exp)

    def log(self, x: sympy.Expr) -> sympy.Expr:
        return sympy.log(x)

    def sqrt(self, x: sympy.Expr) -> sympy.Expr:
        return sympy.sqrt(x)

    def reciprocal(self, x: sympy.Expr) -> sympy.Expr:
        if x == 0:
            raise RequestError("1/0 is not a number; the divisor must not be 0")
        return 1 / x

    def shift(self, column: sympy.ImmutableMatrix) -> sympy.Expr:
        """0: a symbolic exponential does not overflow."""
        return sympy.Integer(0)

    def solve(self, a: sympy.ImmutableMatrix, b: sympy.ImmutableMatrix) -> sympy.ImmutableMatrix:
        """Cramer's rule through the adjugate, so no pivot is chosen on an unsure zero test."""
        determinant = a.det(method="berkowitz")
        if equal(determinant, sympy.Integer(0)):
            raise RequestError("the matrix is singular, so the system has no unique solution")
        return a.adjugate(method="berkowitz") * b / determinant


def equal(x: sympy.Expr, y: sympy.Expr) -> bool | None:
    """Whether x = y where both are defined: True or False if decided, None if not.

    Decides every pair of rational functions of symbols over the rationals, by bringing the difference to
    lowest terms. Anything else that does not cancel (roots, exponentials) is undecided rather than unequal,
    and floats, being approximations, decide nothing.
    """
    if x.has(sympy.Float) or y.has(sympy.Float):
        return None
    difference = sympy.cancel(sympy.together(x - y))
    if difference == 0:
        return True
    rational = all(isinstance(atom, sympy.Rational | sympy.Symbol) for atom in difference.atoms())
    rational = rational and not difference.atoms(sympy.Function)
    rational = rational and all(power.exp.is_Integer for power in difference.atoms(sympy.Pow))
    return False if rational else None

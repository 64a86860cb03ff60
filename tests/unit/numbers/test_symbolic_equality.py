"""Symbolic equality is decided for rational functions and left open elsewhere."""

import pytest
import sympy

from verify.numbers.symbolic import Symbolic, equal

x, y = sympy.symbols("x y")


@pytest.mark.parametrize(
    ("left", "right", "decision"),
    [
        ((x + y) ** 2, x**2 + 2 * x * y + y**2, True),
        (1 / (x - 1) - 1 / (x + 1), 2 / (x**2 - 1), True),
        ((x + y) ** 2, x**2 + y**2, False),
        (x, y, False),
        (sympy.Rational(1, 3), sympy.Rational(1, 2), False),
        (sympy.exp(x), sympy.exp(x), True),
        (sympy.exp(x), 1 + x, None),
        (sympy.sqrt(x**2), x, None),
        (sympy.sin(x) ** 2 + sympy.cos(x) ** 2, sympy.Integer(1), None),
        (sympy.sqrt(5 + 2 * sympy.sqrt(6)), sympy.sqrt(2) + sympy.sqrt(3), None),
        (sympy.Float(0.1), sympy.Rational(1, 10), None),
    ],
)
def test_equality_is_never_guessed(left, right, decision):
    assert equal(left, right) is decision


def test_solve_with_symbolic_pivots():
    numbers = Symbolic()
    a = numbers.matrix([[x, y], [y, x]])
    solution = numbers.solve(a, numbers.eye(2))
    product = numbers.matmul(a, solution)
    assert all(equal(product[i, j], sympy.Integer(int(i == j))) for i in range(2) for j in range(2))

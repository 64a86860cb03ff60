"""Derivatives of every operation: exact ones against difference quotients, enclosed ones against exact."""

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest

from verify.numbers.ball import Ball, contains
from verify.numbers.dual import Dual, Duals
from verify.numbers.exact import Exact
from verify.numbers.float64 import Float64

# Each takes a number system and a 2×2 matrix A (invertible) and gives a matrix.
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda n, a: n.add(a, n.transpose(a)),
    "sub": lambda n, a: n.sub(n.transpose(a), a),
    "matmul": lambda n, a: n.matmul(a, n.matmul(a, a)),
    "scale": lambda n, a: n.scale(n.entry(a, 0, 1), a),
    "scale_rows": lambda n, a: n.scale_rows(n.row_vectors(a)[0], a),
    "outer": lambda n, a: n.outer(n.row_vectors(a)[0], n.row_vectors(a)[1]),
    "stack_rows": lambda n, a: n.stack_rows(n.row_vectors(a)[::-1]),
    "matrix": lambda n, a: n.matrix([[n.entry(a, 1, 0), 3], [Fraction(1, 2), n.entry(a, 0, 0)]]),
    "to_lists": lambda n, a: n.matrix(n.to_lists(a)[::-1]),
    "solve": lambda n, a: n.solve(a, n.matmul(a, n.transpose(a))),
    "reciprocal": lambda n, a: n.matrix([[n.reciprocal(n.entry(a, 0, 0))]]),
    "constants": lambda n, a: n.add(n.matmul(n.eye(2), a), n.zeros(2, 2)),
}
TRANSCENDENTAL: dict[str, Callable[[Any, Any], Any]] = {
    "exp": lambda n, a: n.matrix([[n.exp(n.entry(a, 0, 0))]]),
    "exp_entries": lambda n, a: n.exp_entries(a),
    "log": lambda n, a: n.matrix([[n.log(n.entry(a, 0, 0))]]),
    "sqrt": lambda n, a: n.matrix([[n.sqrt(n.entry(a, 0, 0))]]),
}
PLACES = [(0, 0), (0, 1), (1, 0), (1, 1)]


def variables(base: Any, rows: list[list[Any]]) -> Dual[Any]:
    """The matrix with all its entries as variables."""
    units = {
        place: base.matrix([[int((i, j) == at) for j in range(2)] for i in range(2)])
        for place, at in enumerate(PLACES)
    }
    return Dual(base.matrix(rows), units)


def drawn(seed: int) -> list[list[Fraction]]:
    rng = random.Random(seed)
    rows = [[Fraction(rng.randint(1, 9), rng.randint(1, 9)) for _ in range(2)] for _ in range(2)]
    rows[0][0] += 20
    rows[1][1] += 20
    return rows


def slope(duals: Duals[Any, Any], result: Dual[Any], place: int) -> Any:
    return result.slopes.get(place, duals.zeros(*duals.shape(result)).value)


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("seed", range(3))
def test_rational_derivatives_are_limits_of_difference_quotients(name: str, seed: int) -> None:
    """The quotient with step h is off by at most a constant times h, here 10⁻¹² of the size."""
    numbers, rows, step = Exact(), drawn(seed), Fraction(1, 10**20)
    duals = Duals(numbers)
    result = OPERATIONS[name](duals, variables(numbers, rows))
    assert result.value == OPERATIONS[name](numbers, numbers.matrix(rows))
    for place, (i, j) in enumerate(PLACES):
        moved = [list(row) for row in rows]
        moved[i][j] += step
        there = OPERATIONS[name](numbers, numbers.matrix(moved))
        quotient = numbers.scale(numbers.number(1 / step), numbers.sub(there, result.value))
        off = numbers.sub(quotient, slope(duals, result, place)).entries()
        assert max(map(abs, off)) < flint.fmpq(1, 10**12)


@pytest.mark.parametrize("name", [*OPERATIONS, *TRANSCENDENTAL])
def test_floats_agree_with_difference_quotients(name: str) -> None:
    numbers, rows, step = Float64(), drawn(7), 2.0**-26
    operation = {**OPERATIONS, **TRANSCENDENTAL}[name]
    duals = Duals(numbers)
    small = [[float(x) / 20 for x in row] for row in rows]
    result = operation(duals, variables(numbers, small))
    for place, (i, j) in enumerate(PLACES):
        sides = []
        for sign in (1, -1):
            moved = [list(row) for row in small]
            moved[i][j] += sign * step
            sides.append(operation(numbers, numbers.matrix(moved)))
        quotient = (sides[0] - sides[1]) / (2 * step)
        np.testing.assert_allclose(quotient, slope(duals, result, place), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", OPERATIONS)
def test_balls_enclose_the_exact_derivative(name: str) -> None:
    exact, balls, rows = Exact(), Ball(128), drawn(11)
    right = OPERATIONS[name](Duals(exact), variables(exact, rows))
    found = OPERATIONS[name](Duals(balls), variables(balls, rows))
    for place in range(4):
        assert contains(slope(Duals(balls), found, place), slope(Duals(exact), right, place))


def test_a_shift_is_a_constant_and_numbers_pass_through() -> None:
    duals = Duals(Float64())
    column = Dual(np.array([[1.0], [3.0]]), {0: np.array([[1.0], [1.0]])})
    assert duals.shift(column) == Dual(np.asarray(3.0))
    scalar = Dual(np.asarray(2.0), {4: np.asarray(1.0)})
    assert duals.number(scalar) is scalar
    assert duals.number("1/4").value == 0.25

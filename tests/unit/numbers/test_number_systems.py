"""Every linear operation of every number system, fuzzed against plain Fraction arithmetic.

Exact and symbolic results must equal the reference, balls contain it, and floating point stays within gamma_n
= n·u/(1 − n·u) times the same expression in absolute values, n the roundings on its longest path (Higham,
Accuracy and Stability of Numerical Algorithms, section 3.1).
"""

import random
from fractions import Fraction

import flint
import numpy as np
import pytest

import verify.numbers
from verify.model.errors import RequestError
from verify.numbers.ball import contains_rational
from verify.numbers.multiprecision import to_rational
from verify.numbers.triangular import solve_unit_lower

NAMES = ["exact", "ball", "symbolic", "float64", "multiprecision"]
BITS = {"ball": 128, "float64": 53, "multiprecision": 128}
Rows = list[list[Fraction]]


@pytest.fixture(params=NAMES)
def numbers(request):
    return verify.numbers.system(request.param)


def random_rows(rng, m, n) -> Rows:
    def draw():
        return Fraction(rng.randint(-999, 999), rng.randint(1, 999)) * Fraction(2) ** rng.randint(-40, 40)

    return [[draw() for _ in range(n)] for _ in range(m)]


def absolute(rows: Rows) -> Rows:
    return [[abs(x) for x in row] for row in rows]


def product(a: Rows, b: Rows) -> Rows:
    return [
        [sum((x * y for x, y in zip(row, col, strict=True)), Fraction(0)) for col in zip(*b, strict=True)]
        for row in a
    ]


def agree(numbers, x, expected: Fraction, magnitude: Fraction, roundings: int) -> bool:
    """Whether the scalar x is right, as strictly as its system allows."""
    if numbers.name in ("exact", "symbolic"):
        return bool(x == numbers.number(expected))
    if numbers.name == "ball":
        rational = flint.fmpq(expected.numerator, expected.denominator)
        return contains_rational(x, rational)
    error = n_units(roundings, BITS[numbers.name]) * magnitude
    return abs(as_fraction(x) - expected) <= error


def as_fraction(x) -> Fraction:
    return Fraction(float(x)) if isinstance(x, np.ndarray) else to_rational(x)


def n_units(n: int, bits: int) -> Fraction:
    return Fraction(n, 2**bits) / (1 - Fraction(n, 2**bits))


def assert_agree(numbers, result, expected: Rows, magnitude: Rows, roundings: int) -> None:
    assert numbers.shape(result) == (len(expected), len(expected[0]))
    entries = numbers.to_lists(result)
    for i, row in enumerate(expected):
        for j, value in enumerate(row):
            assert agree(numbers, entries[i][j], value, magnitude[i][j], roundings), (i, j)


@pytest.mark.parametrize("seed", range(5))
def test_entrywise_operations(numbers, seed):
    rng = random.Random(seed)
    m, n = rng.randint(1, 5), rng.randint(1, 5)
    a, b = random_rows(rng, m, n), random_rows(rng, m, n)
    d, s = random_rows(rng, m, 1), random_rows(rng, 1, 1)[0][0]
    a_, b_, d_ = numbers.matrix(a), numbers.matrix(b), numbers.matrix(d)
    indices = [[(i, j) for j in range(n)] for i in range(m)]

    def rows(f):
        return [[f(i, j) for i, j in row] for row in indices]

    assert_agree(numbers, a_, a, absolute(a), 1)
    magnitude = rows(lambda i, j: abs(a[i][j]) + abs(b[i][j]))
    assert_agree(numbers, numbers.add(a_, b_), rows(lambda i, j: a[i][j] + b[i][j]), magnitude, 2)
    assert_agree(numbers, numbers.sub(a_, b_), rows(lambda i, j: a[i][j] - b[i][j]), magnitude, 2)
    scaled = rows(lambda i, j: s * a[i][j])
    assert_agree(numbers, numbers.scale(numbers.number(s), a_), scaled, absolute(scaled), 3)
    scaled = rows(lambda i, j: d[i][0] * a[i][j])
    assert_agree(numbers, numbers.scale_rows(d_, a_), scaled, absolute(scaled), 3)


@pytest.mark.parametrize("seed", range(5))
def test_products(numbers, seed):
    rng = random.Random(seed)
    m, k, n = (rng.randint(1, 6) for _ in range(3))
    a, b = random_rows(rng, m, k), random_rows(rng, k, n)
    result = numbers.matmul(numbers.matrix(a), numbers.matrix(b))
    assert_agree(numbers, result, product(a, b), product(absolute(a), absolute(b)), k + 2)
    u, w = random_rows(rng, m, 1), random_rows(rng, n, 1)
    outer = [[x[0] * y[0] for y in w] for x in u]
    assert_agree(numbers, numbers.outer(numbers.matrix(u), numbers.matrix(w)), outer, absolute(outer), 3)


def test_structure(numbers):
    rows = [[Fraction(1), Fraction(2), Fraction(3)], [Fraction(4), Fraction(5), Fraction(6)]]
    a = numbers.matrix(rows)
    zero = [[Fraction(0)] * 3] * 2
    assert numbers.shape(a) == (2, 3)
    assert agree(numbers, numbers.entry(a, 1, 0), Fraction(4), Fraction(0), 0)
    assert_agree(
        numbers, numbers.transpose(a), [list(col) for col in zip(*rows, strict=True)], [[0] * 2] * 3, 0
    )
    assert_agree(numbers, numbers.zeros(2, 3), zero, zero, 0)
    assert_agree(numbers, numbers.eye(2), [[Fraction(1), Fraction(0)], [Fraction(0), Fraction(1)]], zero, 0)
    vectors = numbers.row_vectors(a)
    assert [numbers.shape(v) for v in vectors] == [(3, 1), (3, 1)]
    assert_agree(numbers, vectors[1], [[Fraction(x)] for x in (4, 5, 6)], [[0]] * 3, 0)
    assert_agree(numbers, numbers.stack_rows(vectors), rows, zero, 0)


def test_solve_inverts_the_product(numbers):
    """The residual of the exact system is exactly 0; that of the others follows from a condition of 1."""
    a = [[Fraction(0), Fraction(2)], [Fraction(4), Fraction(0)]]
    b = [[Fraction(1), Fraction(6)], [Fraction(3), Fraction(8)]]
    expected = [[Fraction(3, 4), Fraction(2)], [Fraction(1, 2), Fraction(3)]]
    assert_agree(numbers, numbers.solve(numbers.matrix(a), numbers.matrix(b)), expected, [[0] * 2] * 2, 0)
    with pytest.raises(RequestError, match=r"singular|invertible"):
        numbers.solve(numbers.matrix([[1, 2], [2, 4]]), numbers.matrix([[1], [1]]))


def test_solve_unit_lower_reads_only_below_the_diagonal(numbers):
    lower = numbers.matrix([[9, 9, 9], [2, 9, 9], [3, 4, 9]])
    right = numbers.matrix([[1, 2], [3, 4], [5, 6]])
    expected = [[Fraction(1), Fraction(2)], [Fraction(1), Fraction(0)], [Fraction(-2), Fraction(0)]]
    assert_agree(numbers, solve_unit_lower(numbers, lower, right), expected, [[0] * 2] * 3, 0)


def test_number_reads_exactly(numbers):
    for value, exact in [
        (3, 3),
        ("1/3", Fraction(1, 3)),
        ("0.1", Fraction(1, 10)),
        (0.1, Fraction(0.1)),
        (np.float32(0.1), Fraction(float(np.float32(0.1)))),
        (2**200 + 1, 2**200 + 1),
    ]:
        exact = Fraction(exact)
        assert agree(numbers, numbers.number(value), exact, abs(exact), 1), value
    one = numbers.number(1)
    assert numbers.number(one) == one


@pytest.mark.parametrize("value", ["one", "1/0", float("nan"), float("inf"), None, [1]])
def test_number_refuses_what_is_no_number(numbers, value):
    with pytest.raises(RequestError, match="number"):
        numbers.number(value)


def test_reciprocal(numbers):
    third = Fraction(1, 3)
    assert agree(numbers, numbers.reciprocal(numbers.number(3)), third, third, 1)
    with pytest.raises(RequestError, match=r"1/"):
        numbers.reciprocal(numbers.number(0))


def test_unknown_system_and_needless_precision_are_refused():
    with pytest.raises(RequestError, match=r"unknown number system 'bal'; did you mean ball"):
        verify.numbers.system("bal")
    with pytest.raises(RequestError, match="exact has no precision"):
        verify.numbers.system("exact", precision=64)
    assert verify.numbers.system("ball", precision=64).precision == 64

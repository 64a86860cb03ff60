"""Multiprecision floating point (mpmath ``mpf`` and ``matrix``) at a stated number of bits, to nearest.

Each system owns an mpmath context, so the global ``mpmath.mp`` is neither read nor changed. The arithmetic
operations are correctly rounded; mpmath states no error bound for `exp` and `log`. No comparison is offered,
as for `float64`.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import mpmath

from verify.model.errors import RequestError
from verify.numbers.convert import Number, to_fraction

Scalar = Any
"""``mpf`` of the system's own context (mpmath makes the class at run time, so it has no static name)."""
Matrix = Any
"""``matrix`` of the system's own context."""


class Multiprecision:
    """Floating point with `precision` bits and an unbounded exponent."""

    name = "multiprecision"

    def __init__(self, precision: int = 128) -> None:
        if precision < 2:
            raise RequestError(f"precision {precision} is too small; give at least 2 bits")
        self.precision = precision
        self._mp = mpmath.MPContext()
        self._mp.prec = precision

    def number(self, value: Number | Scalar) -> Scalar:
        if isinstance(value, self._mp.mpf):
            return value
        fraction = to_fraction(value)
        return self._mp.fraction(fraction.numerator, fraction.denominator) + 0

    def zeros(self, m: int, n: int) -> Matrix:
        return self._mp.zeros(m, n)

    def eye(self, n: int) -> Matrix:
        return self._mp.eye(n)

    def matrix(self, rows: Sequence[Sequence[Number | Scalar]]) -> Matrix:
        return self._mp.matrix([[self.number(x) for x in row] for row in rows])

    def shape(self, a: Matrix) -> tuple[int, int]:
        return int(a.rows), int(a.cols)

    def entry(self, a: Matrix, i: int, j: int) -> Scalar:
        return a[i, j]

    def to_lists(self, a: Matrix) -> list[list[Scalar]]:
        lists: list[list[Scalar]] = a.tolist()
        return lists

    def row_vectors(self, a: Matrix) -> list[Matrix]:
        return [self._mp.matrix([[x] for x in row]) for row in a.tolist()]

    def stack_rows(self, vectors: Sequence[Matrix]) -> Matrix:
        return self._mp.matrix([list(vector) for vector in vectors])

    def add(self, a: Matrix, b: Matrix) -> Matrix:
        return a + b

    def sub(self, a: Matrix, b: Matrix) -> Matrix:
        return a - b

    def matmul(self, a: Matrix, b: Matrix) -> Matrix:
        return a * b

    def transpose(self, a: Matrix) -> Matrix:
        return a.T

    def scale(self, s: Scalar, a: Matrix) -> Matrix:
        return a * s

    def scale_rows(self, d: Matrix, a: Matrix) -> Matrix:
        return self._mp.matrix([[d[i, 0] * x for x in row] for i, row in enumerate(a.tolist())])

    def outer(self, u: Matrix, w: Matrix) -> Matrix:
        return u * w.T

    def exp(self, x: Scalar) -> Scalar:
        return self._mp.exp(x)

    def exp_entries(self, a: Matrix) -> Matrix:
        return a.apply(self._mp.exp)

    def log(self, x: Scalar) -> Scalar:
        if not x > 0:
            raise RequestError(f"log of {x}: give a positive number")
        return self._mp.log(x)

    def sqrt(self, x: Scalar) -> Scalar:
        if not x >= 0:
            raise RequestError(f"sqrt of {x}: give a number of at least 0")
        return self._mp.sqrt(x)

    def reciprocal(self, x: Scalar) -> Scalar:
        if x == 0:
            raise RequestError("1/0 is not a number; the divisor must not be 0")
        return 1 / x

    def shift(self, column: Matrix) -> Scalar:
        """0: the exponent does not overflow."""
        return self._mp.zero

    def solve(self, a: Matrix, b: Matrix) -> Matrix:
        try:
            columns = [self._mp.lu_solve(a, b[:, j]) for j in range(b.cols)]
        except ZeroDivisionError:
            raise RequestError(f"the matrix is singular at {self.precision} bits") from None
        return self._mp.matrix([[column[i] for column in columns] for i in range(a.rows)])


def to_rational(x: Scalar) -> Fraction:
    """The rational number that a finite mpf is, exactly."""
    sign, mantissa, exponent, _ = x._mpf_
    if mantissa == 0 and exponent != 0:
        raise RequestError(f"{x} is not a finite number; infinities and NaN have no exact value")
    magnitude = int(mantissa) * Fraction(2) ** int(exponent)
    return -magnitude if sign else magnitude

"""Exact rationals (python-flint ``fmpq`` and ``fmpq_mat``): every result is the mathematical one."""

import operator
from collections.abc import Sequence

from flint import fmpq, fmpq_mat, fmpz

from verify.model.errors import RequestError
from verify.numbers.convert import Number, to_fraction


class Exact:
    """The field of rationals. `==` on its scalars and matrices is mathematical equality, `<` the order."""

    name = "exact"

    def number(self, value: Number | fmpq) -> fmpq:
        if isinstance(value, fmpq):
            return value
        fraction = to_fraction(value)
        return fmpq(fraction.numerator, fraction.denominator)

    def zeros(self, m: int, n: int) -> fmpq_mat:
        return fmpq_mat(m, n)

    def eye(self, n: int) -> fmpq_mat:
        return fmpq_mat(n, n, [int(i == j) for i in range(n) for j in range(n)])

    def matrix(self, rows: Sequence[Sequence[Number | fmpq]]) -> fmpq_mat:
        return fmpq_mat([[self.number(x) for x in row] for row in rows])

    def shape(self, a: fmpq_mat) -> tuple[int, int]:
        return a.nrows(), a.ncols()

    def entry(self, a: fmpq_mat, i: int, j: int) -> fmpq:
        return a[i, j]

    def to_lists(self, a: fmpq_mat) -> list[list[fmpq]]:
        return a.tolist()

    def row_vectors(self, a: fmpq_mat) -> list[fmpq_mat]:
        return [fmpq_mat(a.ncols(), 1, row) for row in a.tolist()]

    def stack_rows(self, vectors: Sequence[fmpq_mat]) -> fmpq_mat:
        return fmpq_mat([vector.entries() for vector in vectors])

    def add(self, a: fmpq_mat, b: fmpq_mat) -> fmpq_mat:
        return a + b

    def sub(self, a: fmpq_mat, b: fmpq_mat) -> fmpq_mat:
        return a - b

    def matmul(self, a: fmpq_mat, b: fmpq_mat) -> fmpq_mat:
        return a * b

    def transpose(self, a: fmpq_mat) -> fmpq_mat:
        return a.transpose()

    def scale(self, s: fmpq, a: fmpq_mat) -> fmpq_mat:
        return a * s

    def scale_rows(self, d: fmpq_mat, a: fmpq_mat) -> fmpq_mat:
        factors = [x for x in d.entries() for _ in range(a.ncols())]
        return fmpq_mat(a.nrows(), a.ncols(), list(map(operator.mul, factors, a.entries())))

    def outer(self, u: fmpq_mat, w: fmpq_mat) -> fmpq_mat:
        return u * w.transpose()

    def exp(self, x: fmpq) -> fmpq:
        """e^0 = 1; e^x is irrational for every other rational x (Lindemann)."""
        if x != 0:
            raise RequestError(f"exp({x}) is not rational; use the ball or symbolic number system")
        return fmpq(1)

    def exp_entries(self, a: fmpq_mat) -> fmpq_mat:
        return fmpq_mat(a.nrows(), a.ncols(), [self.exp(x) for x in a.entries()])

    def log(self, x: fmpq) -> fmpq:
        """log 1 = 0; log x is irrational for every other positive rational x (Lindemann)."""
        if x != 1:
            raise RequestError(f"log({x}) is not rational; use the ball or symbolic number system")
        return fmpq(0)

    def sqrt(self, x: fmpq) -> fmpq:
        if x < 0:
            raise RequestError(f"sqrt({x}) is not real; give a number of at least 0")
        root = fmpq(fmpz(x.p).isqrt(), fmpz(x.q).isqrt())
        if root * root != x:
            raise RequestError(f"sqrt({x}) is not rational; use the ball or symbolic number system")
        return root

    def reciprocal(self, x: fmpq) -> fmpq:
        if x == 0:
            raise RequestError("1/0 is not a number; the divisor must not be 0")
        return 1 / x

    def shift(self, column: fmpq_mat) -> fmpq:
        return max(column.entries())

    def solve(self, a: fmpq_mat, b: fmpq_mat) -> fmpq_mat:
        try:
            return a.solve(b)
        except ZeroDivisionError:
            raise RequestError("the matrix is singular, so the system has no unique solution") from None

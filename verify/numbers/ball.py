"""Ball arithmetic (python-flint ``arb`` and ``arb_mat``): every result encloses the mathematical one.

FLINT's precision is one global of the process, not of a thread. Each method sets it for its own duration and
restores it; two threads that overlap may run at each other's precision and restore it in the wrong order.
Enclosures stay valid at any precision, only their radii grow, but use processes rather than threads to
compute in parallel. For the same reason an operator written outside these methods (``x * y`` on two ``arb``)
runs at the global precision. Trap of python-flint 0.9.0: the square of a ball around 0 can be NaN; multiply
it by itself instead.
"""

import math
import operator
from collections.abc import Sequence

from flint import arb, arb_mat, ctx, fmpq, fmpq_mat

from verify.model.errors import RequestError
from verify.numbers.convert import Number, to_fraction


class Ball:
    """Midpoint-radius intervals with midpoints of `precision` bits."""

    name = "ball"

    def __init__(self, precision: int = 128) -> None:
        if precision < 2:
            raise RequestError(f"precision {precision} is too small; give at least 2 bits")
        self.precision = precision

    def number(self, value: Number | arb) -> arb:
        """A ball around `value`; of radius 0 for floats, which are never rounded."""
        if isinstance(value, arb):
            return value
        if isinstance(value, float) and math.isfinite(value):
            return arb(value)
        fraction = to_fraction(value)
        with ctx.workprec(self.precision):
            return arb(fmpq(fraction.numerator, fraction.denominator))

    def zeros(self, m: int, n: int) -> arb_mat:
        return arb_mat(m, n)

    def eye(self, n: int) -> arb_mat:
        return arb_mat(n, n, [int(i == j) for i in range(n) for j in range(n)])

    def matrix(self, rows: Sequence[Sequence[Number | arb]]) -> arb_mat:
        return arb_mat([[self.number(x) for x in row] for row in rows])

    def shape(self, a: arb_mat) -> tuple[int, int]:
        return a.nrows(), a.ncols()

    def entry(self, a: arb_mat, i: int, j: int) -> arb:
        return a[i, j]

    def to_lists(self, a: arb_mat) -> list[list[arb]]:
        return a.tolist()

    def row_vectors(self, a: arb_mat) -> list[arb_mat]:
        return [arb_mat(a.ncols(), 1, row) for row in a.tolist()]

    def stack_rows(self, vectors: Sequence[arb_mat]) -> arb_mat:
        return arb_mat([vector.entries() for vector in vectors])

    def add(self, a: arb_mat, b: arb_mat) -> arb_mat:
        with ctx.workprec(self.precision):
            return a + b

    def sub(self, a: arb_mat, b: arb_mat) -> arb_mat:
        with ctx.workprec(self.precision):
            return a - b

    def matmul(self, a: arb_mat, b: arb_mat) -> arb_mat:
        with ctx.workprec(self.precision):
            return a * b

    def transpose(self, a: arb_mat) -> arb_mat:
        return a.transpose()

    def scale(self, s: arb, a: arb_mat) -> arb_mat:
        with ctx.workprec(self.precision):
            return a * s

    def scale_rows(self, d: arb_mat, a: arb_mat) -> arb_mat:
        """Diag(d)·a, entry by entry: cheaper than a product with a diagonal matrix."""
        factors = [x for x in d.entries() for _ in range(a.ncols())]
        with ctx.workprec(self.precision):
            return arb_mat(a.nrows(), a.ncols(), list(map(operator.mul, factors, a.entries())))

    def outer(self, u: arb_mat, w: arb_mat) -> arb_mat:
        with ctx.workprec(self.precision):
            return u * w.transpose()

    def exp(self, x: arb) -> arb:
        with ctx.workprec(self.precision):
            return x.exp()

    def exp_entries(self, a: arb_mat) -> arb_mat:
        with ctx.workprec(self.precision):
            return arb_mat(a.nrows(), a.ncols(), [x.exp() for x in a.entries()])

    def log(self, x: arb) -> arb:
        if not x > 0:
            raise RequestError(f"log of {x}: not certainly positive; raise the precision or the number")
        with ctx.workprec(self.precision):
            return x.log()

    def sqrt(self, x: arb) -> arb:
        if not x >= 0:
            raise RequestError(f"sqrt of {x}: not certainly at least 0; raise the precision or the number")
        with ctx.workprec(self.precision):
            return x.sqrt()

    def reciprocal(self, x: arb) -> arb:
        if x.contains(0):
            raise RequestError(f"1/x for x in {x}: it may be 0; raise the precision or change the input")
        with ctx.workprec(self.precision):
            return 1 / x

    def shift(self, column: arb_mat) -> arb:
        """0: a ball's exponent does not overflow where a float's does."""
        return arb(0)

    def solve(self, a: arb_mat, b: arb_mat) -> arb_mat:
        with ctx.workprec(self.precision):
            try:
                return a.solve(b)
            except ZeroDivisionError:
                raise RequestError(
                    f"the matrix is not certainly invertible at {self.precision} bits; raise the precision"
                ) from None


def overlaps(a: arb_mat, b: arb_mat) -> bool:
    """Whether every entry of `a` has a point in common with that of `b`: False disproves equality."""
    return a.overlaps(b)


def contains(a: arb_mat, exact: arb_mat | fmpq_mat) -> bool:
    """Whether every entry of `a` contains that of `exact` (rationals, or balls as sets)."""
    return a.contains(exact)


def contains_rational(x: arb, exact: fmpq) -> bool:
    """Whether the ball x contains the rational number, decided exactly.

    ``x.contains(exact)`` is not that question: it first rounds `exact` to a ball at the global precision.
    """
    return arb_mat([[x]]).contains(fmpq_mat([[exact]]))


def certainly_less(x: arb, y: arb) -> bool:
    """Whether every point of x is below every point of y; False means «not shown», not «≥»."""
    return bool(x < y)


def certainly_equal(x: arb, y: arb) -> bool:
    """Whether both are the same single point; False means «not shown»."""
    return bool(x == y)

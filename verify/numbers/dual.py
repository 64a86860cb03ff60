"""Numbers that carry derivatives (forward mode), over any other number system.

A dual number is a value with its partial derivatives in some variables, which are numbered; a variable that
is missing has derivative 0. Over balls every derivative is enclosed like the values are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from verify.numbers.convert import Number
from verify.numbers.protocol import M, NumberSystem, S

T = TypeVar("T")


@dataclass(frozen=True)
class Dual(Generic[T]):
    """A scalar or matrix of the underlying system, and its derivative in each variable it depends on."""

    value: T
    slopes: Mapping[int, T] = field(default_factory=dict)


class Duals(Generic[S, M]):
    """The number system of dual numbers over ``base``."""

    name = "dual"

    def __init__(self, base: NumberSystem[S, M]) -> None:
        self.base = base

    def number(self, value: Number | S | Dual[S]) -> Dual[S]:
        return value if isinstance(value, Dual) else Dual(self.base.number(value))

    def zeros(self, m: int, n: int) -> Dual[M]:
        return Dual(self.base.zeros(m, n))

    def eye(self, n: int) -> Dual[M]:
        return Dual(self.base.eye(n))

    def matrix(self, rows: Sequence[Sequence[Number | S | Dual[S]]]) -> Dual[M]:
        entries = [[self.number(x) for x in row] for row in rows]
        return _together(entries, self.base.matrix, self.base.number(0))

    def shape(self, a: Dual[M]) -> tuple[int, int]:
        return self.base.shape(a.value)

    def entry(self, a: Dual[M], i: int, j: int) -> Dual[S]:
        return _linear(lambda x: self.base.entry(x, i, j), a)

    def to_lists(self, a: Dual[M]) -> list[list[Dual[S]]]:
        m, n = self.shape(a)
        return [[self.entry(a, i, j) for j in range(n)] for i in range(m)]

    def row_vectors(self, a: Dual[M]) -> list[Dual[M]]:
        values = self.base.row_vectors(a.value)
        slopes = {i: self.base.row_vectors(slope) for i, slope in a.slopes.items()}
        return [Dual(value, {i: rows[t] for i, rows in slopes.items()}) for t, value in enumerate(values)]

    def stack_rows(self, vectors: Sequence[Dual[M]]) -> Dual[M]:
        length, _ = self.shape(vectors[0])
        return _together([vectors], lambda rows: self.base.stack_rows(rows[0]), self.base.zeros(length, 1))

    def add(self, a: Dual[M], b: Dual[M]) -> Dual[M]:
        return Dual(self.base.add(a.value, b.value), self._sum(a.slopes, b.slopes))

    def sub(self, a: Dual[M], b: Dual[M]) -> Dual[M]:
        minus = {i: self.base.scale(self.base.number(-1), slope) for i, slope in b.slopes.items()}
        return Dual(self.base.sub(a.value, b.value), self._sum(a.slopes, minus))

    def matmul(self, a: Dual[M], b: Dual[M]) -> Dual[M]:
        return self._bilinear(self.base.matmul, a, b)

    def transpose(self, a: Dual[M]) -> Dual[M]:
        return _linear(self.base.transpose, a)

    def scale(self, s: Dual[S], a: Dual[M]) -> Dual[M]:
        return self._bilinear(self.base.scale, s, a)

    def scale_rows(self, d: Dual[M], a: Dual[M]) -> Dual[M]:
        return self._bilinear(self.base.scale_rows, d, a)

    def outer(self, u: Dual[M], w: Dual[M]) -> Dual[M]:
        return self._bilinear(self.base.outer, u, w)

    def exp(self, x: Dual[S]) -> Dual[S]:
        value = self.base.exp(x.value)
        return self._function(x, value, value)

    def exp_entries(self, a: Dual[M]) -> Dual[M]:
        value = self.base.exp_entries(a.value)
        rows = self.base.row_vectors(value)

        def times(slope: M) -> M:
            pairs = zip(rows, self.base.row_vectors(slope), strict=True)
            return self.base.stack_rows([self.base.scale_rows(x, y) for x, y in pairs])

        return Dual(value, {i: times(slope) for i, slope in a.slopes.items()})

    def log(self, x: Dual[S]) -> Dual[S]:
        return self._function(x, self.base.log(x.value), self.base.reciprocal(x.value))

    def sqrt(self, x: Dual[S]) -> Dual[S]:
        """The root, whose derivative needs a number above 0."""
        value = self.base.sqrt(x.value)
        if not x.slopes:
            return Dual(value)
        return self._function(x, value, self._times(self.base.number("1/2"), self.base.reciprocal(value)))

    def reciprocal(self, x: Dual[S]) -> Dual[S]:
        value = self.base.reciprocal(x.value)
        return self._function(x, value, self._times(self.base.number(-1), self._times(value, value)))

    def shift(self, column: Dual[M]) -> Dual[S]:
        return Dual(self.base.shift(column.value))

    def solve(self, a: Dual[M], b: Dual[M]) -> Dual[M]:
        """From a·x = b follows a·x′ = b′ − a′·x."""
        value = self.base.solve(a.value, b.value)
        right = self.sub(b, self.matmul(a, Dual(value)))
        return Dual(value, {i: self.base.solve(a.value, slope) for i, slope in right.slopes.items()})

    def _sum(self, a: Mapping[int, M], b: Mapping[int, M]) -> dict[int, M]:
        shared = {i: self.base.add(a[i], b[i]) for i in a.keys() & b.keys()}
        return {**a, **b, **shared}

    def _bilinear(self, product: Callable[[T, M], M], a: Dual[T], b: Dual[M]) -> Dual[M]:
        left = {i: product(slope, b.value) for i, slope in a.slopes.items()}
        right = {i: product(a.value, slope) for i, slope in b.slopes.items()}
        return Dual(product(a.value, b.value), self._sum(left, right))

    def _function(self, x: Dual[S], value: S, derivative: S) -> Dual[S]:
        return Dual(value, {i: self._times(derivative, slope) for i, slope in x.slopes.items()})

    def _times(self, x: S, y: S) -> S:
        return self.base.entry(self.base.scale(x, self.base.matrix([[y]])), 0, 0)


def _linear(function: Callable[[M], T], a: Dual[M]) -> Dual[T]:
    return Dual(function(a.value), {i: function(slope) for i, slope in a.slopes.items()})


def _together(
    rows: Sequence[Sequence[Dual[T]]], build: Callable[[Sequence[Sequence[T]]], M], zero: T
) -> Dual[M]:
    """Something built linearly from many duals: values from values, each derivative from derivatives."""
    names = {i for row in rows for x in row for i in x.slopes}
    slopes = {i: build([[x.slopes.get(i, zero) for x in row] for row in rows]) for i in names}
    return Dual(build([[x.value for x in row] for row in rows]), slopes)

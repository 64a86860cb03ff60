"""Dual numbers over another number system: a definition evaluated with them is differentiated exactly."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Dual:
    """A value and its derivative along one direction; both scalars, or both matrices, of the base system."""

    value: Any
    slope: Any


class Duals:
    """As much of the vocabulary of `verify.numbers.protocol` as definitions use, with the product rule."""

    def __init__(self, base: Any) -> None:
        self.base = base

    def lift(self, value: Any, slope: Any) -> Dual:
        return Dual(value, slope)

    def number(self, value: Any) -> Dual:
        return value if isinstance(value, Dual) else Dual(self.base.number(value), self.base.number(0))

    def matrix(self, rows: Any) -> Dual:
        cells = [[self.number(x) for x in row] for row in rows]
        part = [[[getattr(x, name) for x in row] for row in cells] for name in ("value", "slope")]
        return Dual(self.base.matrix(part[0]), self.base.matrix(part[1]))

    def shape(self, a: Dual) -> tuple[int, int]:
        return self.base.shape(a.value)

    def entry(self, a: Dual, i: int, j: int) -> Dual:
        return Dual(self.base.entry(a.value, i, j), self.base.entry(a.slope, i, j))

    def row_vectors(self, a: Dual) -> list[Dual]:
        pairs = zip(self.base.row_vectors(a.value), self.base.row_vectors(a.slope), strict=True)
        return [Dual(*pair) for pair in pairs]

    def stack_rows(self, vectors: Any) -> Dual:
        return Dual(
            self.base.stack_rows([x.value for x in vectors]), self.base.stack_rows([x.slope for x in vectors])
        )

    def transpose(self, a: Dual) -> Dual:
        return Dual(self.base.transpose(a.value), self.base.transpose(a.slope))

    def add(self, a: Dual, b: Dual) -> Dual:
        return Dual(self.base.add(a.value, b.value), self.base.add(a.slope, b.slope))

    def sub(self, a: Dual, b: Dual) -> Dual:
        return Dual(self.base.sub(a.value, b.value), self.base.sub(a.slope, b.slope))

    def _bilinear(self, name: str, a: Dual, b: Dual) -> Dual:
        product = getattr(self.base, name)
        slope = self.base.add(product(a.slope, b.value), product(a.value, b.slope))
        return Dual(product(a.value, b.value), slope)

    def matmul(self, a: Dual, b: Dual) -> Dual:
        return self._bilinear("matmul", a, b)

    def scale(self, s: Dual, a: Dual) -> Dual:
        return self._bilinear("scale", s, a)

    def scale_rows(self, d: Dual, a: Dual) -> Dual:
        return self._bilinear("scale_rows", d, a)

    def outer(self, u: Dual, w: Dual) -> Dual:
        return self._bilinear("outer", u, w)

    def exp_entries(self, a: Dual) -> Dual:
        powers = self.base.exp_entries(a.value)
        return Dual(powers, self.base.scale_rows(powers, a.slope))

    def reciprocal(self, x: Dual) -> Dual:
        inverse = self.base.reciprocal(x.value)
        return Dual(inverse, -inverse * inverse * x.slope)

    def shift(self, column: Dual) -> Dual:
        return Dual(self.base.shift(column.value), self.base.number(0))

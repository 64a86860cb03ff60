"""IEEE binary64 on NumPy arrays, over any leading batch dimensions: fast, and rounded at every operation.

A scalar is an array of the batch shape (or of none), a matrix an array ``[..., m, n]``; batches broadcast.
Results carry rounding errors and no bound for them, so no comparison is offered: a caller compares against
an exact or ball result under a derived bound.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from verify.model.errors import RequestError
from verify.numbers.convert import Number, to_fraction

Array = NDArray[np.float64]


class Float64:
    """NumPy float64, vectorised over leading batch dimensions."""

    name = "float64"

    def number(self, value: Number | Array) -> Array:
        """`value` rounded to nearest even; an array of the batch shape passes as it is."""
        if isinstance(value, np.ndarray):
            return value.astype(np.float64)
        return np.asarray(float(to_fraction(value)))

    def zeros(self, m: int, n: int) -> Array:
        return np.zeros((m, n))

    def eye(self, n: int) -> Array:
        return np.eye(n)

    def matrix(self, rows: Sequence[Sequence[Number | Array]] | ArrayLike) -> Array:
        """The matrix with these rows; an array ``[..., m, n]`` passes as it is."""
        if isinstance(rows, np.ndarray):
            return rows.astype(np.float64)
        entries: Any = rows
        scalars = [[self.number(x) for x in row] for row in entries]
        batch = np.broadcast_shapes(*(x.shape for row in scalars for x in row))
        return np.stack([np.stack([np.broadcast_to(x, batch) for x in row], -1) for row in scalars], -2)

    def shape(self, a: Array) -> tuple[int, int]:
        return a.shape[-2], a.shape[-1]

    def entry(self, a: Array, i: int, j: int) -> Array:
        return np.asarray(a[..., i, j])

    def to_lists(self, a: Array) -> list[list[Array]]:
        m, n = self.shape(a)
        return [[self.entry(a, i, j) for j in range(n)] for i in range(m)]

    def row_vectors(self, a: Array) -> list[Array]:
        return [a[..., i, :, None] for i in range(a.shape[-2])]

    def stack_rows(self, vectors: Sequence[Array]) -> Array:
        return np.stack([v[..., 0] for v in np.broadcast_arrays(*vectors)], -2)

    def add(self, a: Array, b: Array) -> Array:
        return a + b

    def sub(self, a: Array, b: Array) -> Array:
        return a - b

    def matmul(self, a: Array, b: Array) -> Array:
        return np.asarray(a @ b)

    def transpose(self, a: Array) -> Array:
        return a.swapaxes(-1, -2)

    def scale(self, s: Array, a: Array) -> Array:
        return np.asarray(s)[..., None, None] * a

    def scale_rows(self, d: Array, a: Array) -> Array:
        return d * a

    def outer(self, u: Array, w: Array) -> Array:
        return u * self.transpose(w)

    def exp(self, x: Array) -> Array:
        return np.exp(x)

    def exp_entries(self, a: Array) -> Array:
        return np.exp(a)

    def log(self, x: Array) -> Array:
        if not np.all(x > 0):
            raise RequestError("log of a number that is not positive; give positive numbers")
        return np.log(x)

    def sqrt(self, x: Array) -> Array:
        if not np.all(x >= 0):
            raise RequestError("sqrt of a negative number; give numbers of at least 0")
        return np.sqrt(x)

    def reciprocal(self, x: Array) -> Array:
        if np.any(x == 0):
            raise RequestError("1/0 is not a number; the divisor must not be 0")
        return np.asarray(1.0 / x)

    def shift(self, column: Array) -> Array:
        return np.asarray(column.max(axis=(-2, -1)))

    def solve(self, a: Array, b: Array) -> Array:
        try:
            return np.asarray(np.linalg.solve(a, b), np.float64)
        except np.linalg.LinAlgError:
            raise RequestError("the matrix is singular in float64") from None

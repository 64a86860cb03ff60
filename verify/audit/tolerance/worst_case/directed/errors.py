"""The error of a state, where the last chunk's keys say along which directions it lies.

What a chunk's writes err by enters the state along that chunk's keys. The next chunk erases along its own: of
an error along a key that it has too, little is left, and little is read. An error of which only the length is
known may lie along any direction.
"""

from dataclasses import dataclass

import numpy as np

from verify.audit.case import Array
from verify.audit.tolerance.worst_case.enclosed import (
    UP,
    Enclosed,
    frobenius,
    operator_norm,
    product,
    row_norms,
    times,
)


@dataclass(frozen=True, eq=False)
class Directed:
    """An error sum_m columns_m omega_m^T: exact columns ``[..., K, n]``, bounds of the lengths of the omega_m
    ``[..., n]`` (``rows``) and of all together ``[...]``."""

    columns: Enclosed
    rows: Array
    length: Array

    def read(self, matrix: Enclosed) -> Array:
        """Row norms of matrix times the error, matrix [..., m, K]."""
        sizes = product(matrix, self.columns).upper
        return np.minimum(times(sizes, self.rows), row_norms(sizes) * self.length[..., None]) * UP

    @property
    def size(self) -> Array:
        """Its length, Frobenius."""
        return _size(self.columns, self.rows, self.length)

    def after(self, step: Enclosed) -> Array:
        """The length of step times the error, step [..., K, K]."""
        return _size(product(step, self.columns), self.rows, self.length)


def _size(columns: Enclosed, rows: Array, length: Array) -> Array:
    apart = (row_norms(columns.upper.swapaxes(-1, -2)) * rows).sum(-1)
    together = (operator_norm(columns.mid) + frobenius(columns.rad)) * length
    return np.asarray(np.minimum(apart, together) * UP)


@dataclass(frozen=True, eq=False)
class StateError:
    """Of the state before a chunk: at most ``rest`` [B, HV] of unknown direction, and some directed."""

    rest: Array
    directed: tuple[Directed, ...] = ()

    @property
    def size(self) -> Array:
        """Its length, Frobenius."""
        return np.asarray((self.rest + sum(part.size for part in self.directed)) * UP)

    def read(self, matrix: Enclosed, growth: Array) -> Array:
        """Row norms of matrix times the error, ``growth`` [..., m] the lengths of its rows, at most."""
        found = self.rest[..., None] * growth
        return np.asarray((found + sum(part.read(matrix) for part in self.directed)) * UP)

    def after(self, step: Enclosed, growth: Array) -> Array:
        """The length of step times the error, ``growth`` [...] the 2-norm of step, at most."""
        found = self.rest * growth
        return np.asarray((found + sum(part.after(step) for part in self.directed)) * UP)

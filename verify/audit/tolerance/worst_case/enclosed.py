"""Matrices of float64 numbers with a proved distance from the exact ones, and upper bounds made of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from verify.audit.case import Array
from verify.audit.reference.recurrence import SMALLEST, U

UP = 1 + 2.0**-30
"""Above the rounding of a sum of non-negative terms in float64: fewer than 2^20 operations of 2^-53 each."""
_SQUARES = 2.0**-500
"""Above the length of fewer than 2^20 numbers whose squares underflow."""


@dataclass(frozen=True, eq=False)
class Enclosed:
    """Exact entries lie within ``rad`` of ``mid``; both ``[..., m, n]``."""

    mid: Array
    rad: Array

    @property
    def upper(self) -> Array:
        """Upper bounds of the exact entries' sizes."""
        return np.asarray((np.abs(self.mid) + self.rad) * UP)

    @property
    def transposed(self) -> "Enclosed":
        return Enclosed(self.mid.swapaxes(-1, -2), self.rad.swapaxes(-1, -2))

    def times(self, factors: Array) -> "Enclosed":
        """Every entry times an exact number."""
        scaled = self.mid * factors
        return Enclosed(scaled, (self.rad * np.abs(factors) + U * np.abs(scaled) + SMALLEST) * UP)

    def columns(self, factors: Array) -> "Enclosed":
        """Column j times the exact number factors[..., j]."""
        return self.times(factors[..., None, :])

    def minus(self, other: "Enclosed") -> "Enclosed":
        """The difference, entry by entry."""
        found = self.mid - other.mid
        return Enclosed(found, (self.rad + other.rad + U * np.abs(found)) * UP)

    def __getitem__(self, index: Any) -> "Enclosed":
        return Enclosed(self.mid[index], self.rad[index])


def product(a: Enclosed, b: Enclosed) -> Enclosed:
    """a b; sums of n terms in any order err by (n + 1) u of the sum of their sizes."""
    n = a.mid.shape[-1]
    size_a, size_b = np.abs(a.mid), np.abs(b.mid)
    rad = size_a @ b.rad + a.rad @ (size_b + b.rad) + (n + 1) * U * (size_a @ size_b)
    return Enclosed(a.mid @ b.mid, np.asarray((rad + n * SMALLEST) * UP))


def unit_lower_inverse(strict: Enclosed) -> Enclosed:
    """The inverse of I + strict, which is strictly lower triangular.

    With X close to it and (I + strict) X = I - E, the inverse is X (I - E)^-1, hence entry by entry within
    |X| (|E| + s^2 / (1 - s)) of X, s the largest row sum of |E|; infinitely far unless s < 1/2.
    """
    c = strict.mid.shape[-1]
    unit = np.eye(c)
    close = np.broadcast_to(unit, strict.mid.shape).copy()
    for i in range(1, c):
        close[..., i, :i] = -(strict.mid[..., i : i + 1, :i] @ close[..., :i, :i])[..., 0, :]
    fitted = product(Enclosed(strict.mid + unit, strict.rad), Enclosed(close, np.zeros_like(close)))
    missed = (np.abs(unit - fitted.mid) * (1 + U) + fitted.rad) * UP
    s = missed.sum(-1).max(-1, initial=0.0)[..., None, None] * UP
    small = np.minimum(s, 0.5)
    apart = np.tril(np.abs(close) @ (missed + small * small / (1 - small))) * UP
    return Enclosed(close, np.where(s < 0.5, apart, np.inf))


def row_norms(x: Array) -> Array:
    """2-norms over the last axis, rounded up."""
    return np.asarray(np.sqrt(np.einsum("...v,...v->...", x, x)) * UP + _SQUARES)


def frobenius(x: Array) -> Array:
    """Norms over the last two axes, rounded up."""
    return np.asarray(np.sqrt(np.einsum("...kv,...kv->...", x, x)) * UP + _SQUARES)


def times(matrix: Array, vector: Array) -> Array:
    """A non-negative matrix times a non-negative vector, rounded up."""
    return np.asarray((matrix @ vector[..., None])[..., 0] * UP)


def operator_norm(x: Array) -> Array:
    """An upper bound of the 2-norm of every matrix: the fourth root of the length of its Gram matrix's power.

    For the Gram matrix G of trace s, the largest eigenvalue is at most s ||(G / s)^4||_F^(1/4).
    """
    tall = x if x.shape[-2] <= x.shape[-1] else x.swapaxes(-1, -2)
    gram = tall @ tall.swapaxes(-1, -2)
    trace = np.einsum("...ii->...", gram)
    scaled = gram / np.where(trace > 0, trace, 1.0)[..., None, None]
    for _ in range(2):
        scaled = scaled @ scaled
    return np.asarray(np.minimum(np.sqrt(trace * frobenius(scaled) ** 0.25), frobenius(x)) * UP + _SQUARES)

"""How far an error of the state is carried by transitions Diag(alpha) + out read^T that need not contract.

A bound by the transitions' norms one at a time grows with their product, though what one token lengthens the
next one mostly does not read. So the error's directions are carried along: a positive matrix M of which the
error is E = M^(1/2) X with ||X||_F <= 1. A transition A makes it A M A^T. Adding D, ||D||_F <= l, gives
(1 + n) M + (1 + 1/n) l^2 I for any n > 0, since ((1 + n)^(-1/2) X, (1 + 1/n)^(-1/2) D / l) has a length of at
most 1. A row r reads ||r^T E|| <= (r^T M r)^(1/2) of it, and ||E||_F^2 is at most the largest eigenvalue.
"""

from dataclasses import dataclass

import numpy as np

from verify.audit.case import Array

_U = 2.0**-53
_UP = 1 + 2.0**-30
# Far above what squares lose that underflow; and its square, above other numbers that do.
_SHORTEST, _LEAST = 2.0**-500, 2.0**-1000


@dataclass(frozen=True, eq=False)
class Transition:
    """Of one token: Diag(alpha) + out read^T, or (I + out read^T) Diag(alpha).

    Args:
        alpha, out, read: ``[B, HV, K]``, all sequences and heads at once.
        before_decay: which of the two; the first.
        norm: at least its 2-norm ``[B, HV]``.
        size: at least max(alpha, 1) (1 + ||out|| ||read||) ``[B, HV]``.
        unsure: what decays and directions err by, relative to ``size`` ``[B, HV]``.
    """

    alpha: Array
    out: Array
    read: Array
    before_decay: bool
    norm: Array
    size: Array
    unsure: Array

    def around(self, matrix: Array) -> Array:
        """A M A^T = Diag(alpha) M Diag(alpha) + out w^T + w out^T, w = Diag(alpha) M r + (r^T M r) out / 2,
        where the undecayed state is read with r. M is the symmetric part of what is given; what is returned
        may likewise be off from symmetry.
        """
        alpha, out = self.alpha, self.out
        read = self.read if self.before_decay else alpha * self.read
        found = (read[..., None, :] @ matrix)[..., 0, :] + (matrix @ read[..., None])[..., 0]
        seen = (found * read).sum(-1, keepdims=True) / 2
        crossed = (alpha * found + seen * out) / 2
        moved = alpha[..., None] * matrix
        moved *= alpha[..., None, :]
        moved += np.stack([out, crossed], axis=-1) @ np.stack([crossed, out], axis=-2)
        return np.asarray(moved)


@dataclass(frozen=True, eq=False)
class Carried:
    """An error of a state: M ``[B, HV, K, K]``, and a bound of the error's Frobenius norm.

    M is the symmetric part of ``matrix``. ``size`` ``[B, HV]`` bounds its norm; ``length`` ``[B, HV]`` is the
    smaller of what that says and of what the norms of the transitions do.
    """

    matrix: Array
    size: Array
    length: Array

    @classmethod
    def nothing(cls, sequences: int, heads: int, keys: int) -> "Carried":
        zeros = np.zeros((sequences, heads))
        return cls(np.zeros((sequences, heads, keys, keys)), zeros, zeros)

    def moved(self, step: Transition) -> "Carried":
        """After a transition."""
        with np.errstate(over="ignore", invalid="ignore"):
            matrix, keys = step.around(self.matrix), self.matrix.shape[-1]
            # Every term is rounded at most 2 K + 8 times, and the transition is known up to `unsure`.
            off = (8 * (keys + 8) * _U + 4 * step.unsure) * np.square(step.size) * self.size * _UP + _LEAST
            return _raised(matrix, _size(matrix), off, step.norm * self.length)

    def grown(self, added: Array) -> "Carried":
        """With an error of that length ``[B, HV]`` added."""
        with np.errstate(over="ignore", invalid="ignore"):
            more = added * _UP + _SHORTEST
            # Any positive ratio will do; this one is the best for a multiple of the identity.
            own = self.size / np.sqrt(np.einsum("...kk->...", self.matrix) + _SHORTEST) + _SHORTEST
            share = (1 + more / own) * _UP
            by = (np.square(more) + more * own) * _UP
            return _raised(self.matrix * share[..., None, None], self.size * share, by, self.length + more)

    def along(self, row: Array) -> Array:
        """At least the norm of row^T E, for rows ``[B, HV, K]``."""
        with np.errstate(over="ignore", invalid="ignore"):
            norm = np.sqrt(np.einsum("...k,...k->...", row, row)) * _UP + _SHORTEST
            seen = np.einsum("...k,...k->...", (row[..., None, :] @ self.matrix)[..., 0, :], row)
            seen = np.maximum(seen, 0.0) + 2 * (row.shape[-1] + 4) * _U * np.square(norm) * self.size
            return np.asarray(np.fmin(norm * self.length * _UP, np.sqrt(seen) * _UP + _SHORTEST))

    @property
    def shortest(self) -> Array:
        """The error's Frobenius norm ``[B, HV]`` by the largest eigenvalue of M, where `length` is longer.

        For any positive s that is at most s ||(M / s)^4||_F^(1/4); here s is the trace.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            trace = np.einsum("...kk->...", self.matrix) + _SHORTEST
            power = (self.matrix + self.matrix.swapaxes(-1, -2)) / (2 * trace[..., None, None])
            for _ in range(2):
                power = power @ power
            return np.asarray(np.fmin(self.length, np.sqrt(trace * _size(power) ** 0.25) * _UP))


def _size(matrix: Array) -> Array:
    flat = matrix.reshape(*matrix.shape[:-2], 1, -1)
    return np.asarray(np.sqrt((flat @ flat.swapaxes(-1, -2))[..., 0, 0]) * _UP + _SHORTEST)


def _raised(matrix: Array, size: Array, by: Array, length: Array) -> Carried:
    """The matrix, which is written to, plus a multiple of the identity."""
    np.einsum("...kk->...k", matrix)[...] += by[..., None]
    size = (size + by * matrix.shape[-1] ** 0.5) * _UP
    return Carried(matrix, size, np.fmin(length, np.sqrt(size)) * _UP)

"""What a chunk writes, W = Diag(beta) T R, computed in one of four ways, and where its errors go.

One product T R with the inverse T; one solve by substitution; T V - (T K^) S from stored factors, whose
errors are in proportion to both terms; or not at all, R being multiplied by P Diag(beta) T and
K_^T Diag(beta) T.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from verify.audit.case import Array
from verify.audit.reference.recurrence import U
from verify.audit.tolerance.chunk_scores import Chunk, Rounding, Scores
from verify.audit.tolerance.enclosed import UP, frobenius, operator_norm, product, row_norms, times
from verify.audit.tolerance.triangular import System


class Exact(NamedTuple):
    """One exact chunk as the float64 reference has it, with bounds of that one's errors.

    ``before`` [B, HV, K, V] the state, ``values`` and ``miss`` (T R) [B, HV, C, V], ``miss_error`` per row;
    ``passed`` [B, HV, C] the norm of all steps up to a row, ``reached`` that of what the row's key reads of
    an error of the state.
    """

    before: Array
    before_error: Array
    values: Array
    miss: Array
    miss_error: Array
    passed: Array
    reached: Array


@dataclass(frozen=True, eq=False)
class State:
    """The computed state before the chunk: within ``error`` [B, HV] of the exact one, ``gap`` of ours."""

    error: Array
    gap: Array
    size: Array

    def read(self, matrix: Array) -> Array:
        """Row norms of matrix times the sizes of the computed state's entries, matrix [..., C, K]."""
        return np.asarray((row_norms(matrix @ self.size) + row_norms(matrix) * self.gap[..., None]) * UP)


class Correction(NamedTuple):
    """Bounds of row norms of errors, ``[B, HV, C]``: of what T multiplies (``right``), of what the inverse
    errs by beside that (``inverse``), both with the length [B, HV] of all rows together, and of T R itself;
    ``mixed`` and ``mixed_state`` [B, HV] are what P Diag(beta) T and K_^T Diag(beta) T err by, times R.
    """

    right: Array
    right_length: Array
    inverse: Array
    inverse_length: Array
    own: Array
    mixed: Array
    mixed_state: Array


@dataclass(frozen=True, eq=False)
class Through:
    """Where a chunk's errors go: the sizes of exact matrices.

    Args:
        beta: write strengths [..., C].
        solve: Diag(beta) T, [..., C, C].
        weigh: P Diag(beta); ``weigh_solve`` its product with T.
        keys: row norms of Diag(beta) K_ [..., C], and ``keys_norm`` its 2-norm [...].
        keys_solve: norms of the columns of K_^T Diag(beta) T, and ``keys_solve_norm`` its 2-norm.
    """

    beta: Array
    solve: Array
    weigh: Array
    weigh_solve: Array
    keys: Array
    keys_norm: Array
    keys_solve: Array
    keys_solve_norm: Array

    @classmethod
    def of(cls, chunk: Chunk, made: Scores, solved: System) -> "Through":
        weighed = made.qk.columns(chunk.beta)
        keys = made.end.times(chunk.k).times(chunk.beta[..., None])
        carried = product(keys.transposed, solved.inverse)
        beta = np.abs(chunk.beta)
        return cls(
            beta=beta,
            solve=beta[..., None] * solved.size * UP,
            weigh=weighed.upper,
            weigh_solve=product(weighed, solved.inverse).upper,
            keys=row_norms(keys.upper),
            keys_norm=operator_norm(keys.mid) + frobenius(keys.rad),
            keys_solve=row_norms(carried.upper.swapaxes(-1, -2)),
            keys_solve_norm=operator_norm(carried.mid) + frobenius(carried.rad),
        )

    def written(self, x: Correction) -> Array:
        """Row norms of the error of W."""
        return np.asarray(times(self.solve, x.right) + self.beta * (x.inverse + x.own) * UP)

    def output(self, x: Correction) -> Array:
        """Row norms of that of P W, from W's error."""

        def read(matrix: Array, rows: Array, length: Array) -> Array:
            return np.minimum(times(matrix, rows), row_norms(matrix) * length[..., None])

        of_right = read(self.weigh_solve, x.right, x.right_length)
        of_inverse = read(self.weigh, x.inverse, x.inverse_length)
        return np.asarray((of_right + of_inverse + times(self.weigh, x.own) + x.mixed) * UP)

    def state(self, x: Correction) -> Array:
        """The length of that of K_^T W, from W's error."""

        def led(columns: Array, norm: Array, rows: Array, length: Array) -> Array:
            return np.asarray(np.minimum((columns * rows).sum(-1), norm * length))

        of_right = led(self.keys_solve, self.keys_solve_norm, x.right, x.right_length)
        of_inverse = led(self.keys, self.keys_norm, x.inverse, x.inverse_length)
        of_own = led(self.keys, self.keys_norm, x.own, row_norms(x.own))
        return np.asarray((of_right + of_inverse + of_own + x.mixed_state) * UP)


class Writing:
    """One chunk's corrections."""

    def __init__(
        self, chunk: Chunk, exact: Exact, state: State, made: Scores, solved: System, rounding: Rounding
    ) -> None:
        self._exact, self._state, self._solved, self._rounding = exact, state, solved, rounding
        self._beta, self._made, self._end = np.abs(chunk.beta), made, made.end.times(chunk.k)
        (c, keys), after = chunk.k.shape[-2:], rounding.after
        self._row = after(np.arange(1.0, c + 1) + 4)
        self._keys = keys
        count = exact.values.shape[-1] ** 0.5 * (keys + c + 4)
        self._flush = (1 + solved.size.max((-1, -2)))[..., None] * rounding.tiny * count
        self._start = made.start.times(chunk.k)
        # As computed: decayed keys, before and after the roundings of their product with the state.
        self._key_error = (after(made.start_log + 3) * self._start.upper + 8 * rounding.tiny) * UP
        reading = (after(made.start_log + keys + 4) * self._start.upper + 8 * rounding.tiny) * UP
        self._rest = exact.values - self._start.mid @ exact.before
        own = (self._start.rad + (keys + 3) * U * self._start.upper) @ state.size
        # How far the exact R at the computed state is from the one above.
        self._gap = (
            row_norms(self._start.upper) * state.gap[..., None] + row_norms(own) + U * row_norms(self._rest)
        )
        self._length = (row_norms(self._rest) + self._gap) * UP
        read = state.read(reading) + after(keys + 3) * row_norms(exact.values)
        self._right = (read * (1 + after(3)) + after(3) * self._length + self._flush) * UP
        self._miss = (row_norms(exact.miss) + exact.miss_error + exact.reached * state.error[..., None]) * UP

    def ways(self, corrections: str) -> list[Correction]:
        """Those that a declaration allows: whoever stores factors may also solve."""
        ways = [self._by_inverse(), self._by_substitution(), self._by_mixing()]
        return [*ways, self._by_factors()] if corrections == "factored" else ways

    def _applied(self, matrix: Array) -> tuple[Array, Array]:
        """Row norms of a matrix of that size times the computed R, and the length of all."""
        rows = times(matrix, self._length + self._right)
        apart = operator_norm(self._rest) + row_norms(self._gap) + row_norms(self._right)
        return rows, np.asarray(np.minimum(row_norms(rows), frobenius(matrix) * apart) * UP)

    def _of_inverse(self, own: Callable[[Array], Array]) -> Correction:
        """The inverse times the computed R; ``own`` errs by what it is given of T R's error, at most."""
        before, before_length = self._applied(self._solved.before)
        beside, beside_length = self._applied(self._solved.beside)
        right = (self._right + before) * UP
        length = (row_norms(self._right) + before_length) * UP
        found = own(times(self._solved.size, right) + beside) * UP
        return Correction(
            right, length, beside, beside_length, found, np.zeros_like(right), np.zeros_like(length)
        )

    def _by_inverse(self) -> Correction:
        solved, after = self._solved, self._rounding.after

        def own(error: Array) -> Array:
            sums = row_norms(solved.size @ np.abs(self._rest)) + times(solved.size, self._gap) + error
            rounded = self._row * sums * (1 + after(2)) + after(2) * (self._miss + error)
            return np.asarray(rounded + self._flush)

        return self._of_inverse(own)

    def _by_substitution(self) -> Correction:
        solved = self._solved
        right = self._right + self._flush
        found = self._miss + solved.solution_error(right, self._miss)
        nothing = np.zeros_like(found)
        right = (right + times(solved.backward, found)) * UP
        own = self._rounding.after(2) * found * UP + self._flush
        return Correction(right, row_norms(right), nothing, nothing[..., 0], own, nothing, nothing[..., 0])

    def _by_mixing(self) -> Correction:
        solved, after, made = self._solved, self._rounding.after, self._made
        c = made.qk.mid.shape[-1]
        places = np.arange(float(c))
        writes = self._beta[..., None] * (solved.size + solved.inverse_error) * UP
        off = self._beta[..., None] * solved.inverse_error * UP
        weights, keys = made.qk.upper + made.qk_error, self._end.upper.swapaxes(-1, -2)
        lost = keys * after(made.end_log + 3).swapaxes(-1, -2) + 8 * self._rounding.tiny
        # Both products are sums of few terms, as T is triangular; then one with R joins what is read of S.
        flush = self._rounding.tiny * c
        weighed = after(np.maximum(places[:, None] - places, 0) + 3) * (weights @ writes) + flush
        carried = after(c - places + 3) * ((keys + lost) @ writes) + flush
        exact = product(made.qk.columns(self._beta), solved.inverse).upper
        size = exact + weights @ off + made.qk_error @ writes + weighed
        mixed = weighed + after(self._keys + c + 4) * size
        exact = product(self._end.times(self._beta[..., None]).transposed, solved.inverse).upper
        size = exact + keys @ off + lost @ writes + carried
        ended = carried + after(c + 4) * size
        rest, gap = np.abs(self._rest), self._gap + self._right
        output = row_norms(mixed @ rest) + times(mixed, gap)
        state = frobenius(ended @ rest) + (row_norms(ended.swapaxes(-1, -2)) * gap).sum(-1)
        nothing = self._of_inverse(np.zeros_like)
        return nothing._replace(mixed=output * UP, mixed_state=np.asarray(state * UP))

    def _by_factors(self) -> Correction:
        solved, after, state = self._solved, self._rounding.after, self._state
        off = solved.inverse_error
        size, keys = solved.size + off, self._start.upper + self._key_error
        value = self._row * row_norms(size @ np.abs(self._exact.values))
        rounded = self._row[:, None] * (size @ keys)
        factor = product(solved.inverse, self._start).upper
        read = state.read(factor + off @ keys + solved.size @ self._key_error + rounded)
        # U is what is written and what W S reads of it; the last sum has K + 1 terms in any order.
        whole = self._miss + 2 * read + times(off, row_norms(self._exact.values)) + value
        return self._of_inverse(
            lambda error: value + state.read(rounded) + after(self._keys + 5) * (whole + error) + self._flush
        )

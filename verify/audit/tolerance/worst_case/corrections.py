"""What a chunk writes, W = Diag(beta) T R, computed in one of four ways, and where its errors go.

One product T R with the inverse T; one solve by substitution; T V - (T K^) S from stored factors, whose
errors are in proportion to both terms; or not at all, R being multiplied by P Diag(beta) T and
K_^T Diag(beta) T.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from verify.audit.case import Array
from verify.audit.reference.recurrence import U
from verify.audit.tolerance.worst_case.chunk_scores import Chunk, Rounding, Scores
from verify.audit.tolerance.worst_case.directed.errors import Directed
from verify.audit.tolerance.worst_case.enclosed import (
    UP,
    Enclosed,
    frobenius,
    operator_norm,
    product,
    row_norms,
    times,
)
from verify.audit.tolerance.worst_case.triangular import System


class Exact(NamedTuple):
    """One exact chunk as the float64 reference has it, with bounds of that one's errors.

    ``before`` [B, HV, K, V] the state, ``values`` and ``miss`` (T R) [B, HV, C, V], ``miss_error`` per row;
    ``passed`` [B, HV, C] the norm of all steps up to a row, ``reached`` that of what the row's key reads of
    an error of the state; ``values_error`` per row what the kernel's values err by before R is formed.
    """

    before: Array
    before_error: Array
    values: Array
    miss: Array
    miss_error: Array
    passed: Array
    reached: Array
    values_error: Array | float = 0.0


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
        keys: K_^T Diag(beta) [..., K, C]; ``keys_solve`` its product with T.
        reads: Q^ - P Diag(beta) T K^ [..., C, K], what an output reads of the state before the chunk.
        step: Diag(d) - K_^T Diag(beta) T K^ [..., K, K], what that state becomes.
    """

    beta: Array
    solve: Array
    weigh: Array
    weigh_solve: Array
    keys: Enclosed
    keys_solve: Enclosed
    reads: Enclosed
    step: Enclosed

    @classmethod
    def of(cls, chunk: Chunk, made: Scores, solved: System) -> "Through":
        weighed, beta = made.qk.columns(chunk.beta), np.abs(chunk.beta)
        keys = made.end.times(chunk.k).times(chunk.beta[..., None]).transposed
        weigh_solve, keys_solve = (product(x, solved.inverse) for x in (weighed, keys))
        start, total = made.start.times(chunk.k), made.start[..., -1, :]
        kept = (np.eye(chunk.k.shape[-1]) * x[..., None, :] for x in (total.mid, total.rad))
        return cls(
            beta=beta,
            solve=beta[..., None] * solved.size * UP,
            weigh=weighed.upper,
            weigh_solve=weigh_solve.upper,
            keys=keys,
            keys_solve=keys_solve,
            reads=made.start.times(chunk.q).minus(product(weigh_solve, start)),
            step=Enclosed(*kept).minus(product(keys_solve, start)),
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

    def state(self, ways: Sequence[Correction]) -> tuple[Directed, ...]:
        """Those of K_^T W, from W's error in the worst of some ways; ``mixed_state`` is apart."""
        right, inverse = (
            np.maximum.reduce([x.right for x in ways]),
            np.maximum.reduce([x.inverse + x.own for x in ways]),
        )
        lengths = (
            np.maximum.reduce([x.right_length for x in ways]),
            np.maximum.reduce([x.inverse_length + row_norms(x.own) for x in ways]),
        )
        return Directed(self.keys_solve, right, lengths[0]), Directed(self.keys, inverse, lengths[1])


class Writing:
    """One chunk's corrections."""

    def __init__(
        self, chunk: Chunk, exact: Exact, state: State, made: Scores, solved: System, rounding: Rounding
    ) -> None:
        self._exact, self._state, self._solved, self._rounding = exact, state, solved, rounding
        self._beta, self._made, self._end = np.abs(chunk.beta), made, made.end.times(chunk.k)
        (c, keys), after = chunk.k.shape[-2:], rounding.after
        self._row = rounding.summed(np.arange(1.0, c + 1), others=4, among=c)
        self._keys = keys
        count = exact.values.shape[-1] ** 0.5 * (keys + c + 4)
        self._flush = (1 + solved.size.max((-1, -2)))[..., None] * rounding.tiny * count
        self._start = made.start.times(chunk.k)
        # As computed: decayed keys, before and after the roundings of their product with the state.
        self._key_error = (after(made.start_log + 3) * self._start.upper + 8 * rounding.tiny) * UP
        reading = (
            rounding.summed(keys, others=made.start_log + 4) * self._start.upper + 8 * rounding.tiny
        ) * UP
        self._rest = exact.values - self._start.mid @ exact.before
        own = (self._start.rad + (keys + 3) * U * self._start.upper) @ state.size
        # How far the exact R at the computed state is from the one above.
        self._gap = (
            row_norms(self._start.upper) * state.gap[..., None] + row_norms(own) + U * row_norms(self._rest)
        )
        self._length = (row_norms(self._rest) + self._gap) * UP
        read = state.read(reading) + rounding.chained(keys, 3) * row_norms(exact.values)
        read = read + (1 + rounding.chained(keys, 3)) * exact.values_error
        self._right = (read * (1 + after(3)) + after(3) * self._length + self._flush) * UP
        self._miss = (row_norms(exact.miss) + exact.miss_error + exact.reached * state.error[..., None]) * UP
        self._applied = self._inverse_applied(own)

    def _inverse_applied(self, own: Array) -> tuple[Array, Array, Array, Array]:
        """Row norms of P and G times the computed R, and the length of all; `System`.

        What rows before a leave of R is v - K^ S less what they write: of an error of S it keeps no more than
        a row's key reads of it after them.
        """
        solved, exact, state = self._solved, self._exact, self._state
        strict, missed = solved.strict, row_norms(exact.miss)
        unsure = row_norms(self._start.upper) * exact.before_error[..., None] + row_norms(own)
        unsure = unsure + U * row_norms(self._rest) + exact.reached * state.error[..., None]
        left = []
        for a in solved.starts:
            taken, sizes = strict.mid[..., :a] @ exact.miss[..., :a, :], strict.upper[..., :a]
            lost = times(strict.rad[..., :a] + (a + 3) * U * sizes, missed[..., :a])
            lost = lost + times(sizes, exact.miss_error[..., :a])
            left.append((row_norms(self._rest - taken) + lost + unsure) * UP)
        rows = solved.applied(left, self._miss)
        found = []
        for matrix, own_rows in zip((solved.before, solved.beside), rows, strict=True):
            most = np.minimum(own_rows, times(matrix, self._length)) + times(matrix, self._right)
            apart = operator_norm(self._rest) + row_norms(self._gap) + row_norms(self._right)
            found += [most * UP, np.minimum(row_norms(most), frobenius(matrix) * apart) * UP]
        return found[0], found[1], found[2], found[3]

    def ways(self, corrections: str) -> list[Correction]:
        """Those that a declaration allows: whoever stores factors may also solve."""
        ways = [self._by_inverse(), self._by_substitution(), self._by_mixing()]
        return [*ways, self._by_factors()] if corrections == "factored" else ways

    def _of_inverse(self, own: Callable[[Array], Array]) -> Correction:
        """The inverse times the computed R; ``own`` errs by what it is given of T R's error, at most."""
        before, before_length, beside, beside_length = self._applied
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
        solved, made = self._solved, self._made
        after, summed = self._rounding.after, self._rounding.summed
        c = made.qk.mid.shape[-1]
        places = np.arange(float(c))
        writes = self._beta[..., None] * (solved.size + solved.inverse_error) * UP
        off = self._beta[..., None] * solved.inverse_error * UP
        weights, keys = made.qk.upper + made.qk_error, self._end.upper.swapaxes(-1, -2)
        lost = keys * after(made.end_log + 3).swapaxes(-1, -2) + 8 * self._rounding.tiny
        # Both products are sums of few terms, as T is triangular; then one with R joins what is read of S.
        flush = self._rounding.tiny * c
        weighed = (
            summed(np.maximum(places[:, None] - places, 0) + 1, others=2, among=c) * (weights @ writes)
            + flush
        )
        carried = summed(c - places, others=3, among=c) * ((keys + lost) @ writes) + flush
        exact = product(made.qk.columns(self._beta), solved.inverse).upper
        size = exact + weights @ off + made.qk_error @ writes + weighed
        mixed = weighed + summed(self._keys, c, others=4) * size
        exact = product(self._end.times(self._beta[..., None]).transposed, solved.inverse).upper
        size = exact + keys @ off + lost @ writes + carried
        ended = carried + summed(c, others=4) * size
        rest, gap = np.abs(self._rest), self._gap + self._right
        output = row_norms(mixed @ rest) + times(mixed, gap)
        state = frobenius(ended @ rest) + (row_norms(ended.swapaxes(-1, -2)) * gap).sum(-1)
        nothing = self._of_inverse(np.zeros_like)
        return nothing._replace(mixed=output * UP, mixed_state=np.asarray(state * UP))

    def _by_factors(self) -> Correction:
        solved, state = self._solved, self._state
        last = self._rounding.summed(self._keys, others=5)
        off = solved.inverse_error
        size, keys = solved.size + off, self._start.upper + self._key_error
        value = self._row * row_norms(size @ np.abs(self._exact.values))
        rounded = self._row[:, None] * (size @ keys)
        factor = product(solved.inverse, self._start).upper
        read = state.read(factor + off @ keys + solved.size @ self._key_error + rounded)
        # U is what is written and what W S reads of it; the last sum has K + 1 terms in any order.
        whole = self._miss + 2 * read + times(off, row_norms(self._exact.values)) + value
        return self._of_inverse(
            lambda error: value + state.read(rounded) + last * (whole + error) + self._flush
        )

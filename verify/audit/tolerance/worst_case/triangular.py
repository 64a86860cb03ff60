"""How far a triangular system solved by substitution, in one piece or in blocks, lies from its solution.

The computed inverse is T~ = T (I + P) + G, T that of I + M and M known up to dM, entry by entry, with

    |P| <= dM |T~| + Phi,      |T~ - T| <= |T| (dM (|T| + |T~ - T|) + Phi) + G,

Phi what roundings do that T multiplies afterwards, G what they do besides. Substitution row by row sums
M~ T~ column by column: Phi = gamma |M~| |T~|, G = 0 (Higham, Accuracy and Stability, theorem 8.5). Merging
the inverses X and Y of neighbouring blocks, A of M between them, gives B~ = -Y~ Z~ + dB, Z~ = A~ X~ + dZ;
with Z = A X exactly, small where its factors cancel,

    Z~ - Z = A X P_X + A G_X + dA X~ + dZ,
    B~ - B = B P_X - Y (P_Y Z + dA X~ + dZ) - (G_Y Z + Y A G_X + (Y~ - Y)(Z~ - Z)) + dB,

so that Phi there is Phi_Y |Z| + dZ, and G is G_Y |Z| + |Y A| G_X + |Y~ - Y| |Z~ - Z| + dB. Computed as
-(Y~ A~) X~, the roundings of Y~ A~ join G, times |X~|, and no dZ is there.

Applied to R, the inverse of a block of rows from a on meets R less what all rows before a explain of it,
`System.applied`: the part of R that is left, not R, is multiplied by the block's errors. All trees of blocks
of whole sixteens are allowed, and the largest of their bounds is taken.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify.audit.case import Array
from verify.audit.tolerance.worst_case.chunk_scores import Rounding
from verify.audit.tolerance.worst_case.enclosed import UP, Enclosed, product, times, unit_lower_inverse

BLOCK = 16
"""Rows that are solved one after another; what is wider may be merged from blocks at multiples of this."""


@dataclass(frozen=True, eq=False)
class _Merge:
    """What merging at row m does, of rows from m on and columns before: sizes of exact A, A X, Y A, and of
    roundings dZ, dB; ``left`` of -Y (A X), ``right`` of -(Y A) X, which has dW instead of dZ."""

    a: Array
    ax: Array
    ya: Array
    dz: Array
    left_db: Array
    dw: Array
    right_db: Array


@dataclass(frozen=True, eq=False)
class System:
    """I + M, M strictly lower triangular ``[..., C, C]``, and what computing with it errs by.

    Args:
        strict: M.
        inverse: T of the exact system.
        size: upper bounds of the inverse's entries.
        error: dM.
        rounded: Phi.
        beside: G.
        inverse_error: bounds of the entries of T~ - T.
        backward: substitution solves exactly a system that differs by at most this, entry by entry.
        echo: (I - |T| dM)^-1.
        rows: Phi of substitution row by row.
        merges: by the row they are at.
    """

    strict: Enclosed
    inverse: Enclosed
    size: Array
    error: Array
    rounded: Array
    beside: Array
    inverse_error: Array
    backward: Array
    echo: Array
    rows: Array
    merges: dict[int, _Merge]

    @property
    def before(self) -> Array:
        """Bounds of the entries of P."""
        return np.asarray((self.error @ (self.size + self.inverse_error) + self.rounded) * UP)

    def solution_error(self, right_error: Array, solution: Array) -> Array:
        """Row norms of the error of one solve by substitution: T (right_error + backward |solution|)."""
        own = times(self.size, right_error + times(self.backward, solution))
        return times(echoes(self.size @ self.backward), own)

    @property
    def starts(self) -> list[int]:
        """The rows a block may begin at."""
        return list(range(0, self.size.shape[-1], BLOCK))

    def applied(self, left: Sequence[Array], solution: Array) -> tuple[Array, Array]:
        """Row norms of P R and of G R.

        Args:
            left: per row a of `starts`, the row norms of R less what the rows before a explain.
            solution: row norms of T R.
        """
        ends = [*self.starts[1:], self.size.shape[-1]]
        nodes: dict[tuple[int, int], tuple[Array, Array]] = {}
        for apart in range(len(ends)):
            for i, b in enumerate(ends[apart:]):
                a = self.starts[i]
                node = np.s_[..., a:b, a:b]
                rounded = times(self.rows[node], left[i][..., a:b])
                beside = np.zeros_like(rounded)
                for m in self.starts[i + 1 : i + apart + 1]:
                    f, g = self._merged((a, m, b), nodes[a, m], nodes[m, b], left[i], solution)
                    rounded, beside = np.maximum(rounded, f), np.maximum(beside, g)
                nodes[a, b] = rounded, beside
        whole = np.s_[..., :, :]
        rounded, beside = nodes[0, ends[-1]]
        error = self._error(whole, rounded, beside, solution)
        return np.asarray((times(self.error, solution + error) + rounded) * UP), beside

    def _error(self, node: Any, rounded: Array, beside: Array, solution: Array) -> Array:
        """Row norms of what the computed inverse of a block times its part of R is off."""
        own = times(self.size[node], times(self.error[node], solution) + rounded) + beside
        return times(self.echo[node], own)

    def _merged(
        self,
        rows: tuple[int, int, int],
        x: tuple[Array, Array],
        y: tuple[Array, Array],
        whole: Array,
        solution: Array,
    ) -> tuple[Array, Array]:
        """Row norms of Phi and G applied, of rows a to b merged at m from those of both blocks."""
        a, m, b = rows
        merge, place = self.merges[m], np.s_[..., : b - m, a:m]
        first, across = np.s_[..., a:m, a:m], np.s_[..., m:b, a:m]
        right, known = whole[..., a:m], solution[..., a:m]
        error = self._error(first, *x, known)
        found = known + error
        p = times(self.error[first], found) + x[0]
        moved = times(merge.ax[place], p) + times(merge.a[place], x[1]) + times(self.error[across], found)
        dz = times(merge.dz[place], right)
        off = times(self.inverse_error[..., m:b, m:b], moved + dz)
        g = y[1] + times(merge.ya[place], x[1]) + off
        left = times(merge.left_db[place], right)
        turned = times(merge.dw[place], found) + times(merge.right_db[place], right)
        f = np.concatenate([x[0], y[0] + dz], axis=-1)
        return f * UP, np.concatenate([x[1], g + np.maximum(left, turned)], axis=-1) * UP


def system(strict: Enclosed, error: Array, rounding: Rounding) -> System:
    """From M and the bound of the computed M's error."""
    c = strict.mid.shape[-1]
    inverse = unit_lower_inverse(strict)
    size, below = inverse.upper, np.tri(c, k=-1)
    places = np.arange(float(c))
    computed = strict.upper + error
    whole = backward(computed, error, rounding)
    by_rows = size @ whole
    found = size + echoes(by_rows) @ by_rows @ size * UP
    # Of one column, from its own row on.
    entry = rounding.summed(np.maximum(places[:, None] - places, 0), others=1, among=c)
    rows = below * (entry * (computed @ found) + rounding.tiny * c) * UP
    echo = echoes(size @ error)
    rounded, beside = rows.copy(), np.zeros_like(rows)
    off = echo @ (size @ (error @ size + rounded)) * UP
    merges: dict[int, _Merge] = {}
    if c > BLOCK:
        exact = _exact(strict, inverse)
        for apart in range(1, -(-c // BLOCK)):
            merges = {m: _merge(m, *x, size + off, error, off, rounding) for m, x in exact.items()}
            p = error @ (size + off) + rounded
            _extend(apart, merges, error, size + off, off, p, rounded, beside)
            off = echo @ (size @ (error @ size + rounded) + beside) * UP
        merges = {m: _merge(m, *x, size + off, error, off, rounding) for m, x in exact.items()}
    return System(strict, inverse, size, error, rounded, beside, off, whole, echo, rows, merges)


def backward(computed: Array, error: Array, rounding: Rounding) -> Array:
    """`System.backward`, from upper bounds of the computed M's entries."""
    c = computed.shape[-1]
    places = np.arange(float(c))[:, None]
    # Row i is one sum of i products and the right-hand side, in any order; the first row is not computed.
    row = np.where(places > 0, rounding.summed(places, others=1, among=c), 0.0)
    return np.asarray((error + row * (computed + np.eye(c)) + np.tri(c, k=-1) * rounding.tiny * c) * UP)


def echoes(gain: Array) -> Array:
    """(I - gain)^-1 for a lower triangular non-negative matrix, rounded up; not finite where a diagonal entry
    is not below 1.

    With D the diagonal and N = (I - D)^-1 (gain - D): (I + N)(I + N^2)(I + N^4)... (I - D)^-1.
    """
    c = gain.shape[-1]
    own = np.diagonal(gain, axis1=-2, axis2=-1) * UP
    scale = np.where(own < 1, UP / np.where(own < 1, 1 - own, 1.0), np.inf)
    power = scale[..., None] * np.tril(gain, -1) * UP
    found, covered = power + np.eye(c), 2
    while covered < c:
        power = power @ power * UP
        found = (found + found @ power) * UP
        covered *= 2
    return np.asarray(found * scale[..., None, :] * UP)


def _exact(strict: Enclosed, inverse: Enclosed) -> dict[int, tuple[Array, Array, Array]]:
    """Per row m a merge may be at: sizes of A, A X and Y A, of all rows from m on and columns before."""
    found = {}
    for m in range(BLOCK, strict.mid.shape[-1], BLOCK):
        a = strict[..., m:, :m]
        ax, ya = product(a, inverse[..., :m, :m]).upper, product(inverse[..., m:, m:], a).upper
        found[m] = a.upper, ax, ya
    return found


def _merge(
    m: int, a: Array, ax: Array, ya: Array, found: Array, error: Array, off: Array, rounding: Rounding
) -> _Merge:
    """The roundings of a merge at row m, from bounds ``found`` of the computed inverse's entries."""
    rows, columns = a.shape[-2:]
    in_rows = rounding.summed(np.arange(1.0, rows + 1)[:, None], among=rows)
    in_columns = rounding.summed(np.arange(columns, 0.0, -1.0), among=columns)
    da, flush = error[..., m:, :m], rounding.tiny * (rows + columns)
    x, y, dy = found[..., :m, :m], found[..., m:, m:], off[..., m:, m:]
    taken = (a + da) @ x
    dz = in_columns * taken + flush
    z = ax + a @ off[..., :m, :m] + da @ x + dz
    dw = in_rows * (y @ (a + da)) + flush
    w = ya + dy @ a + y @ da + dw
    parts = ax, ya, dz, in_rows * (y @ z) + flush, dw, in_columns * (w @ x) + flush
    return _Merge(a, *(np.asarray(part * UP) for part in parts))


def _extend(
    apart: int,
    merges: dict[int, _Merge],
    error: Array,
    found: Array,
    off: Array,
    p: Array,
    rounded: Array,
    beside: Array,
) -> None:
    """Phi and G of the blocks of sixteen that far below the diagonal, from those nearer to it."""
    edges = [*range(0, found.shape[-1], BLOCK), found.shape[-1]]
    blocks = [slice(*pair) for pair in itertools.pairwise(edges)]
    for first, last in zip(blocks, blocks[apart:], strict=False):
        place = np.s_[..., last, first]
        for m in range(first.stop, last.start + 1, BLOCK):
            merge, left, between = merges[m], slice(m, last.stop), slice(first.start, m)
            to_last, to_left = slice(last.start - m, last.stop - m), slice(0, last.stop - m)
            x, gx = found[..., between, first], beside[..., between, first]
            z, dz = merge.ax[..., to_left, first], merge.dz[..., to_left, first]
            moved = merge.ax[..., to_left, between] @ p[..., between, first]
            moved = moved + merge.a[..., to_left, between] @ gx + error[..., left, between] @ x + dz
            f = rounded[..., last, left] @ z + dz[..., to_last, :]
            g = beside[..., last, left] @ z + merge.ya[..., to_last, between] @ gx
            g = g + off[..., last, left] @ moved
            turned = merge.dw[..., to_last, between] @ x + merge.right_db[..., to_last, first]
            g = g + np.maximum(merge.left_db[..., to_last, first], turned)
            rounded[place] = np.maximum(rounded[place], f * UP)
            beside[place] = np.maximum(beside[place], g * UP)

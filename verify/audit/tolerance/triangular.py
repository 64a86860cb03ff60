"""How far a triangular system solved by substitution, in one piece or in blocks, lies from its solution."""

import itertools
from dataclasses import dataclass

import numpy as np

from verify.audit.case import Array
from verify.audit.tolerance.chunk_scores import Rounding
from verify.audit.tolerance.enclosed import UP, Enclosed, product, times, unit_lower_inverse

_BLOCK = 16
"""Rows that are solved one after another; what is wider may be merged from blocks at multiples of this."""


@dataclass(frozen=True, eq=False)
class System:
    """I + M, M strictly lower triangular ``[..., C, C]``, and what computing with it errs by.

    Args:
        inverse: T of the exact system.
        size: upper bounds of the inverse's entries.
        before, beside: bounds of the entries of F and G, where T~ = T (I + F) + G is the computed inverse: by
            substitution row by row, or in blocks of 16 rows and more that are merged by products, in any
            order.
        backward: substitution solves exactly a system that differs by at most this, entry by entry.
    """

    inverse: Enclosed
    size: Array
    before: Array
    beside: Array
    backward: Array

    @property
    def inverse_error(self) -> Array:
        """Bounds of the entries of T~ - T."""
        return np.asarray((self.size @ self.before + self.beside) * UP)

    def solution_error(self, right_error: Array, solution: Array) -> Array:
        """Row norms of the error of one solve by substitution: T (right_error + backward |solution|)."""
        own = times(self.size, right_error + times(self.backward, solution))
        return np.asarray(own + _echo(times(self.size, self.backward.sum(-1)), own))


def system(strict: Enclosed, error: Array, rounding: Rounding) -> System:
    """From M and the bound of the computed M's error."""
    c = strict.mid.shape[-1]
    inverse = unit_lower_inverse(strict)
    size, below = inverse.upper, np.tri(c, k=-1)
    terms = np.arange(1.0, c + 1)[:, None]
    # Row i is one sum of i products and the right-hand side, in any order (Higham, Accuracy and Stability,
    # theorem 8.5); the first row is not computed.
    row = np.where(terms > 1, rounding.after(terms), 0.0)
    computed = strict.upper + error
    backward = (error + row * (computed + np.eye(c)) + below * rounding.tiny * c) * UP
    before = below * _by_rows(size, backward)
    beside = np.zeros_like(before)
    if c > _BLOCK:
        before, beside = _merged(strict, inverse, size, error, before, rounding)
    return System(inverse, size, before, beside, backward)


def _echo(gain: Array, own: Array) -> Array:
    """With x <= own + gain max(x) row by row: what exceeds own."""
    most = gain.max(-1, initial=0.0)
    worst = own.max(-1, initial=0.0) / np.where(most < 1, 1 - most, np.nan)
    return np.asarray(gain * worst[..., None] * UP)


def _by_rows(size: Array, backward: Array) -> Array:
    """F of T~ = T (I + F), where column by column (I + M + D) T~ = I, |D| <= backward: F = D |T~| at most."""
    own = (backward @ size) * UP
    columns = own.swapaxes(-1, -2)
    gain = np.broadcast_to(own.sum(-1)[..., None, :], columns.shape)
    return np.asarray(own + _echo(gain, columns).swapaxes(-1, -2))


def _merged(
    strict: Enclosed, inverse: Enclosed, size: Array, error: Array, by_rows: Array, rounding: Rounding
) -> tuple[Array, Array]:
    """F and G: of what substitution and every merge of neighbouring blocks gives, the largest entries.

    Between a solved block X before row m and a solved block Y from row m on, with A of M between them, the
    inverse holds B = -Y A X. With X~ = X (I + F) + G for both, and Y (A X) computed,

        B~ - B = B F_X - Y (F_Y Z + dA X~ + dZ) - G_Y Z - Y A G_X + dB,

    Z = A X as computed, dA, dZ, dB what A, Z and B themselves err by. The first two terms are T F in this
    block, the others G. (Y A) X errs instead of dZ by what rounding Y A makes of X, which joins G. Nothing
    but A X and Y A is multiplied by the errors of X and Y: exact products, small where their factors cancel.
    """
    c = size.shape[-1]
    before, beside = by_rows.copy(), np.zeros_like(by_rows)
    edges = [*range(0, c, _BLOCK), c]
    blocks = [slice(*pair) for pair in itertools.pairwise(edges)]
    for apart in range(1, len(blocks)):
        for first, last in zip(blocks, blocks[apart:], strict=False):
            place = np.s_[..., last, first]
            for m in range(first.stop, last.start + 1, _BLOCK):
                f, g = _merge(strict, inverse, size, error, before, beside, (first, last), m, rounding)
                before[place], beside[place] = np.maximum(before[place], f), np.maximum(beside[place], g)
    return before, beside


def _merge(
    strict: Enclosed,
    inverse: Enclosed,
    size: Array,
    error: Array,
    before: Array,
    beside: Array,
    block: tuple[slice, slice],
    m: int,
    rounding: Rounding,
) -> tuple[Array, Array]:
    """F and G of rows ``block[1]`` and columns ``block[0]``, merged at row m by Y (A X) or (Y A) X."""
    first, last = block
    left, between = slice(m, last.stop), slice(first.start, m)
    exact_a, exact_x, exact_y = (
        strict[..., left, between],
        inverse[..., between, between],
        size[..., last, left],
    )
    da, a = error[..., left, between], exact_a.upper
    fy, gy = before[..., last, left], beside[..., last, left]
    fx, gx = before[..., between, first], beside[..., between, first]
    dy = exact_y @ before[..., left, left] + gy
    y, x = exact_y + dy, size[..., between, first] + size[..., between, between] @ fx + gx
    ax, ya = product(exact_a, exact_x).upper, product(inverse[..., last, left], exact_a).upper
    in_rows = rounding.after(np.arange(last.start, last.stop)[:, None] - m + 1.0)
    in_columns = rounding.after(m - np.arange(first.start, first.stop) * 1.0)
    flush = rounding.tiny * (last.stop - first.start)
    dz = ((a + da) @ x) * in_columns + flush
    z = ax[..., : first.stop - first.start] + ax @ fx + a @ gx + da @ x + dz
    rounded_ya = in_rows * (y @ (a + da)) + flush
    computed_ya = ya + dy @ a + y @ da + rounded_ya
    f = fy @ z + (da @ x + dz)[..., last.start - m :, :]
    g = gy @ z + ya @ gx + flush
    g = g + np.maximum(in_rows * (y @ z), rounded_ya @ x + in_columns * (computed_ya @ x))
    return np.asarray(f * UP), np.asarray(g * UP)

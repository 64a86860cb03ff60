"""How far an inverse by doubling, (I - M)(I + M^2)(I + M^4)..., lies from that of I + M.

The powers of M may be far larger than the inverse, in which they cancel, and their roundings with them (claim
kda.neumann-exact-unstable). With P_k the exact powers of the computed M, N_k the products so far and
E_k, F_k bounds of what their computed counterparts are off, entry by entry,

    E_{k+1} = |P_k| E_k + E_k |P_k| + E_k^2 + gamma (|P_k| + E_k)^2,
    F_{k+1} = F_k (I + |P|) + |N_k| E + F_k E + gamma (|N_k| + F_k)(I + |P| + E),   P = P_{k+1}, E = E_{k+1},

or with both factors of N exchanged: the larger entry of both orders. What M itself is off moves the inverse
as in `triangular`; that of Diag(beta) M Diag(beta)^-1, which kernels may invert instead, errs by as much in
proportion.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from verify.audit.case import Array
from verify.audit.tolerance.worst_case import triangular
from verify.audit.tolerance.worst_case.chunk_scores import Rounding
from verify.audit.tolerance.worst_case.enclosed import UP, Enclosed, product, times, unit_lower_inverse
from verify.audit.tolerance.worst_case.triangular import System

_ROOM = 2.0**-30
"""Powers above this part of the largest number of their format may overflow with what they multiply."""


@dataclass(frozen=True, eq=False)
class Doubled(System):
    """As `System`: Phi = 0, and G is all that doubling errs by."""

    @property
    def starts(self) -> list[int]:
        return [0]

    def applied(self, left: Sequence[Array], solution: Array) -> tuple[Array, Array]:
        beside = times(self.beside, left[0])
        nothing = np.zeros_like(beside)
        error = self._error(np.s_[..., :, :], nothing, beside, solution)
        return times(self.error, solution + error), beside


def system(strict: Enclosed, error: Array, rounding: Rounding) -> Doubled:
    """From M and the bound of the computed M's error."""
    inverse = unit_lower_inverse(strict)
    size, nothing = inverse.upper, np.zeros_like(error)
    echo = triangular.echoes(size @ error)
    beside = _rounded(strict, error, rounding)
    off = (echo @ (size @ (error @ size)) + beside) * UP
    backward = triangular.backward(strict.upper + error, error, rounding)
    return Doubled(strict, inverse, size, error, nothing, beside, off, backward, echo, nothing, {})


def _rounded(strict: Enclosed, error: Array, rounding: Rounding) -> Array:
    """G: F of the last product."""
    c = strict.mid.shape[-1]
    unit, terms = np.eye(c), np.arange(float(c))
    # Entry (i, j) of a product of lower triangular matrices; the product and the sum with it.
    gamma = rounding.summed(np.maximum(terms[:, None] - terms, 0) + 1, others=1, among=c)
    flush = rounding.tiny * c * np.tri(c, k=-1)
    power, moved, lost = strict, error, np.zeros_like(error)
    made, shifted = Enclosed(unit - strict.mid, strict.rad), error
    off, covered = np.zeros_like(error), 2
    while covered < c:
        size = (power.upper + moved) * UP
        whole = size + lost
        lost = (size @ lost + lost @ size + lost @ lost + gamma * (whole @ whole) + flush) * UP
        moved = (power.upper @ moved + moved @ power.upper + moved @ moved) * UP
        power = product(power, power)
        factor = Enclosed(power.mid + unit, power.rad)
        size, held = (factor.upper + moved) * UP, (made.upper + shifted) * UP
        wholes = held + off, size + lost
        orders = (
            off @ size + held @ lost + off @ lost + gamma * (wholes[0] @ wholes[1]),
            size @ off + lost @ held + lost @ off + gamma * (wholes[1] @ wholes[0]),
        )
        off = (np.maximum(*orders) + flush) * UP
        shifted = (shifted @ factor.upper + made.upper @ moved + shifted @ moved) * UP
        made = product(made, factor)
        covered *= 2
        largest = np.maximum(wholes[0] @ wholes[1], whole @ whole).max((-1, -2), keepdims=True)
        off = np.where(largest < _ROOM * np.exp(rounding.vanished), off, np.inf)
    return np.asarray(off)

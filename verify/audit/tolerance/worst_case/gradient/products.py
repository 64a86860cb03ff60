"""Gradients of one token's inputs as products of the state, its gradient and inputs, with bounds of errors.

With the names of `verify.audit.gradient.adjoint`. A product of x and y errs by |x| dy + |y| dx + dx dy, and
by its own sums in any order. The sizes come from a float64 run: both it and the kernel lie within the bounds
of the exact numbers, so that the kernel's are within twice the bound of ours.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.gradient.functional import Cotangent
from verify.audit.reference.recurrence import Setting, Step, steps
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.worst_case.chunk_scores import Rounding, rounding_of
from verify.audit.tolerance.worst_case.enclosed import UP, frobenius, operator_norm, row_norms


@dataclass(frozen=True, eq=False)
class Near:
    """Numbers of our float64 run; they and the kernel's lie within ``off`` of the exact ones, in the norm
    over a token's row or state."""

    mid: Array
    off: Array


@dataclass(frozen=True, eq=False)
class Past:
    """One token of the forward pass: the decayed state, what is missed and written, and the state after."""

    decayed: Near
    miss: Near
    written: Near
    after: Near


@dataclass(frozen=True, eq=False)
class Future:
    """Gradients of the same, of the state after the token first: X, dw, dm, dD."""

    after: Near
    written: Near
    miss: Near
    decayed: Near


@dataclass(frozen=True, eq=False)
class Tokens:
    """What all tokens share.

    ``past``: our run; ``most``: above the sizes of what is multiplied; ``decay`` ``[B, T, HV, X]``: upper
    bounds of the exact decays, ``lost`` those of what a product with a computed one errs by; ``stretch`` the
    norm of the rest of a step; ``key`` lengths; ``group`` heads that share a query and a key.
    """

    c: Setting
    past: Sequence[Step]
    most: float
    v: Array
    d_output: Array
    scale: float
    rounding: Rounding
    decay: Array
    lost: Array
    stretch: Array
    key: Array
    beta: Array
    gated: str
    erases: bool
    group: int

    @classmethod
    def of(cls, case: Case, functional: Cotangent, algorithm: Algorithm) -> "Tokens":
        c = Setting.of(case)
        past = list(steps(case, c))
        most = max(_largest(c, functional, past), float(np.abs(case.v).max(initial=1.0)))
        most *= 1 + float(row_norms(functional.output).max(initial=0.0))
        rounding = rounding_of(case, algorithm, most)
        gates = np.abs(case.log_decay)
        upper = (c.alpha + c.alpha_error) * UP
        logs = rounding.exponent(gates, np.ones(1), gates)
        lost = np.where(upper > 0, rounding.after(logs + 1) * upper, 0.0) + c.alpha_error
        return cls(
            c,
            past,
            most,
            case.v,
            functional.output,
            case.scale,
            rounding,
            decay=upper,
            lost=lost * UP,
            stretch=c.stretch * UP,
            key=row_norms(c.k),
            beta=np.abs(c.strength),
            gated=case.kind.gate,
            erases=case.kind.erases,
            group=case.shape.HV // case.shape.H,
        )

    def flush(self, entries: int, terms: int = 1) -> float:
        """What underflow adds to the length of that many sums."""
        return 2 * terms * self.rounding.tiny * math.sqrt(entries)

    def once(self, roundings: float) -> float:
        """`Rounding.after` of one number."""
        found: float = self.rounding.after(roundings).item()
        return found


def _largest(c: Setting, functional: Cotangent, past: Sequence[Step]) -> float:
    """Above the entries of inputs, states and their gradients, which grow no faster than the steps' norms."""
    widest = ((c.alpha + c.alpha_error).max(-1) * c.stretch) * UP
    key, query, given = row_norms(c.k), row_norms(c.q), row_norms(functional.output)
    carried, most = frobenius(functional.state), 1.0
    for t in reversed(range(len(past))):
        carried = carried + query[:, t] * given[:, t]
        reaches = carried * (1 + key[:, t]) * (1 + np.abs(c.strength[:, t]))
        most = max(most, float(reaches.max(initial=0.0)), float(np.abs(past[t].miss).max(initial=0.0)))
        carried = carried * widest[:, t] * UP
    sizes = [float(x.max(initial=0.0)) for step in past for x in (step.size, row_norms(step.written))]
    return max(most, *sizes, *(float(np.abs(x).max(initial=0.0)) for x in (c.q, c.k, c.strength, carried)))


def fields(tokens: Tokens, past: Past, future: Future, t: int) -> dict[str, Near]:
    """The gradients of one token's inputs, of a kernel that forms them by these products."""
    v = tokens.v.shape[-1]
    d_output = Near(tokens.d_output[:, t], np.zeros(tokens.key[:, t].shape))
    key = _product(tokens, future.after, past.written, added_terms=v + 1 if tokens.erases else 0)
    found = {"v": future.miss}
    if tokens.erases:
        read = _product(tokens, past.decayed, future.miss, added_terms=v + 1)
        key = Near(key.mid - read.mid, (key.off + read.off) * UP)
        found["beta"] = _strength(tokens, future, tokens.c.k[:, t], past.miss)
    if tokens.gated:
        found["g"] = _gate(tokens, past.decayed, future.decayed)
    query = _product(tokens, past.after, d_output, added_terms=4)
    query = Near(tokens.scale * query.mid, abs(tokens.scale) * query.off * UP)
    return found | {"q": query, "k": key}


def _product(tokens: Tokens, x: Near, y: Near, added_terms: int) -> Near:
    """A state times a row; its V terms are summed with as many others and those of all heads that share the
    result, in any order."""
    size, length = operator_norm(x.mid), row_norms(y.mid)
    carried = size * y.off + length * x.off + 3 * x.off * y.off
    inside = row_norms(across(np.abs(x.mid), np.abs(y.mid)))
    inside = inside + 2 * (frobenius(x.mid) * y.off + length * x.off) + 4 * x.off * y.off
    k, terms = x.mid.shape[-2], (y.mid.shape[-1] + added_terms) * tokens.group
    off = carried + tokens.once(terms) * inside + tokens.flush(k, terms)
    return Near(across(x.mid, y.mid), off * UP)


def _strength(tokens: Tokens, future: Future, column: Array, miss: Near) -> Near:
    """Of beta, k^T X m: the product with X first from the left or first from the right."""
    x, y = future.after, future.written
    key, size, length = row_norms(column), frobenius(x.mid), row_norms(miss.mid)
    carried = row_norms(y.mid) * miss.off + length * y.off + 3 * y.off * miss.off
    inside = (across(np.abs(x.mid), np.abs(miss.mid)) * np.abs(column)).sum(-1)
    inside = inside + key * (2 * (size * miss.off + length * x.off) + 4 * x.off * miss.off)
    terms = sum(x.mid.shape[-2:]) + 1
    off = carried + tokens.once(terms) * inside + tokens.flush(1, terms**2)
    return Near((y.mid * miss.mid).sum(-1), off * UP)


def _gate(tokens: Tokens, x: Near, y: Near) -> Near:
    """Of the log decay: rows of D * dD, summed, over the whole of both for a gate per head.

    Or rows of S * dD, summed and then multiplied by the decay. For the vector of all channels' gradients
    sum_c (|D_c| dX)^2 <= max |D_c|^2 dX^2, for their sum Cauchy-Schwarz.
    """
    (k, v), terms = x.mid.shape[-2:], np.abs(x.mid * y.mid).sum(-1)
    mid = (x.mid * y.mid).sum(-1)
    if tokens.gated == "channel":
        sizes = [row_norms(z.mid).max(-1) for z in (x, y)]
        inside, entries, count = row_norms(terms), k, v
    else:
        sizes = [frobenius(z.mid) for z in (x, y)]
        mid, inside, entries, count = mid.sum(-1), terms.sum(-1), 1, k * v
    apart = sizes[0] * y.off + sizes[1] * x.off
    inside = inside + 2 * apart + 4 * x.off * y.off
    off = apart + 3 * x.off * y.off + tokens.once(count + 1) * inside
    return Near(mid, (off + tokens.flush(entries, count)) * UP)


def down(matrix: Array, column: Array) -> Array:
    """[..., K, V] transposed times [..., K]."""
    return np.asarray((column[..., None, :] @ matrix)[..., 0, :])


def across(matrix: Array, row: Array) -> Array:
    """[..., K, V] times [..., V]."""
    return np.asarray((matrix @ row[..., None])[..., 0])

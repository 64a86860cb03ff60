"""The sums that the gradients of a chunk are made of: their sizes, and what rounding them comes to.

Names as in `verify.audit.tolerance.worst_case.gradient.chunked`. A term is a product of inputs, decays and
rows, rounded a known number of times, and every sum errs by that many roundings of the sizes of its terms, in
any order.
"""

from dataclasses import dataclass

import numpy as np

from verify.audit.case import Array
from verify.audit.tolerance.worst_case.chunk_scores import Chunk, Rounding, Scores
from verify.audit.tolerance.worst_case.enclosed import UP, frobenius, row_norms
from verify.audit.tolerance.worst_case.gradient.products import Near

_OURS = 2.0**-40
"""Above the relative errors of our own sums of decayed products, of fewer than 2^12 terms."""


@dataclass(frozen=True, eq=False)
class Rows:
    """One chunk ``[B, HV, C, ...]``: what is read and written, and gradients of it; and ``[B, HV, K, V]`` the
    state before the chunk and the gradient of the one after. ``d_miss`` is None where nothing is erased."""

    chunk: Chunk
    values: Array
    d_output: Array
    written: Near
    d_miss: Near | None
    state: Near
    d_state: Near


@dataclass(frozen=True, eq=False)
class Sums:
    """Bounds of sizes and of roundings, per row ``[B, HV, C]`` or pair of rows ``[B, HV, C, C]``.

    Args:
        keys, columns: lengths of d_ij k_j and of d_ij k_i.
        starts: lengths of the keys decayed from the chunk's start.
        lower, lower_off: scores of keys, and what theirs err by.
        write, write_size: what dw errs by, and the sizes of its terms.
        read, rest: what V - K^ S errs by, and its size.
        strength: what the factor of beta's gradient errs by beside the errors of its terms.
        own: by field, what the last sums of the gradients of q (before its scale), k and g err by.
        carried: ``[B, HV]``, what the gradient of the state before the chunk errs by.
        flush: what underflow adds to a row.
    """

    keys: Array
    columns: Array
    starts: Array
    lower: Array
    lower_off: Array
    write: Array
    write_size: Array
    read: Array
    rest: Array
    strength: Array
    own: dict[str, Array]
    carried: Array
    flush: float

    @classmethod
    def of(
        cls, rows: Rows, made: Scores, rounding: Rounding, gate_sums: str, gated: str, group: int
    ) -> "Sums":
        """``gated``: as `Mechanism.gate`; ``group``: heads that share a query and a key."""
        parts = _Parts(rows, made, rounding, group)
        chunk, k, given = rows.chunk, np.abs(rows.chunk.k), parts.given
        (c, keys), values = k.shape[-2:], rows.values.shape[-1]
        flush = 4.0 * (keys + values + c) ** 2 * rounding.tiny
        decayed = parts.start * k
        read = parts.read(parts.start_off * k, rows.state) + rounding.after(keys + 4) * row_norms(rows.values)
        rest = row_norms(rows.values - (made.start.mid * chunk.k) @ rows.state.mid)
        rest = rest + parts.read(decayed * _OURS, rows.state)
        rest = rest + 2 * row_norms(decayed) * rows.state.off[..., None]
        pairs = np.einsum("bhijk,bhik,bhjk->bhij", parts.off, np.abs(chunk.q), k)
        sizes = np.einsum("bhijk,bhik,bhjk->bhij", parts.decay, np.abs(chunk.q), k)
        write = (pairs * given[..., None]).sum(-2) + parts.read(parts.end_off * k, rows.d_state)
        write_size = (sizes * given[..., None]).sum(-2) + parts.read(parts.end * k, rows.d_state)
        below = np.tri(c, k=-1)
        lower = np.abs(np.einsum("bhijk,bhik,bhjk->bhij", parts.decay, chunk.k, chunk.k)) * below
        lower = lower + _OURS * np.einsum("bhijk,bhik,bhjk->bhij", parts.decay, k, k) * below
        lower_off = (np.einsum("bhijk,bhik,bhjk->bhij", parts.off, k, k) + flush) * below
        scored = (lower * parts.missed[..., None]).sum(-2)
        query, key = parts.query(), parts.key()
        own = {"q": row_norms(query) + flush, "k": row_norms(key) + flush}
        if gated:
            gate = parts.gate(gate_sums != "segment", query, key)
            own["g"] = (gate.sum(-1) if gated == "head" else row_norms(gate)) * UP + flush * c
        return cls(
            keys=row_norms(parts.decay * k[..., None, :, :]),
            columns=row_norms(parts.decay * k[..., :, None, :]),
            starts=row_norms(decayed),
            lower=lower * UP,
            lower_off=lower_off * UP,
            write=write * UP + flush,
            write_size=write_size * UP,
            read=read * UP + flush,
            rest=(rest + read) * UP + flush,
            strength=rounding.after(parts.count) * (write_size + scored) * UP + flush,
            own=own,
            carried=parts.carried() + flush * c,
            flush=flush,
        )


class _Parts:
    """Decays, their roundings, and the sizes of rows."""

    def __init__(self, rows: Rows, made: Scores, rounding: Rounding, group: int) -> None:
        self._rows, chunk = rows, rows.chunk
        (c, keys), values = chunk.k.shape[-2:], rows.values.shape[-1]
        # Scores and rows of products, sums over rows and then over columns, those over heads that share an
        # input among them; the scale and a few products.
        self.count = count = 2 * keys + (values + c + 1) * group + c + 12
        shape = (*chunk.k.shape[:2], c, c, keys)
        decay, logs = _between(chunk, rounding)
        self.decay = np.broadcast_to(decay, shape)
        self.off = np.broadcast_to(np.where(decay > 0, rounding.after(logs + count) * decay, 0.0), shape)
        self.start, self.start_off = self._full(made.start.upper, made.start_log + count, rounding)
        self.end, self.end_off = self._full(made.end.upper, made.end_log + count, rounding)
        self.total, self.total_off = self._full(made.total, made.total_log + count, rounding)
        self.given = row_norms(rows.d_output)
        self._written = row_norms(rows.written.mid) + 2 * rows.written.off
        self.missed = np.zeros_like(self.given)
        if rows.d_miss is not None:
            self.missed = row_norms(rows.d_miss.mid) + 2 * rows.d_miss.off
        self._of_output = self.given[..., None] * self._written[..., None, :] * np.tri(c) * UP
        self._of_miss = self.missed[..., None] * self._written[..., None, :] * np.tri(c, k=-1) * UP
        exact = Near(rows.d_output, np.zeros_like(self.given))
        self._state_read = self._across(rows.state, exact)
        self._state_missed = 0.0 if rows.d_miss is None else self._across(rows.state, rows.d_miss)
        self._end_written = self._across(rows.d_state, rows.written)

    def _full(self, decay: Array, logs: Array, rounding: Rounding) -> tuple[Array, Array]:
        """Of every channel."""
        off = np.where(decay > 0, rounding.after(logs) * decay, 0.0)
        shape = (*decay.shape[:-1], self._rows.chunk.k.shape[-1])
        return np.broadcast_to(decay, shape), np.broadcast_to(off, shape)

    def read(self, matrix: Array, state: Near) -> Array:
        """Row norms of a non-negative matrix [..., C, K] times the sizes of a computed state's entries."""
        return row_norms(matrix @ np.abs(state.mid)) + 2 * row_norms(matrix) * state.off[..., None]

    def _across(self, state: Near, rows: Near) -> Array:
        """Sizes [..., C, K] of the terms of the state times every row, entry by entry."""
        whole = frobenius(state.mid)[..., None]
        off = 2 * state.off[..., None]
        rest = off * (row_norms(rows.mid) + 2 * rows.off) + 2 * whole * rows.off
        return np.asarray((np.abs(rows.mid) @ np.abs(state.mid).swapaxes(-1, -2) + rest[..., None]) * UP)

    def query(self) -> Array:
        """Of the gradients of the scaled queries, [..., C, K]."""
        k = np.abs(self._rows.chunk.k)
        within = np.einsum("bhijk,bhij,bhjk->bhik", self.off, self._of_output, k)
        return np.asarray((self.start_off * self._state_read + within) * UP)

    def key(self) -> Array:
        """Of those of the keys."""
        q, k = np.abs(self._rows.chunk.q), np.abs(self._rows.chunk.k)
        found = self.end_off * self._end_written + self.start_off * self._state_missed
        for pairs, rows in ((self._of_output, q), (self._of_miss, k)):
            found = found + np.einsum("bhijk,bhij,bhik->bhjk", self.off, pairs, rows)
        return np.asarray((found + np.einsum("bhijk,bhij,bhjk->bhik", self.off, self._of_miss, k)) * UP)

    def gate(self, running: bool, query: Array, key: Array) -> Array:
        """Of those of the gates: of every exponent that a gate is part of.

        From running sums, what the gradients of q and k of all later rows err by stays where these cancel.
        """
        q, k = np.abs(self._rows.chunk.q), np.abs(self._rows.chunk.k)
        weights = self._of_output[..., None] * q[..., :, None, :]
        weights = weights + self._of_miss[..., None] * k[..., :, None, :]
        pairs = _from_here(self.off * weights * k[..., None, :, :], -3).cumsum(-2)
        crossing = np.zeros_like(k)
        crossing[..., 1:, :] = np.diagonal(pairs[..., 1:, :-1, :], axis1=-3, axis2=-2).swapaxes(-1, -2)
        starts = self.start_off * (q * self._state_read + k * self._state_missed)
        ends = self.end_off * k * self._end_written
        state, d_state = self._rows.state, self._rows.d_state
        whole = (np.abs(state.mid) * np.abs(d_state.mid)).sum(-1)
        rest = 2 * (frobenius(state.mid) * d_state.off + frobenius(d_state.mid) * state.off)
        whole = self.total_off * (whole + (rest + 4 * state.off * d_state.off)[..., None])
        found = crossing + _from_here(starts, -2) + ends.cumsum(-2) - ends + whole[..., None, :]
        if running:
            found = found + _from_here(q * query + k * key, -2)
            found = found + ends.sum(-2, keepdims=True) + whole[..., None, :]
        return np.asarray(found * UP)

    def carried(self) -> Array:
        """Of the gradient of the state before the chunk."""
        rows, q, k = self._rows, np.abs(self._rows.chunk.q), np.abs(self._rows.chunk.k)
        own = frobenius(self.total_off[..., None] * np.abs(rows.d_state.mid))
        own = own + 2 * self.total_off.max(-1) * rows.d_state.off
        own = own + frobenius((self.start_off * q).swapaxes(-1, -2) @ np.abs(rows.d_output))
        if rows.d_miss is not None:
            keys = self.start_off * k
            own = own + frobenius(keys.swapaxes(-1, -2) @ np.abs(rows.d_miss.mid))
            own = own + 2 * (row_norms(keys) * rows.d_miss.off).sum(-1)
        return np.asarray(own * UP)


def _between(chunk: Chunk, rounding: Rounding) -> tuple[Array, Array]:
    """Upper bounds of the decays from row j to row i >= j ``[B, HV, C, C, X]``, and of the computed ones'
    relative errors, in logarithms."""
    alpha, c = (chunk.alpha + chunk.alpha_error) * UP, chunk.alpha.shape[-2]
    decay = np.zeros((*alpha.shape[:2], c, c, alpha.shape[-1]))
    passed = np.zeros_like(decay)
    for i in range(c):
        decay[..., i, i, :] = 1
        if i:
            decay[..., i, :i, :] = decay[..., i - 1, :i, :] * alpha[..., i, None, :]
            passed[..., i, :i, :] = passed[..., i - 1, :i, :] + chunk.gates[..., i, None, :]
    since, place = chunk.gates.cumsum(-2), np.arange(float(c))
    apart = np.maximum(place[:, None] - place, 0.0)[..., None]
    logs = rounding.exponent(passed, apart, since[..., :, None, :] + since[..., None, :, :])
    return decay * UP, np.where(apart > 0, logs, 0.0)


def _from_here(x: Array, axis: int) -> Array:
    """Sums from each place to the last."""
    return np.asarray(np.flip(np.flip(x, axis).cumsum(axis), axis))

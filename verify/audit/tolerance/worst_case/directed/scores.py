"""The scores of a chunk whose tokens read and write along directions of their own, and their errors.

Row i of the readers reads the state before its token's decay or after it, row i of the queries after it; what
row j has written is decayed by the gates in between. With N, P and T as in `directed_chunked`.
"""

from dataclasses import dataclass

import numpy as np

from verify.audit.case import Array
from verify.audit.reference.recurrence import SMALLEST, U
from verify.audit.tolerance.worst_case.chunk_scores import EXP_ULPS, Rounding
from verify.audit.tolerance.worst_case.enclosed import UP, Enclosed


@dataclass(frozen=True, eq=False)
class Tokens:
    """Those of one chunk ``[B, HV, C, K]``: q is scaled, ``reader`` is minus what a token reads with,
    ``writers`` the vectors that it adds along, ``gates`` the sizes of the log decays."""

    q: Array
    reader: Array
    writers: tuple[Array, ...]
    gates: Array
    alpha: Array
    alpha_error: Array
    before_decay: bool


@dataclass(frozen=True, eq=False)
class Score:
    """One matrix of scores ``[..., C, C]``, and bounds of what the computed one's entries err by."""

    exact: Enclosed
    error: Array


@dataclass(frozen=True, eq=False)
class Decayed:
    """Vectors decayed from or to an edge of the chunk ``[..., C, K]``, and their roundings as ``logs``."""

    exact: Enclosed
    logs: Array


@dataclass(frozen=True, eq=False)
class Scores:
    """``read`` (strictly lower) and ``seen`` (lower): readers and queries by writers, in their order;
    ``reader`` and ``query`` from the chunk's start, ``ends`` the writers to its end, ``total`` over it."""

    read: list[Score]
    seen: list[Score]
    reader: Decayed
    query: Decayed
    ends: list[Decayed]
    total: Array
    total_log: Array


class _Decays:
    """From all earlier rows into one row, and from the chunk's start into it."""

    def __init__(self, tokens: Tokens, rounding: Rounding) -> None:
        self._tokens, self._rounding = tokens, rounding
        shape = tokens.gates.shape
        self.between = Enclosed(np.ones(shape), np.zeros(shape))
        self.into = Enclosed(np.ones(shape)[..., 0, :], np.zeros(shape)[..., 0, :])
        self.passed, self.since = np.zeros(shape), tokens.gates.cumsum(-2)
        self.passed_start = np.zeros(shape)[..., 0, :]

    def enter(self, i: int) -> None:
        """Row i, from the row before it."""
        alpha = Enclosed(self._tokens.alpha[..., i, :], self._tokens.alpha_error[..., i, :])
        self.into = _multiplied(self.into, alpha)
        earlier = np.s_[..., :i, :]
        moved = _multiplied(self.between[earlier], alpha[..., None, :])
        self.between.mid[earlier], self.between.rad[earlier] = moved.mid, moved.rad
        self.passed[earlier] += self._tokens.gates[..., i, None, :]
        self.passed_start = self.passed_start + self._tokens.gates[..., i, :]

    def logs(self, i: int, row: int) -> Array:
        """Roundings of the decays from rows 0 ... i - 1 into the ``row`` that was entered last, i or i - 1.

        A running sum up to row i - 1 is its own or that of row i less one gate, which errs as that of row i.
        """
        terms = np.arange(row, row - i, -1.0)[:, None]
        sums = self.since[..., i, None, :] + self.since[..., :i, :]
        return self._rounding.exponent(self.passed[..., :i, :], terms, sums)

    def start_log(self, i: int, row: int) -> Array:
        """Likewise from the chunk's start."""
        return self._rounding.exponent(self.passed_start, np.asarray(row + 1.0), self.since[..., i, :])


def scores(tokens: Tokens, rounding: Rounding) -> Scores:
    """Row by row, as `chunk_scores.scores`."""
    c, keys = tokens.q.shape[-2:]
    shape, whole = (*tokens.q.shape[:-1], c), tokens.q.shape
    read, seen = ([Score(_zeros(shape), np.zeros(shape)) for _ in tokens.writers] for _ in range(2))
    reader, query = _zeros(whole), _zeros(whole)
    reader_log, query_log = np.zeros(whole), np.zeros(whole)
    decays = _Decays(tokens, rounding)
    # A reader is a product, and may come with its own token's decay.
    made, nowhere = EXP_ULPS + 2, rounding.exponent(np.zeros(1), np.zeros(1), np.zeros(1))
    for i in range(c):
        vectors = (tokens.reader[..., i, :], tokens.q[..., i, :])
        if not tokens.before_decay:
            decays.enter(i)
        row = i - 1 if tokens.before_decay else i
        _place(reader, reader_log, i, vectors[0], decays.into, decays.start_log(i, row) + made)
        for score, writer in zip(read, tokens.writers, strict=True):
            logs = decays.logs(i, row) + made
            _fill(score, i, vectors[0], writer, decays.between[..., :i, :], logs, rounding)
        if tokens.before_decay:
            decays.enter(i)
        _place(query, query_log, i, vectors[1], decays.into, decays.start_log(i, i))
        for score, writer in zip(seen, tokens.writers, strict=True):
            logs = np.broadcast_to(nowhere, (*whole[:-2], i + 1, keys)).copy()
            logs[..., :i, :] = decays.logs(i, i)
            _fill(score, i, vectors[1], writer, decays.between[..., : i + 1, :], logs, rounding)
    places, last = np.arange(c, dtype=float)[:, None], decays.since[..., -1:, :]
    end_log = rounding.exponent(decays.passed, c - 1 - places, decays.since + last)
    end_log[..., -1, :] = nowhere
    return Scores(
        read=read,
        seen=seen,
        reader=Decayed(reader, reader_log),
        query=Decayed(query, query_log),
        ends=[Decayed(decays.between.times(writer), end_log) for writer in tokens.writers],
        total=decays.into.upper,
        total_log=rounding.exponent(last[..., 0, :], np.asarray(float(c)), last[..., 0, :]),
    )


def _zeros(shape: tuple[int, ...]) -> Enclosed:
    return Enclosed(np.zeros(shape), np.zeros(shape))


def _place(held: Enclosed, log: Array, i: int, vector: Array, decay: Enclosed, logs: Array) -> None:
    """Row i: a vector decayed from the start; the vector itself is known up to two units."""
    found = decay.times(vector)
    held.mid[..., i, :] = found.mid
    held.rad[..., i, :] = (found.rad + 4 * U * np.abs(found.mid)) * UP
    log[..., i, :] = logs


def _fill(
    score: Score, i: int, vector: Array, writer: Array, decay: Enclosed, logs: Array, rounding: Rounding
) -> None:
    """Row i: as many scores as there are decays."""
    n, keys = decay.mid.shape[-2:]
    terms = vector[..., None, :] * writer[..., :n, :]
    sizes = np.abs(terms) * decay.upper * UP
    score.exact.mid[..., i, :n] = (terms * decay.mid).sum(-1)
    lost = sizes * (keys + 8) * U + np.abs(terms) * decay.rad + SMALLEST
    score.exact.rad[..., i, :n] = lost.sum(-1) * UP
    # The scale, two decays and the product, and the sum in any order.
    computed = rounding.after(logs + keys + 6) * sizes + 8 * rounding.tiny
    score.error[..., i, :n] = computed.sum(-1) * UP


def _multiplied(x: Enclosed, y: Enclosed) -> Enclosed:
    """Of numbers of [0, 1]."""
    mid = x.mid * y.mid
    return Enclosed(mid, (x.mid * y.rad + x.rad * (y.mid + y.rad) + U * mid + SMALLEST) * UP)

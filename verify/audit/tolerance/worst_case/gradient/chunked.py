"""How far any rounding may take the gradients of a chunked kernel from the exact ones.

Let S be the state before a chunk and dS the gradient of the one after it, computed within E and F of the
exact ones. With the names of `verify.audit.tolerance.worst_case.chunked` and of
`verify.audit.gradient.adjoint`, row by row, d_ij the decays between rows and P, L the scores of queries and
keys with keys:

    dw = P^T do + K_ dS,   dm = T^T (beta dw),   d_written = dw - L^T dm,
    dq_i = e^G_i S do_i + sum_j (do_i . w_j) d_ij k_j,   dk likewise,   dS <- Diag(d) dS + Q^T do - K^T dm.

All of these are what the recurrence gives for the states and gradients that S, dS and the computed w and dm
make: a token's state is e^G_i S + sum_j d_ij k_j w_j^T, its gradient likewise. So errors of S and dS travel
as in the recurrence, by steps that do not lengthen; those that w and dm have beside that, `Solved`, reach
other rows by one key each; and the rest are roundings of sums of known terms, in `gradient_sums`.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.gradient.functional import Cotangent
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.worst_case import chunked
from verify.audit.tolerance.worst_case.chunk_scores import Chunk, rows_of, scores
from verify.audit.tolerance.worst_case.enclosed import UP, row_norms, times
from verify.audit.tolerance.worst_case.gradient.products import Future, Near, Past, Tokens, fields
from verify.audit.tolerance.worst_case.gradient.recurrent import stacked, walk
from verify.audit.tolerance.worst_case.gradient.sums import Rows, Sums
from verify.audit.tolerance.worst_case.triangular import System, system


def bounds(case: Case, functional: Cotangent, algorithm: Algorithm) -> dict[str, Near]:
    """As `verify.audit.tolerance.worst_case.gradient.recurrent.bounds`."""
    s, rows = case.shape, rows_of(case, algorithm)
    with np.errstate(invalid="ignore", over="ignore"):
        past, future, before = walk(case, functional, Tokens.of(case, functional, _ours(algorithm)))
        tokens = Tokens.of(case, functional, algorithm)
        state = np.zeros((s.B, s.HV, s.K, s.V)) if case.initial_state is None else case.initial_state
        error, found = np.zeros((s.B, s.HV)), list[dict[str, Near]]()
        for first in reversed(range(0, s.T, rows)):
            part = slice(first, min(first + rows, s.T))
            start = past[first - 1].after if first else Near(state, np.zeros((s.B, s.HV)))
            end = functional.state if part.stop == s.T else _carried(tokens, future[part.stop], part.stop)
            reached = chunked.bounds(case.slice(0, first, case.initial_state), algorithm)[1]
            run = _Run(tokens, case, algorithm, part, past[part], future[part], start, end, reached, error)
            found = [*run.fields(), *found]
            error = run.before()
        return stacked(case, found, Near(before.mid, (error + before.off) * UP))


def _ours(algorithm: Algorithm) -> Algorithm:
    """What our float64 run is."""
    return dataclasses.replace(
        algorithm,
        form="recurrent",
        chunk_size=None,
        compute_dtype="float64",
        storage_dtype="",
        gate_sums="segment",
    )


def _carried(tokens: Tokens, later: Future, t: int) -> Array:
    """The gradient of the state before token t."""
    return np.asarray(tokens.c.alpha[:, t, ..., None] * later.decayed.mid)


@dataclass(frozen=True, eq=False)
class Solved:
    """What a chunk's rows err by ``[B, HV, C]`` beside what errors of the states make of them: of what is
    missed and written, of its gradient dm, and of the gradient of what is written."""

    miss: Array
    written: Array
    d_miss: Array
    d_written: Array


class _Run:
    """One chunk, with the error of the state before it and of the gradient of the one after it."""

    def __init__(
        self,
        tokens: Tokens,
        case: Case,
        algorithm: Algorithm,
        part: slice,
        past: Sequence[Past],
        future: Sequence[Future],
        start: Near,
        end: Array,
        before: Array,
        after: Array,
    ) -> None:
        c = tokens.c
        whole = (c.q, c.k, c.strength, np.abs(case.log_decay), c.alpha, c.alpha_error)
        chunk = Chunk(*(x[:, part].swapaxes(1, 2) for x in whole))
        self._tokens, self._part, self._past, self._future = tokens, part, past, future
        self._before, self._after, self._rounding = before, after, tokens.rounding
        made = scores(chunk, tokens.rounding)
        self._system = system(made.kk, made.kk_error, tokens.rounding) if tokens.erases else None
        rows = Rows(
            chunk=chunk,
            values=case.v[:, part].swapaxes(1, 2),
            d_output=tokens.d_output[:, part].swapaxes(1, 2),
            written=_rows(past, "written"),
            d_miss=_rows(future, "miss") if tokens.erases else None,
            state=Near(start.mid, (before + start.off) * UP),
            d_state=Near(end, (after + 2 * future[-1].after.off) * UP),
        )
        self._norms = _Norms.of(tokens, part)
        self._wide = self._widened(rows)
        self._sums = Sums.of(
            self._wide, made, tokens.rounding, algorithm.gate_sums, tokens.gated, tokens.group
        )
        self._solved = self._solutions(self._wide)

    def _widened(self, rows: Rows) -> Rows:
        """With what errors of the states add to what is written and its gradient."""
        n, beta = self._norms, np.abs(rows.chunk.beta)
        written = rows.written.off + beta * n.reached * self._before[..., None]
        found = dataclasses.replace(rows, written=Near(rows.written.mid, written * UP))
        if rows.d_miss is None:
            return found
        off = rows.d_miss.off + beta * n.key * n.later * self._after[..., None]
        return dataclasses.replace(found, d_miss=Near(rows.d_miss.mid, off * UP))

    def _solutions(self, wide: Rows) -> Solved:
        """By substitution, or by products with the inverse, whichever errs more."""
        sums, nothing = self._sums, np.zeros_like(self._norms.key)
        if self._system is None or wide.d_miss is None:
            return Solved(nothing, nothing, sums.write, sums.write)
        solved, after, beta = self._system, self._rounding.after, np.abs(wide.chunk.beta)
        c = beta.shape[-1]
        miss = _rows(self._past, "miss")
        size = row_norms(miss.mid) + miss.off + self._norms.reached * self._before[..., None]
        inverse = (solved.size + solved.inverse_error) * UP
        by_inverse = times(solved.size, sums.read) + times(solved.inverse_error, sums.rest)
        by_inverse = by_inverse + after(c + 2) * times(inverse, sums.rest)
        missed = np.maximum(by_inverse, solved.solution_error(sums.read, size)) + sums.flush
        written = beta * (missed + after(1) * (size + missed)) * UP + sums.flush
        d_miss = self._adjoint(solved, wide)
        length = row_norms(wide.d_miss.mid) + 2 * (wide.d_miss.off + d_miss)
        scores, scores_off = sums.lower.swapaxes(-1, -2), sums.lower_off.swapaxes(-1, -2)
        d_written = sums.write + times(scores, d_miss) + times(scores_off, length)
        d_written = d_written + after(c + 2) * (sums.write_size + times(scores, length)) + sums.flush
        return Solved(missed, written, d_miss, d_written * UP)

    def _adjoint(self, solved: System, wide: Rows) -> Array:
        """What dm = T^T (beta dw) errs by, from dw or from its terms."""
        sums, after, beta = self._sums, self._rounding.after, np.abs(wide.chunk.beta)
        (c, keys), size = wide.chunk.k.shape[-2:], solved.size.swapaxes(-1, -2)
        assert wide.d_miss is not None
        right = beta * (sums.write + after(2) * sums.write_size) * UP
        off = solved.inverse_error.swapaxes(-1, -2)
        term = beta * sums.write_size * UP
        by_inverse = times(size, right) + times(off, term) + after(2 * c + keys + 6) * times(size + off, term)
        # Substitution from the last row on solves exactly a system that differs by at most this.
        strict = sums.lower * beta[..., None, :]
        lost = sums.lower_off * beta[..., None, :]
        moved = (lost + after(c + 1) * (strict + lost + np.eye(c))).swapaxes(-1, -2) * UP
        length = row_norms(wide.d_miss.mid) + 2 * wide.d_miss.off
        own = times(size, right + times(moved, length))
        gain = times(size, moved.sum(-1))
        most = gain.max(-1, initial=0.0)
        worst = own.max(-1, initial=0.0) / np.where(most < 1, 1 - most, np.nan)
        return np.asarray((np.maximum(by_inverse, own + gain * worst[..., None]) + sums.flush) * UP)

    def fields(self) -> Iterator[dict[str, Near]]:
        """The gradients of the chunk's tokens."""
        for i, t in enumerate(range(self._part.start, self._part.stop)):
            found = fields(self._tokens, self._past_of(i), self._future_of(i), t)
            own = self._sums.own
            for field, x in found.items():
                if field in own:
                    scale = abs(self._tokens.scale) if field == "q" else 1.0
                    found[field] = Near(x.mid, (x.off + scale * own[field][..., i]) * UP)
                elif field == "beta":
                    missed = self._past_of(i).miss
                    size = row_norms(missed.mid) + 2 * missed.off
                    off = x.off + self._sums.strength[..., i] * size
                    found[field] = Near(x.mid, off * UP)
            yield found

    def _past_of(self, i: int) -> Past:
        n, before, x = self._norms, self._before, self._past[i]
        off = self._sums.keys * self._solved.written[..., None, :]
        written = np.abs(self._wide.chunk.beta[..., i]) * n.reached[..., i] * before
        return Past(
            decayed=_moved(x.decayed, n.earlier[..., i] * before + off[..., i, :i].sum(-1)),
            miss=_moved(x.miss, n.reached[..., i] * before + self._solved.miss[..., i]),
            written=_moved(x.written, written * self._tokens.erases + self._solved.written[..., i]),
            after=_moved(x.after, n.passed[..., i] * before + off[..., i, : i + 1].sum(-1)),
        )

    def _future_of(self, i: int) -> Future:
        n, after, x, solved = self._norms, self._after, self._future[i], self._solved
        reached = n.key[..., i] * n.later[..., i] * after
        gradient, miss = n.later[..., i] * after, reached + solved.d_written[..., i]
        local = np.zeros_like(gradient)
        if self._system is not None:
            local = (self._sums.columns[..., i + 1 :, i] * solved.d_miss[..., i + 1 :]).sum(-1)
            miss = np.abs(self._wide.chunk.beta[..., i]) * reached + solved.d_miss[..., i]
        decayed = n.stretch[..., i] * gradient + local
        decayed = decayed + (n.key[..., i] * solved.d_miss[..., i] if self._system is not None else 0.0)
        return Future(
            after=_moved(x.after, gradient + local),
            written=_moved(x.written, reached + solved.d_written[..., i]),
            miss=_moved(x.miss, miss),
            decayed=_moved(x.decayed, decayed),
        )

    def before(self) -> Array:
        """The bound of the error of the gradient of the state before the chunk."""
        solved = self._sums.starts * self._solved.d_miss if self._system is not None else np.zeros(1)
        return np.asarray((self._norms.whole * self._after + solved.sum(-1) + self._sums.carried) * UP)


@dataclass(frozen=True, eq=False)
class _Norms:
    """Norms ``[B, HV, C]`` of what errors of the states pass through.

    ``passed``: all steps up to a token; ``earlier``: up to its decay; ``reached``: that times its key;
    ``later``: all steps after it; ``whole`` ``[B, HV]``: all of the chunk.
    """

    key: Array
    stretch: Array
    passed: Array
    earlier: Array
    reached: Array
    later: Array
    whole: Array

    @classmethod
    def of(cls, tokens: Tokens, part: slice) -> "_Norms":
        key, stretch, widest = (
            x[:, part].swapaxes(1, 2) for x in (tokens.key, tokens.stretch, tokens.decay.max(-1))
        )
        step = stretch * widest * UP
        passed = step.cumprod(-1) * UP
        ones = np.ones_like(passed[..., :1])
        earlier = np.concatenate([ones, passed[..., :-1]], -1) * widest * UP
        behind = np.concatenate([step[..., 1:], ones], -1)[..., ::-1].cumprod(-1)[..., ::-1] * UP
        return cls(key, stretch, passed, earlier, key * earlier * UP, behind, passed[..., -1])


def _moved(x: Near, off: Array) -> Near:
    return Near(x.mid, np.asarray((x.off + off) * UP))


def _rows(run: Sequence[Past] | Sequence[Future], name: str) -> Near:
    """One of the rows of every token, ``[B, HV, C, V]``."""
    found = [getattr(x, name) for x in run]
    return Near(np.stack([x.mid for x in found], 2), np.stack([x.off for x in found], 2))

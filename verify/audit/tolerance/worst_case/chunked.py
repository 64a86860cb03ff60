"""How far any rounding may take a chunked kernel, of a delta rule or linear attention, from the result.

Let S be the exact state before a chunk and E the computed one's distance from it. The exact chunk, applied to
the computed state, ends A E from the exact one, A its step, whose norm is at most the product g of its
tokens' (at most 1 for unit keys and beta in [0, 2], claim kda.transition-spectrum). The computed chunk ends
within `local` of that. Most of `local` lies along the chunk's own keys, and for one chunk more it is known
how much of that A keeps and queries read (`directed_errors`); of the rest only the length is, times g.

Inside, with K^ and Q^ the keys and queries decayed from the chunk's start, K_ those decayed to its end, P the
lower scores of queries and keys, T the inverse of I + M (claim chunk.equals-recurrent):

    R = V - K^ S,   W = Diag(beta) T R,   O = Q^ S + P W,   S' = Diag(d) S + K_^T W.

Every computed factor errs by a known part of itself, and sums of n terms by n roundings, in any order. What R
errs by, row by row, reaches O and S' through the exact products P Diag(beta) T and K_^T Diag(beta) T, whose
entries stay small where those of their factors cancel; the inverse errs by what `triangular` derives, whose
entries are of the size of the inverse itself (at most beta, claim chunk.inverse-bounded), and that error is
multiplied by R. Nothing is bounded operation by operation across the triangular solve.
"""

import itertools
from collections.abc import Iterator

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.reference.recurrence import Setting, steps
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.worst_case import doubled
from verify.audit.tolerance.worst_case.chunk_scores import Chunk, Rounding, rounding_of, rows_of, scores
from verify.audit.tolerance.worst_case.corrections import Exact, State, Through, Writing
from verify.audit.tolerance.worst_case.directed.errors import StateError
from verify.audit.tolerance.worst_case.enclosed import UP, frobenius, row_norms, times
from verify.audit.tolerance.worst_case.triangular import system


def bounds(case: Case, algorithm: Algorithm) -> tuple[Array, Array]:
    """The distance from the exact result, before storing it: of the output's rows ``[B, T, HV]`` (2-norm) and
    of the final state ``[B, HV]`` (Frobenius). Infinite or NaN where nothing finite can be said.
    """
    s = case.shape
    error, output = StateError(np.zeros((s.B, s.HV))), [np.zeros((s.B, s.HV, 0))]
    with np.errstate(invalid="ignore", over="ignore"):
        for chunk, exact, rounding in _chunks(case, algorithm):
            rows, error = _local(chunk, exact, error, rounding, case.kind.erases, algorithm)
            output.append(rows)
        size = error.size
    return np.concatenate(output, axis=-1).swapaxes(1, 2), size


def _chunks(case: Case, algorithm: Algorithm) -> Iterator[tuple[Chunk, Exact, Rounding]]:
    """The chunks in order; no more than one state is held at a time."""
    c, s = Setting.of(case), case.shape
    before = np.zeros((s.B, s.HV, s.K, s.V)) if case.initial_state is None else case.initial_state
    before_error, tokens = np.zeros((s.B, s.HV)), steps(case, c)
    widest = (c.alpha + c.alpha_error).max(-1) * UP
    growth, reach = c.stretch * widest * UP, c.key_norm * widest * UP
    whole = (c.q, c.k, c.strength, np.abs(case.log_decay), c.alpha, c.alpha_error, case.v, growth, reach)
    rows = rows_of(case, algorithm)
    for first in range(0, s.T, rows):
        parts = (x[:, first : first + rows].swapaxes(1, 2) for x in whole)
        q, k, beta, gates, alpha, alpha_error, v, grown, reached = parts
        run = list(itertools.islice(tokens, q.shape[2]))
        sizes = [float(np.abs(x).max(initial=1.0)) for x in (q, k, v, beta, before)]
        sizes += [float(x.max(initial=1.0)) for step in run for x in (step.size, np.abs(step.miss))]
        passed = grown.cumprod(-1) * UP
        earlier = np.concatenate([np.ones_like(passed[..., :1]), passed[..., :-1]], axis=-1)
        exact = Exact(
            before=before,
            before_error=before_error,
            values=v,
            miss=np.stack([step.miss for step in run], axis=2),
            miss_error=np.stack([step.miss_error for step in run], axis=2),
            passed=passed,
            reached=reached * earlier * UP,
        )
        before, before_error = run[-1].after, run[-1].after_error
        yield Chunk(q, k, beta, gates, alpha, alpha_error), exact, rounding_of(case, algorithm, max(sizes))


def _local(
    chunk: Chunk, exact: Exact, wrong: StateError, rounding: Rounding, erases: bool, algorithm: Algorithm
) -> tuple[Array, StateError]:
    """Bounds of the errors of a chunk's output rows and of the state after it."""
    error = wrong.size
    made = scores(chunk, rounding)
    (c, keys), values = chunk.k.shape[-2:], exact.values.shape[-1]
    state = State(error, (error + exact.before_error) * UP, np.abs(exact.before))
    flush = 8 * rounding.tiny
    # Two decays, the scale, the product; the sum with P W in any order; the read state's entries.
    read = (
        rounding.summed(keys, c, others=made.start_log + 6) * np.abs(chunk.q) * made.start.upper + flush
    ) * UP
    kept = (rounding.chained(c, made.total_log + 3) * made.total + flush) * UP
    lost = (rounding.summed(c, others=made.end_log + 4) * made.end.upper * np.abs(chunk.k) + flush) * UP
    weigh = rounding.summed(keys, c, others=4)
    weights = (made.qk_error * (1 + weigh) + weigh * made.qk.upper) * UP
    beta = np.abs(chunk.beta)
    writes = np.abs(exact.miss) * beta[..., None]
    # How far the exact chunk's writes at the computed state are from those the reference has.
    unsure = beta * (exact.miss_error + erases * exact.reached * error[..., None]) * UP
    rows = state.read(read) + row_norms(weights @ writes)
    rows = rows + rounding.tiny * values**0.5 * (keys + c + 4)
    kept_state = frobenius(kept[..., None] * state.size) + kept.max(-1) * state.gap
    ending = kept_state + frobenius(lost.swapaxes(-1, -2) @ writes)
    ending = ending + rounding.tiny * (keys * values) ** 0.5 * (c + 4)
    length, passed, read_rows = row_norms(lost), exact.passed[..., -1], row_norms(chunk.q) * exact.passed * UP
    if not erases:
        ending = ending + passed * error + (length * unsure).sum(-1)
        return (rows + read_rows * error[..., None] + times(weights, unsure)) * UP, StateError(ending * UP)
    inverted = doubled.system if algorithm.inverse == "doubling" else system
    solved = inverted(made.kk, made.kk_error, rounding)
    through = Through.of(chunk, made, solved)
    ways = Writing(chunk, exact, state, made, solved, rounding).ways(algorithm.corrections)
    written = [unsure + through.written(way) for way in ways]
    outputs = [times(weights, x) + through.output(way) for x, way in zip(written, ways, strict=True)]
    rests = [(length * x).sum(-1) + way.mixed_state for x, way in zip(written, ways, strict=True)]
    rows = rows + wrong.read(through.reads, read_rows) + np.maximum.reduce(outputs)
    ending = ending + wrong.after(through.step, passed) + np.maximum.reduce(rests)
    return rows * UP, StateError(ending * UP, through.state(ways))

"""How far any rounding may take a chunked kernel of DPLR or GDN-2 from the exact result.

As in `chunked`, a chunk adds `local` to the error of the state before it. That error is carried through the
chunk by its exact transitions, which need not contract: `reference.carried`. With X the rows that are added
along b (DPLR: what a token reads; GDN-2: what it writes), A the readers with their sign turned, decayed from
the chunk's start, Q the queries, B and K_ the vectors b and k decayed to its end,

    R = N V - A S,   X = T R,   O = Q S + P X + P' V,   S' = Diag(d) S + B^T X + K_^T V,

N, P and P' the scores of readers by k, of queries by b and by k, T the inverse of I + M, M those of readers
by b. GDN-2 reads and writes at once: b is k, R = V - A S, and the terms P' and K_ are not there. No claim
bounds T here; its entries, and those of P T and B^T T, are computed from the data. What X errs by is derived
in `corrections` and `triangular` as for the delta rule.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.reference.carried import Carried
from verify.audit.reference.recurrence import U
from verify.audit.reference.transition import Setting, Step, steps
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.worst_case.chunk_scores import Chunk, Rounding, rounding_of, rows_of
from verify.audit.tolerance.worst_case.chunk_scores import Scores as Plain
from verify.audit.tolerance.worst_case.corrections import Correction, Exact, State, Writing
from verify.audit.tolerance.worst_case.directed.scores import Scores, Tokens, scores
from verify.audit.tolerance.worst_case.enclosed import (
    UP,
    Enclosed,
    frobenius,
    operator_norm,
    product,
    row_norms,
    times,
)
from verify.audit.tolerance.worst_case.triangular import System, system


class _Part(NamedTuple):
    """One chunk as the reference has it: values V and added rows X [B, HV, C, V], the latter's errors."""

    tokens: Tokens
    values: Array
    before: Array
    before_error: Array
    added: Array
    added_error: Array
    largest: float


class _Carry(NamedTuple):
    """The state's error through one chunk: at its end, and what queries and readers see of it [B, HV, C]."""

    error: Carried
    seen: Array
    read: Array


def bounds(case: Case, algorithm: Algorithm) -> tuple[Array, Array]:
    """As `verify.audit.tolerance.worst_case.chunked.bounds`."""
    s, c = case.shape, Setting.of(case)
    error, output = Carried.nothing(s.B, s.HV, s.K), [np.zeros((s.B, s.HV, 0))]
    first = 0
    with np.errstate(invalid="ignore", over="ignore"):
        for part in _parts(case, c, rows_of(case, algorithm)):
            last = first + part.values.shape[2]
            carry = _carried(c, error, range(first, last))
            rounding = rounding_of(case, algorithm, max(part.largest, float(error.length.max())))
            rows, local = _local(part, error.length, carry, rounding, algorithm)
            error, first = carry.error.grown(local), last
            output.append(rows)
    return np.concatenate(output, axis=-1).swapaxes(1, 2), error.shortest


def _parts(case: Case, c: Setting, rows: int) -> Iterator[_Part]:
    """The chunks in order; no more than one state is held at a time."""
    way, s, tokens = c.way, case.shape, steps(case, c)
    joined = not way.before_decay
    gates = np.broadcast_to(np.abs(case.log_decay), c.alpha.shape)
    # GDN-2 reads with b k and takes it from the value; DPLR adds what it reads with a.
    reader = way.read if joined else -way.read
    writers = (way.key,) if joined else (way.out, way.key)
    for first in range(0, s.T, rows):
        whole = (c.q, reader, gates, c.alpha, c.alpha_error, way.value, *writers)
        q, read, g, alpha, alpha_error, values, *ways = (
            x[:, first : first + rows].swapaxes(1, 2) for x in whole
        )
        run = list(itertools.islice(tokens, q.shape[2]))
        held = np.stack([step.held for step in run], axis=2)
        error = np.stack([step.held_error for step in run], axis=2)
        added, before = (values - held if joined else held), run[0].before
        error = error + 4 * U * (row_norms(values) + row_norms(held))
        yield _Part(
            Tokens(q, read, tuple(ways), g, alpha, alpha_error, way.before_decay),
            values,
            before,
            run[0].before_error,
            added,
            error * UP,
            _largest(run, (q, read, values, added, *ways)),
        )


def _largest(run: list[Step], arrays: tuple[Array, ...]) -> float:
    """Of inputs, states and reads, from 1 on."""
    sizes = [float(np.abs(x).max(initial=1.0)) for x in (run[0].before, *arrays)]
    return max(sizes + [float(step.size.max()) for step in run])


def _carried(c: Setting, error: Carried, tokens: range) -> _Carry:
    seen, read = [], []
    for t in tokens:
        row = c.way.read[:, t] * (1.0 if c.way.before_decay else c.alpha[:, t])
        unsure = c.lengths["read"][:, t] * (c.alpha_error[:, t].max(-1) + 4 * U) * error.length
        read.append((error.along(row) + unsure) * UP)
        error = error.moved(c.transition(t))
        seen.append(error.along(c.q[:, t]) + 2 * U * row_norms(c.q[:, t]) * error.length)
    return _Carry(error, np.stack(seen, axis=-1), np.stack(read, axis=-1))


def _local(
    part: _Part, error: Array, carry: _Carry, rounding: Rounding, algorithm: Algorithm
) -> tuple[Array, Array]:
    """Bounds of the errors of a chunk's output rows, and of what it adds to that of the state."""
    made, after = scores(part.tokens, rounding), rounding.after
    (c, keys), values = part.tokens.q.shape[-2:], part.values.shape[-1]
    sums = len(made.seen) * c
    state = State(error, (error + part.before_error) * UP, np.abs(part.before))
    flush = 8 * rounding.tiny
    # Two decays, the scale, the product; the sum with the scores' products in any order; the state's entries.
    query = (after(made.query.logs + keys + sums + 6) * made.query.exact.upper + flush) * UP
    kept = (after(made.total_log + sums + 3) * made.total + flush) * UP
    rows = state.read(query) + carry.seen + rounding.tiny * values**0.5 * (keys + sums + 4)
    kept_state = frobenius(kept[..., None] * state.size) + kept.max(-1) * state.gap
    ending = kept_state + rounding.tiny * (keys * values) ** 0.5 * (sums + 4)
    # How far the exact chunk's added rows at the computed state are from those the reference has.
    unsure = (part.added_error + carry.read) * UP
    lost = _lost(part, made, rounding)
    for (weights, ends), term in zip(lost, (part.added, part.values), strict=False):
        rows = rows + row_norms(weights @ np.abs(term))
        ending = ending + frobenius(ends.swapaxes(-1, -2) @ np.abs(term))
    outputs, states = [], []
    solved = system(made.read[0].exact, made.read[0].error, rounding)
    plain, whole = _onto(made, None), _onto(made, solved.inverse)
    for x in _ways(part, made, solved, state, carry.read, rounding, algorithm):
        off = unsure + (times(solved.size, x.right) + x.inverse + x.own) * UP
        parts = (
            whole.led(x.right, x.right_length),
            plain.led(x.inverse, x.inverse_length),
            plain.led(x.own, row_norms(x.own)),
        )
        outputs.append(times(lost[0][0], off) + x.mixed + sum(part[0] for part in parts))
        states.append((row_norms(lost[0][1]) * off).sum(-1) + x.mixed_state + sum(part[1] for part in parts))
    return (rows + np.maximum.reduce(outputs)) * UP, (ending + np.maximum.reduce(states)) * UP


def _lost(part: _Part, made: Scores, rounding: Rounding) -> list[tuple[Array, Array]]:
    """By writer: what its scores with queries err by, their products' roundings included, and its ends."""
    (c, keys), after = part.tokens.q.shape[-2:], rounding.after
    sums = len(made.seen) * c
    weigh = after(keys + sums + 4)
    return [
        (
            (score.error * (1 + weigh) + weigh * score.exact.upper) * UP,
            (after(end.logs + sums + 4) * end.exact.upper + 8 * rounding.tiny) * UP,
        )
        for score, end in zip(made.seen, made.ends, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class _Onto:
    """Where errors of C rows go: sizes of P or P T, lengths of the columns of B^T or B^T T, its 2-norm."""

    weigh: Array
    columns: Array
    norm: Array

    def led(self, rows: Array, length: Array) -> tuple[Array, Array]:
        """What the output's rows and the state err by, from the rows' norms and the length of all."""
        output = np.minimum(times(self.weigh, rows), row_norms(self.weigh) * length[..., None])
        return output * UP, np.minimum((self.columns * rows).sum(-1), self.norm * length) * UP


def _onto(made: Scores, inverse: Enclosed | None) -> _Onto:
    weigh, carried = made.seen[0].exact, made.ends[0].exact.transposed
    if inverse is not None:
        weigh, carried = product(weigh, inverse), product(carried, inverse)
    columns = row_norms(carried.upper.swapaxes(-1, -2))
    return _Onto(weigh.upper, columns, (operator_norm(carried.mid) + frobenius(carried.rad)) * UP)


def _ways(
    part: _Part,
    made: Scores,
    solved: System,
    state: State,
    read: Array,
    rounding: Rounding,
    algorithm: Algorithm,
) -> Iterator[Correction]:
    """The corrections of `corrections.Writing`, of strength 1: its keys are decayed readers and writers."""
    ones = np.ones_like(part.tokens.q)
    chunk = Chunk(
        part.tokens.q, ones, ones[..., 0], part.tokens.gates, part.tokens.alpha, part.tokens.alpha_error
    )
    plain = Plain(
        kk=made.read[0].exact,
        kk_error=made.read[0].error,
        qk=made.seen[0].exact,
        qk_error=made.seen[0].error,
        start=made.reader.exact,
        start_log=made.reader.logs,
        end=made.ends[0].exact,
        end_log=made.ends[0].logs,
        total=made.total,
        total_log=made.total_log,
    )
    # Of an error of the state, R and what is left of it once some earlier rows are added hold no more.
    reached = row_norms(made.reader.exact.upper) * state.error[..., None] + times(plain.kk.upper, read) + read
    known, known_error, own = _known(part, made, solved.size + solved.inverse_error, rounding)
    exact = Exact(
        before=part.before,
        before_error=part.before_error,
        values=known,
        miss=part.added,
        miss_error=part.added_error,
        passed=np.zeros_like(read),
        reached=reached * UP / np.where(state.error > 0, state.error, 1.0)[..., None],
        values_error=known_error,
    )
    for way in Writing(chunk, exact, state, plain, solved, rounding).ways(algorithm.corrections):
        yield way if algorithm.corrections == "solved" else way._replace(own=way.own + own)


def _known(part: _Part, made: Scores, inverse: Array, rounding: Rounding) -> tuple[Array, Array, Array]:
    """What R holds besides the state, what the kernel's rows err by, and what those of T N, times V, do."""
    after, c = rounding.after, part.values.shape[-2]
    if len(made.read) == 1:
        # The value comes with its own factor.
        error = (after(1) + 2 * U) * row_norms(part.values) + rounding.tiny * part.values.shape[-1] ** 0.5
        return part.values, error * UP, np.zeros_like(error)
    score, size = made.read[1], np.abs(part.values)
    exact = product(score.exact, Enclosed(part.values, 2 * U * size))
    computed = score.exact.upper + score.error
    rounded = after(c + 2) * computed + rounding.tiny * c
    error = row_norms((score.error + rounded) @ size + exact.rad) * UP
    own = row_norms((after(2 * c + 4) * (inverse @ computed) + rounding.tiny * c) @ size)
    return exact.mid, error, np.asarray(own * (1 + after(part.tokens.q.shape[-1] + 5)) * UP)

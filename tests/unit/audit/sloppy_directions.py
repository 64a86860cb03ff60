"""DPLR and GDN-2 in float64, token by token and in chunks, whose every operation errs as one chooses."""

import numpy as np
from sloppy import INVERSE, Arithmetic, _decays, _substituted, _summed

from verify.audit.case import Case

WRITES = ("inverse", "solve", "factors", "ahead", "mixed")


def recurrent(case: Case, a: Arithmetic, early: bool) -> tuple[np.ndarray, np.ndarray]:
    """Output [B, T, HV, V] and final state; ``early``: GDN-2 reads what it does before the decay, decayed."""
    s, way = case.shape, case.directions
    q = a.moved(case.spread("q") * case.scale)
    value = a.moved(way.value) if case.w is not None else way.value
    state, out = case.initial_state, []
    for t in range(s.T):
        decay = a.decay(case.log_decay[:, t], 0)
        read = way.read[:, t] if way.before_decay else a.moved(way.read[:, t])
        kept = a.moved(decay[..., None] * state)
        source = state if way.before_decay or early else kept
        read = a.moved(decay * read) if early else read
        if way.before_decay:
            held = a.product(read[..., None, :], source)
            added = a.moved(way.out[:, t, ..., None] * held)
            written = a.moved(way.key[:, t, ..., None] * value[:, t, ..., None, :])
            state = a.moved(a.moved(kept + added) + written)
        else:
            held = a.product(-read[..., None, :], source, value[:, t, ..., None, :])
            state = a.moved(kept + a.moved(way.key[:, t, ..., None] * held))
        out.append(a.product(q[:, t, ..., None, :], state)[..., 0, :])
    return np.stack(out, axis=1), state


def chunked(
    case: Case, rows: int, a: Arithmetic, inverse: str, writes: str, decays: str, early: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Likewise in chunks of ``rows``."""
    way = case.directions
    q = a.moved(case.spread("q") * case.scale)
    joined = not way.before_decay
    reader = a.moved(way.read) if joined else -way.read
    value = a.moved(way.value) if joined else way.value
    if early:
        reader = a.moved(a.decay(case.log_decay, 0) * reader)
    tensors = [x.swapaxes(1, 2) for x in (q, reader, way.key if joined else way.out, way.key, value, case.g)]
    state, out = case.initial_state, []
    for first in range(0, case.shape.T, rows):
        part = [x[:, :, first : first + rows] for x in tensors]
        o, state = _chunk(a, *part, state, joined, early or not joined, inverse, writes, decays)
        out.append(o)
    return np.concatenate(out, axis=2).swapaxes(1, 2), state


def _chunk(a, q, reader, added_along, key, v, g, state, joined, early, inverse, writes, decays):
    c = q.shape[-2]
    between, start, end, total = _decays(a, g, decays)
    of_reader, from_start = _earlier(a, g, between, start, decays) if early else (between, start)
    lower, strict = np.tri(c), np.tri(c, k=-1)

    def score(x, decay, y):
        return _summed(a, a.moved(a.moved(x[..., :, None, :] * decay) * y[..., None, :, :]))

    m = score(reader, of_reader, added_along) * strict
    known, n = v, None
    if not joined:
        n = -score(reader, of_reader, key) * strict
        known = a.product(n, v)
    reads, query = a.moved(from_start * reader), a.moved(start * q)
    p = score(q, between, added_along) * lower
    ends, sides = [a.moved(end * added_along)], [p]
    if not joined:
        ends.append(a.moved(end * key))
        sides.append(score(q, between, key) * lower)
    solve, values = INVERSE[inverse](a, m), [] if joined else [v]
    kept = a.moved(total[..., None] * state)
    if writes == "mixed":
        rows = a.product(-reads, state, known)
        sides[0] = a.product(p, solve)
        carried = [a.product(ends[0].swapaxes(-1, -2), solve), *(x.swapaxes(-1, -2) for x in ends[1:])]
    else:
        if writes in ("factors", "ahead"):
            u = a.product(a.product(solve, n), v) if writes == "ahead" and n is not None else None
            u = a.product(solve, known) if u is None else u
            rows = a.product(-a.product(solve, reads), state, u)
        elif writes == "solve":
            rows = _substituted(a, m, a.product(-reads, state, known))
        else:
            rows = a.product(solve, a.product(-reads, state, known))
        carried = [x.swapaxes(-1, -2) for x in ends]
    o = a.product(np.concatenate([query, *sides], -1), np.concatenate([state, rows, *values], -2))
    return o, a.product(np.concatenate(carried, -1), np.concatenate([rows, *values], -2), kept)


def _earlier(a, g, between, start, kind):
    """The decays up to the row before, which stand in the row before, or differ from a row's by its gate."""
    if kind != "running":
        return (
            np.concatenate([np.zeros_like(between[..., :1, :, :]), between[..., :-1, :, :]], axis=-3),
            np.concatenate([np.ones_like(start[..., :1, :]), start[..., :-1, :]], axis=-2),
        )
    sums = a.moved(g.cumsum(-2), np.arange(g.shape[-2])[:, None])
    sums_before = a.moved(sums - g)
    apart = a.moved(sums_before[..., :, None, :] - sums[..., None, :, :])
    below = np.tri(g.shape[-2], k=-1)[..., None]
    return a.decay(np.where(below > 0, apart, 0.0), 0) * below, a.decay(sums_before, 0)

"""A chunked delta rule in float64 whose every operation errs by as much as a format allows, as one chooses.

A sum of n products errs by (1 + u)^n - 1 of the sum of their sizes, which no order of summation exceeds.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from verify.audit.case import Case

Sign = Callable[[tuple[int, ...]], np.ndarray]
INVERSES = ("rows", "left", "right", "blockwise")
WRITES = ("inverse", "solve", "factors", "mixed")
DECAYS = ("sum", "parts", "running")


@dataclass
class Arithmetic:
    """Operations that err by u in the directions that ``sign`` gives."""

    u: float
    sign: Sign

    def moved(self, x: np.ndarray, roundings: np.ndarray | float = 1) -> np.ndarray:
        return x * (1 + ((1 + self.u) ** roundings - 1) * self.sign(x.shape))

    def product(self, a: np.ndarray, b: np.ndarray, *plus: np.ndarray) -> np.ndarray:
        """a b, and further summands, in the worst order."""
        terms = (a != 0).astype(float) @ (b != 0).astype(float) + len(plus)
        size = np.abs(a) @ np.abs(b) + sum(np.abs(x) for x in plus)
        return a @ b + sum(plus) + ((1 + self.u) ** terms - 1) * size * self.sign(size.shape)

    def decay(self, x: np.ndarray, roundings: np.ndarray | float) -> np.ndarray:
        """e^x from a sum with that many roundings, by an exponential that errs by 4 + 2 |x| units."""
        x = x + x * ((1 + self.u) ** roundings - 1) * self.sign(x.shape)
        return np.exp(x) * (1 + (4 + 2 * np.abs(x)) * self.u * self.sign(x.shape))


def run(
    case: Case, rows: int, arithmetic: Arithmetic, inverse: str, writes: str, decays: str
) -> tuple[np.ndarray, np.ndarray]:
    """Output [B, T, HV, V] and final state, chunk by chunk."""
    s = case.shape
    q, k, v = (x.swapaxes(1, 2) for x in (case.spread("q") * case.scale, case.spread("k"), case.v))
    g, beta = case.log_decay.swapaxes(1, 2), case.strength.swapaxes(1, 2)
    q = arithmetic.moved(q)
    state, out = case.initial_state, []
    for first in range(0, s.T, rows):
        part = np.s_[:, :, first : first + rows]
        o, state = _chunk(
            arithmetic, q[part], k[part], v[part], g[part], beta[part], state, inverse, writes, decays
        )
        out.append(o)
    return np.concatenate(out, axis=2).swapaxes(1, 2), state


def _chunk(a, q, k, v, g, beta, state, inverse, writes, decays):
    c = k.shape[-2]
    between, start, end, total = _decays(a, g, decays)
    lower, strict = np.tri(c), np.tri(c, k=-1)
    # Per channel: the terms of a score are decayed before they are added.
    score = [_summed(a, a.moved(a.moved(x[..., :, None, :] * between) * k[..., None, :, :])) for x in (k, q)]
    m = a.moved(score[0] * beta[..., None, :]) * strict
    p, reader, query, keys = score[1] * lower, a.moved(start * k), a.moved(start * q), a.moved(end * k)
    solve = INVERSE[inverse](a, m)
    diagonal = beta[..., None]
    if writes == "factors":
        u, w = a.product(solve, v), a.product(solve, reader)
        write = a.moved(diagonal * a.product(-w, state, u))
    elif writes == "solve":
        write = a.moved(diagonal * _substituted(a, m, a.product(-reader, state, v)))
    elif writes == "inverse":
        write = a.moved(diagonal * a.product(solve, a.product(-reader, state, v)))
    else:
        rest, scaled = a.product(-reader, state, v), a.moved(diagonal * solve)
        o = a.product(np.concatenate([query, a.product(p, scaled)], -1), np.concatenate([state, rest], -2))
        carried = a.product(keys.swapaxes(-1, -2), scaled)
        return o, a.product(carried, rest, a.moved(total[..., None] * state))
    o = a.product(np.concatenate([query, p], -1), np.concatenate([state, write], -2))
    return o, a.product(keys.swapaxes(-1, -2), write, a.moved(total[..., None] * state))


def _summed(a, terms):
    n, size = terms.shape[-1], np.abs(terms).sum(-1)
    return terms.sum(-1) + ((1 + a.u) ** (n - 1) - 1) * size * a.sign(size.shape)


def _decays(a, g, kind):
    c = g.shape[-2]
    since, place = g.cumsum(-2), np.arange(c)
    apart = np.maximum(place[:, None] - place, 0)[..., None]
    exact = np.zeros((*g.shape[:-1], c, g.shape[-1]))
    for j in range(c):
        exact[..., j + 1 :, j, :] = g[..., j + 1 :, :].cumsum(-2)
    whole, ending = since[..., -1, :], exact[..., -1, :, :]
    if not g.any():
        ones = np.ones_like
        return ones(exact), ones(since), ones(ending), ones(whole)
    if kind == "running":
        sums = a.moved(since, place[:, None])
        between = a.moved(sums[..., :, None, :] - sums[..., None, :, :])
        between, ending = between * (apart > 0), a.moved(sums[..., -1:, :] - sums)
        return tuple(a.decay(x, 0) for x in (between, sums, ending, sums[..., -1, :]))
    terms = np.maximum(apart - 1, 0)
    sums = ((exact, terms), (since, place[:, None]), (ending, terms[-1]), (whole, c - 1))
    if kind == "sum":
        return tuple(a.decay(x, n) for x, n in sums)

    def halves(x, n):
        return a.moved(a.decay(0.25 * x, n) * a.decay(0.75 * x, n))

    return tuple(halves(x, n) if c > 1 else a.decay(x, n) for x, n in sums)


def _substituted(a, m, right):
    x = right.copy()
    for i in range(1, m.shape[-1]):
        x[..., i : i + 1, :] = a.product(-m[..., i : i + 1, :i], x[..., :i, :], right[..., i : i + 1, :])
    return x


def _rows(a, m):
    x = np.broadcast_to(np.eye(m.shape[-1]), m.shape).copy()
    for i in range(1, m.shape[-1]):
        x[..., i : i + 1, :i] = a.product(-m[..., i : i + 1, :i], x[..., :i, :i])
    return x


def _merged(order):
    def inverted(a, m):
        c = m.shape[-1]
        if c <= 16:
            return _rows(a, m)
        # "blockwise": sixteen rows at a time; else halves, as a tree.
        cut = (c - 1) // 16 * 16 if order == "blockwise" else 16 * ((c + 31) // 32)
        x, y, between = inverted(a, m[..., :cut, :cut]), inverted(a, m[..., cut:, cut:]), m[..., cut:, :cut]
        left = (
            a.product(y, a.product(between, x)) if order != "right" else a.product(a.product(y, between), x)
        )
        top = np.concatenate([x, np.zeros_like(between).swapaxes(-1, -2)], -1)
        return np.concatenate([top, np.concatenate([-left, y], -1)], -2)

    return inverted


INVERSE = {"rows": _rows, **{order: _merged(order) for order in INVERSES[1:]}}

"""How far any rounding may take the gradients of a kernel that goes token by token from the exact ones.

The gradient X of the state after a token is carried to the one before it by the transpose of the step, whose
norm is that of the step, at most 1 for unit keys and beta in [0, 2] (claim kda.transition-spectrum). So with
E bounding the computed state's distance from the exact one and F that of its gradient (Frobenius), both
forward and backward the next bound is the step's norm times the last and what this token's operations err by.
Every gradient is a sum of products: `verify.audit.tolerance.worst_case.gradient.products`.

Our float64 run, which the sizes come from, is a run of this form with a smaller unit of roundoff.
"""

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.gradient.functional import Cotangent
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.worst_case.enclosed import UP, frobenius, row_norms
from verify.audit.tolerance.worst_case.gradient.products import Future, Near, Past, Tokens, down, fields


def bounds(case: Case, functional: Cotangent, algorithm: Algorithm) -> dict[str, Near]:
    """The gradients ``[B, T, HV, ...]``, ``[B, HV, K, V]`` of the initial state, with bounds ``[B, T, HV]``,
    ``[B, HV]`` before they are stored. Infinite or NaN where nothing finite can be said.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        tokens = Tokens.of(case, functional, algorithm)
        past, future, before = walk(case, functional, tokens)
        pairs = zip(past, future, strict=True)
        return stacked(case, [fields(tokens, *pair, t) for t, pair in enumerate(pairs)], before)


def stacked(case: Case, rows: list[dict[str, Near]], before: Near) -> dict[str, Near]:
    """By field, of all tokens; ``before``: the gradient of the initial state."""
    found = {
        field: Near(
            np.stack([row[field].mid for row in rows], 1), np.stack([row[field].off for row in rows], 1)
        )
        for field in (case.kind.tokens if rows else ())
    }
    return found if case.initial_state is None else found | {"initial_state": before}


def walk(case: Case, functional: Cotangent, tokens: Tokens) -> tuple[list[Past], list[Future], Near]:
    """Every token forward and backward, and the gradient of the initial state."""
    s = case.shape
    state = np.zeros((s.B, s.HV, s.K, s.V)) if case.initial_state is None else case.initial_state
    past, future = [], []
    after = Near(state, np.zeros((s.B, s.HV)))
    for t in range(s.T):
        past.append(_forward(tokens, after, t))
        after = past[-1].after
    carried = Near(functional.state, np.zeros((s.B, s.HV)))
    for t in reversed(range(s.T)):
        future.append(_backward(tokens, carried, t))
        decayed = future[-1].decayed
        alpha = tokens.c.alpha[:, t, ..., None]
        carried = _decayed(tokens, t, decayed, alpha * decayed.mid if tokens.gated else decayed.mid)
    return past, future[::-1], carried


def _forward(tokens: Tokens, before: Near, t: int) -> Past:
    """One token of our run, with the bounds of its errors."""
    step, key, beta = tokens.past[t], tokens.key[:, t], tokens.beta[:, t]
    k, v = before.mid.shape[-2:]
    decayed = _decayed(tokens, t, before, step.decayed)
    local = np.zeros_like(key)
    miss, written = Near(step.miss, local), Near(step.written, local)
    if tokens.erases:
        size = down(np.abs(step.decayed), np.abs(tokens.c.k[:, t])) + np.abs(tokens.v[:, t])
        read = tokens.once(k + 1) * (row_norms(size) + 2 * key * decayed.off) + tokens.flush(v, k)
        miss = Near(step.miss, (key * decayed.off + read) * UP)
        rounded = tokens.once(1) * beta * (row_norms(step.miss) + 2 * miss.off) + tokens.flush(v)
        written = Near(step.written, (beta * miss.off + rounded) * UP)
        local = key * (beta * read + rounded)
    local = local + tokens.once(1) * key * (row_norms(step.written) + 2 * written.off)
    base = tokens.stretch[:, t] * decayed.off + local + tokens.flush(k * v)
    return Past(decayed, miss, written, _summed(tokens, step.after, base))


def _summed(tokens: Tokens, mid: Array, base: Array) -> Near:
    """A sum whose terms err by ``base`` together, rounded once: by u of its result.

    Beyond the sizes that underflow is counted with, nothing is said.
    """
    once = tokens.once(1)
    off = (base + once * (frobenius(mid) * (1 + once) + 2 * base)) * UP
    return Near(mid, np.where(off <= tokens.most, off, np.inf))


def _decayed(tokens: Tokens, t: int, x: Near, mid: Array) -> Near:
    """x times the token's decays, which are computed."""
    if not tokens.gated:
        return Near(mid, x.off)
    lost, k, v = tokens.lost[:, t], *mid.shape[-2:]
    own = frobenius(lost[..., None] * np.abs(x.mid)) + 2 * lost.max(-1) * x.off
    return Near(mid, (tokens.decay[:, t].max(-1) * x.off + own + tokens.flush(k * v)) * UP)


def _backward(tokens: Tokens, carried: Near, t: int) -> Future:
    """The gradients of what a token does, from that of the state which the next ones read."""
    c, d_output, column = tokens.c, tokens.d_output[:, t], tokens.c.k[:, t]
    (k, v), key, beta = carried.mid.shape[-2:], tokens.key[:, t], tokens.beta[:, t]
    added = row_norms(c.q[:, t]) * row_norms(d_output)
    # The scale and its rounding, the query or the gradient times it, the product.
    base = carried.off + tokens.once(4) * added + tokens.flush(k * v)
    x = _summed(tokens, carried.mid + c.q[:, t, :, :, None] * d_output[..., None, :], base)
    size = row_norms(down(np.abs(x.mid), np.abs(column))) + 2 * key * x.off
    read = tokens.once(k) * size + tokens.flush(v, k)
    written = Near(down(x.mid, column), (key * x.off + read) * UP)
    if not tokens.erases:
        return Future(x, written, written, x)
    # beta multiplies what is missed, or the key that it is written at.
    local = beta * tokens.once(k + 1) * size + tokens.flush(v, k + 1)
    miss = Near(c.strength[:, t, ..., None] * written.mid, (beta * key * x.off + local) * UP)
    local = key * (local + tokens.once(1) * (row_norms(miss.mid) + 2 * miss.off))
    base = tokens.stretch[:, t] * x.off + local + tokens.flush(k * v)
    decayed = _summed(tokens, x.mid - column[..., None] * miss.mid[..., None, :], base)
    return Future(x, written, miss, decayed)

"""Recurrences that remove along directions of their own, DPLR and GDN-2, in float64, with a running bound."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from verify.audit.case import Array, Case, Directions
from verify.audit.reference.carried import Carried, Transition
from verify.audit.reference.enclosed_exp import enclosed_exp
from verify.audit.reference.recurrence import LOST, SMALLEST, U, decay_rounding, frobenius, row_norm

# Relative error of a quotient a / e^g beyond which it says nothing: e^g is no normal number.
_COARSE = 2.0**-40


@dataclass(frozen=True, eq=False)
class Step:
    """One token, all sequences and heads at once.

    Arrays ``[B, HV, K, V]`` (before, decayed, after) and ``[B, HV, V]`` (held), bounds of their errors
    ``[B, HV]`` in the Frobenius and 2-norm; ``size``: that norm of ``after``; ``error``: with the directions
    in which ``after`` errs.
    """

    before: Array
    decayed: Array
    held: Array
    after: Array
    size: Array
    before_error: Array
    decayed_error: Array
    held_error: Array
    after_error: Array
    error: Carried


@dataclass(frozen=True, eq=False)
class Setting:
    """What all tokens share: directions, decays, and the constants of the bounds.

    ``norm`` ``[B, T, HV]`` is at least the 2-norm of the transition Diag(alpha) + out read^T, or (I + out
    read^T) Diag(alpha) where the decayed state is read, and ``stretch`` that of I + out read^T, or 1 where
    that is not a factor.
    """

    way: Directions
    q: Array
    alpha: Array
    alpha_error: Array
    decay_rounding: Array
    widest: Array
    norm: Array
    stretch: Array
    lengths: dict[str, Array]
    gamma: float
    up: float

    @classmethod
    def of(cls, case: Case) -> "Setting":
        s, way = case.shape, case.directions
        alpha, alpha_error = enclosed_exp(case.log_decay)
        alpha, alpha_error = (np.broadcast_to(x, way.read.shape) for x in (alpha, alpha_error))
        up = 1 + 2 * (s.K * s.V + s.K + 64) * U
        names = ("read", "out", "key", "value")
        lengths = {n: np.linalg.norm(getattr(way, n), axis=-1) * up + LOST for n in names}
        widest = (alpha + alpha_error).max(-1) * up
        apart = lengths["out"] * lengths["read"]
        if way.before_decay:
            stretch = np.ones_like(widest)
            undecayed = _undecayed_norm(way, alpha, alpha_error, up)
            known = np.isfinite(undecayed)
            product = widest * np.where(known, undecayed, 0.0)
            norm = np.where(known, np.minimum(widest + apart, product), widest + apart)
        else:
            stretch = np.minimum(1 + apart, _rank_one_norm(way.out, way.read, up)) * up
            norm = widest * stretch
        gamma = s.K * U / (1 - s.K * U)
        q = case.spread("q") * case.scale
        rounding = decay_rounding(alpha_error, up)
        return cls(way, q, alpha, alpha_error, rounding, widest, norm * up, stretch, lengths, gamma, up)

    def transition(self, t: int) -> Transition:
        """That of one token."""
        out, read = (self.lengths[name][:, t] for name in ("out", "read"))
        return Transition(
            alpha=self.alpha[:, t],
            out=self.way.out[:, t],
            read=self.way.read[:, t],
            before_decay=self.way.before_decay,
            norm=self.norm[:, t],
            size=np.maximum(self.widest[:, t], 1.0) * (1 + out * read) * self.up,
            unsure=self.alpha_error[:, t].max(-1) + 4 * U,
        )


def _rank_one_norm(out: Array, read: Array, up: float) -> Array:
    """At least ||I + o r^T||_2, also where r has relative errors of a few u.

    The two singular values that may differ from 1 have the product |1 + o^T r| and squares that add up to
    2 + 2 o^T r + x, x = ||o||^2 ||r||^2, hence the larger (x^(1/2) + (x + 4 (1 + o^T r))^(1/2)) / 2, which
    grows with x and with o^T r.
    """
    length = np.linalg.norm(out, axis=-1) * np.linalg.norm(read, axis=-1) * up
    product = np.einsum("...k,...k->...", out, read) + (up - 1) * (1 + length)
    square = np.square(length) * up
    inside = np.maximum((square + 4 * (1 + product)) + (up - 1) * (4 + square + 4 * length), 0.0)
    return np.asarray(np.maximum((np.sqrt(square) + np.sqrt(inside)) / 2 * up, 1.0))


def _undecayed_norm(way: Directions, alpha: Array, alpha_error: Array, up: float) -> Array:
    """That of I + o (r / alpha)^T: what is read before a decay is read after it with r / alpha.

    Infinite where alpha is too small for the quotient to be known, unless r is 0 there.
    """
    reads = way.read != 0
    known = alpha_error <= _COARSE * alpha
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        quotient = np.where(reads, way.read / alpha, 0.0)
        # Twice _COARSE bounds the quotient's relative error, far above what `up` allows for.
        coarse = (up - 1) + 4 * _COARSE * (reads & (alpha_error > 0)).any(-1)
        norm = _rank_one_norm(way.out, quotient, 1 + coarse)
    return np.where((known | ~reads).all(-1) & np.isfinite(norm), norm, np.inf)


def float64(case: Case) -> tuple[Array, Array, Array, Array]:
    """Output, final state and bounds of their errors, over all sequences and heads at once.

    As in `recurrence.float64`: E bounds ||S~ - S||_F, and the next E is ||A||_2 E + local, A the transition,
    whose norm is computed from the inputs and rounded up. It may exceed 1; then the directions of the error,
    which `carried` follows, give the smaller bound. With
    d = alpha S~, p = read^T S~ or read^T d, c = out p^T and w = key value^T, each rounded,

        local <= stretch r ||d||_F + ||out|| (gamma_K + 2u) ||read|| ||S~ or d||_F
                 + 2u ||out|| ||p|| + 2u ||w||_F + u ||d||_F + u||S~'||_F,

    r the relative error of d, 2u for the products of inputs in read and value, and c and ||d + c|| by their
    parts. The output row adds what scale q reads of E, and ||scale q|| (gamma_K + 2u) ||S~||_F. All of it is
    multiplied by 1 + 2 (K V + K + 64) u, more than it can round.

    Raises:
        RequestError: a gate is not a number.
    """
    c, s = Setting.of(case), case.shape
    query = np.linalg.norm(c.q, axis=-1) * c.up + LOST
    state, error = _start(case), Carried.nothing(s.B, s.HV, s.K)
    output, output_error = np.empty((s.B, s.T, s.HV, s.V)), np.empty((s.B, s.T, s.HV))
    for t, step in enumerate(steps(case, c)):
        state, error = step.after, step.error
        output[:, t] = down(state, c.q[:, t])
        # The scaled query is rounded once.
        own = (c.gamma + 2 * U) * step.size + 2 * U * error.length + (s.K + 1) * (s.V + 1) * SMALLEST
        seen = error.along(c.q[:, t]) + query[:, t] * own
        output_error[:, t] = seen * c.up + (s.K + 1) * (s.V + 1) * SMALLEST
    return output, state, output_error, error.shortest


def steps(case: Case, c: Setting) -> Iterator[Step]:
    """The tokens one after another, with the bounds that `float64` derives."""
    s, way = case.shape, c.way
    tiny = 8 * (s.K + 1) * (s.V + 1) * SMALLEST
    state, carried = _start(case), Carried.nothing(s.B, s.HV, s.K)
    size = frobenius(state)
    for t in range(s.T):
        error = carried.length
        read, out, key, value = (c.lengths[name][:, t] for name in ("read", "out", "key", "value"))
        lost = tiny * (1 + size) * (1 + read) * (1 + out) * (1 + key + value)
        decayed = c.alpha[:, t, ..., None] * state
        held_size = frobenius(decayed)
        from_decay = c.decay_rounding[:, t] * held_size + lost
        decayed_error = (c.widest[:, t] * error + from_decay) * c.up
        before, later = (state, size, error), (decayed, held_size, decayed_error)
        source, source_size, source_error = before if way.before_decay else later
        held = down(source, way.read[:, t])
        own = (c.gamma + 2 * U) * read * source_size + lost
        after = way.out[:, t, ..., None] * held[..., None, :]
        after += decayed
        after += way.key[:, t, ..., None] * way.value[:, t, ..., None, :]
        size, moved = frobenius(after), out * row_norm(held) * c.up
        local = c.stretch[:, t] * from_decay + out * own + 2 * U * (moved + key * value)
        local += U * (held_size + size) + lost
        carried = carried.moved(c.transition(t)).grown(local * c.up)
        held_error = (read * source_error + own) * c.up
        yield Step(
            before=state,
            decayed=decayed,
            held=held,
            after=after,
            size=size,
            before_error=error,
            decayed_error=decayed_error,
            held_error=held_error,
            after_error=carried.length,
            error=carried,
        )
        state = after


def growth(case: Case) -> float:
    """At least the largest factor by which transitions lengthen what was there before."""
    c, s = Setting.of(case), case.shape
    norms = np.maximum(c.norm, 1.0)
    most = float(np.prod(norms, axis=1).max(initial=1.0)) * (1 + 2 * s.T * U)
    if most == 1.0:
        return most
    # An error of length 1 from every token is longer than what any of them has become.
    carried, longest = Carried.nothing(s.B, s.HV, s.K), 1.0
    for t in range(s.T):
        carried = carried.moved(c.transition(t)).grown(np.ones((s.B, s.HV)))
        longest = max(longest, float(carried.length.max()))
    return min(most, longest)


def down(matrix: Array, column: Array) -> Array:
    """``[..., K, V]`` transposed times ``[..., K]``."""
    return np.asarray((column[..., None, :] @ matrix)[..., 0, :])


def _start(case: Case) -> Array:
    s = case.shape
    return np.zeros((s.B, s.HV, s.K, s.V)) if case.initial_state is None else case.initial_state

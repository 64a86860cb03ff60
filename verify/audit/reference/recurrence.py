"""The recurrences in float64, with a running bound of their error."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.reference.enclosed_exp import RELATIVE_ERROR, enclosed_exp

U = 2.0**-53
# Bounds the absolute error of a product that underflows, twice over; sums are exact there.
SMALLEST = 2.0**-1074
# Bounds what a norm of fewer than 2^24 entries loses when their squares underflow.
LOST = 2.0**-520


@dataclass(frozen=True, eq=False)
class Step:
    """One token, all sequences and heads at once.

    Arrays ``[B, HV, K, V]`` (decayed, after) and ``[B, HV, V]`` (miss, written), bounds of their errors
    ``[B, HV]`` in the Frobenius and 2-norm; ``size``: that norm of ``after``.
    """

    decayed: Array
    miss: Array
    written: Array
    after: Array
    size: Array
    decayed_error: Array
    miss_error: Array
    written_error: Array
    after_error: Array


@dataclass(frozen=True, eq=False)
class Setting:
    """What all tokens share: inputs with one head per output head, and the constants of the bounds.

    ``decay_rounding`` ``[B, T, HV]`` bounds the relative error of a decayed state, where nothing underflows.
    """

    k: Array
    q: Array
    strength: Array
    alpha: Array
    alpha_error: Array
    decay_rounding: Array
    key_norm: Array
    stretch: Array
    gamma: float
    erases: float
    up: float

    @classmethod
    def of(cls, case: Case) -> "Setting":
        s = case.shape
        k, q, strength = case.spread("k"), case.spread("q") * case.scale, case.strength
        alpha, alpha_error = enclosed_exp(case.log_decay)
        gamma = s.K * U / (1 - s.K * U)
        up = 1 + 2 * (s.K * s.V + s.K + 64) * U
        erases = float(case.kind.erases)
        erased = erases * strength * np.einsum("bthk,bthk->bth", k, k)
        stretch = np.maximum(1.0, np.abs(1 - erased) + (gamma + 8 * U) * (1 + np.abs(erased))) * up
        key_norm = _norm(k, "bthk,bthk->bth") * up
        rounding = decay_rounding(alpha_error, up)
        return cls(k, q, strength, alpha, alpha_error, rounding, key_norm, stretch, gamma, erases, up)


def decay_rounding(alpha_error: Array, up: float) -> Array:
    """A relative error per token and head: decays of 0 and 1 are exact, and so are products with them."""
    return np.where((alpha_error > 0).any(-1), (RELATIVE_ERROR + U) * up, 0.0)


def float64(case: Case) -> tuple[Array, Array, Array, Array]:
    """Output, final state and bounds of their errors, over all sequences and heads at once.

    Let E bound ||S~ - S||_F for the computed and the exact state. The exact step maps S to A S + beta k v^T,
    A = (I - beta k k^T) Diag(alpha), and the computed one lands within `local` of that map at S~, so the next
    E is ||A||_2 E + local, with ||A||_2 <= max(alpha) max(1, |1 - beta ||k||^2|), which is at most 1 for unit
    keys and beta in [0, 2] (claim kda.transition-spectrum). With a~ = exp(g) computed, d = a~ S~, p = k^T d,
    e = v - p, w = beta e, c = k w and S~' = d + c, each rounded (relative error u of the *result*; dots
    gamma_K sum |k||d| <= gamma_K ||k|| ||d|| for any order, Higham, Accuracy and Stability, theorem 2.3 and
    eq. 3.5), r the relative error of d (that of `enclosed_exp` and u):

        local <= max(1, |1 - beta ||k||^2|) r ||d||_F
                 + ||k|| (beta (gamma_K ||k|| ||d||_F + u||e||) + 2u||w||) + u||S~'||_F.

    Linear attention erases nothing: A = Diag(alpha), p = 0, e = v, and nothing of them is rounded.

    The output row adds ||scale q|| (E + (gamma_K + 2u) ||S~||_F). Norms of the state stand in place of
    products of absolute values so that a token passes over it a few times only. The bound itself is computed
    in float64: it is a sum of non-negative terms over at most K V + K + 64 roundings each, so multiplying by
    1 + 2 (K V + K + 64) u rounds it up. Underflow adds one smallest subnormal per operation.

    Raises:
        RequestError: a gate is not a number.
    """
    c, s = Setting.of(case), case.shape
    query_norm = _norm(c.q, "bthk,bthk->bth") * c.up
    state = np.zeros((s.B, s.HV, s.K, s.V)) if case.initial_state is None else case.initial_state
    error = np.zeros((s.B, s.HV))
    output, output_error = np.empty((s.B, s.T, s.HV, s.V)), np.empty((s.B, s.T, s.HV))
    for t, step in enumerate(steps(case, c)):
        state, error = step.after, step.after_error
        output[:, t] = _read(c.q[:, t], state)
        smallest = (s.K + 1) * (s.V + 1) * SMALLEST * (1 + step.size)
        own = (c.gamma + 2 * U) * step.size * c.up
        output_error[:, t] = (query_norm[:, t] * (error + own) + smallest) * c.up
    return output, state, output_error, error


def steps(case: Case, c: Setting) -> Iterator[Step]:
    """The tokens one after another, with the bounds that `float64` derives."""
    s = case.shape
    widest = (c.alpha + c.alpha_error).max(-1) * c.up
    underflow = 8 * (s.K + 1) * (s.V + 1) * SMALLEST * (1 + c.key_norm) * (1 + np.abs(c.strength)) * c.stretch
    state = np.zeros((s.B, s.HV, s.K, s.V)) if case.initial_state is None else case.initial_state
    size, error = frobenius(state), np.zeros((s.B, s.HV))
    for t in range(s.T):
        beta, key_norm, tiny = np.abs(c.strength[:, t]), c.key_norm[:, t], underflow[:, t] * (1 + size)
        decayed, held = state, size
        if case.kind.gate:
            decayed = c.alpha[:, t, ..., None] * state
            held = frobenius(decayed)
        miss = case.v[:, t] - _read(c.k[:, t], decayed) if c.erases else case.v[:, t]
        written = c.strength[:, t, ..., None] * miss
        after = c.k[:, t, ..., None] * written[..., None, :]
        after += decayed
        written_size, size = row_norm(written), frobenius(after)
        from_decay = c.decay_rounding[:, t] * held + tiny
        from_miss = c.erases * (c.gamma * key_norm * held + U * row_norm(miss))
        from_write = key_norm * (beta * from_miss + 2 * U * written_size)
        local = c.stretch[:, t] * from_decay + from_write + U * size + tiny
        decayed_error = (widest[:, t] * error + from_decay) * c.up
        miss_error = (c.erases * key_norm * decayed_error + from_miss) * c.up
        written_error = (beta * miss_error + U * written_size) * c.up
        error = (c.stretch[:, t] * widest[:, t] * error + local) * c.up
        yield Step(decayed, miss, written, after, size, decayed_error, miss_error, written_error, error)
        state = after


def row_norm(x: Array) -> Array:
    """The 2-norm over V of ``[B, HV, V]``, not below the exact one but for the roundings of its sum."""
    return _norm(x, "bhv,bhv->bh")


def frobenius(x: Array) -> Array:
    """Likewise the Frobenius norm of ``[B, HV, K, V]``."""
    return _norm(x, "bhkv,bhkv->bh")


def _norm(x: Array, axes: str) -> Array:
    return np.asarray(np.sqrt(np.einsum(axes, x, x)) + LOST)


def _read(row: Array, state: Array) -> Array:
    """``[B, HV, K]`` times ``[B, HV, K, V]``."""
    return np.asarray((row[..., None, :] @ state)[..., 0, :])

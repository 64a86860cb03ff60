"""The recurrences in float64, with a running bound of their error."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.reference.enclosed_exp import enclosed_exp

U = 2.0**-53
# Bounds the absolute error of a product that underflows, twice over; sums are exact there.
SMALLEST = 2.0**-1074


@dataclass(frozen=True, eq=False)
class Step:
    """One token, all sequences and heads at once.

    Arrays ``[B, HV, K, V]`` (decayed, after) and ``[B, HV, V]`` (miss, written), bounds of their errors
    ``[B, HV]`` in the Frobenius and 2-norm.
    """

    decayed: Array
    miss: Array
    written: Array
    after: Array
    decayed_error: Array
    miss_error: Array
    written_error: Array
    after_error: Array


@dataclass(frozen=True, eq=False)
class Setting:
    """What all tokens share: inputs with one head per output head, and the constants of the bounds."""

    k: Array
    q: Array
    strength: Array
    alpha: Array
    alpha_error: Array
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
        stretch = np.maximum(1.0, np.abs(1 - erased) + (gamma + 8 * U) * (1 + erased)) * up
        key_norm = np.linalg.norm(k, axis=-1) * up
        return cls(k, q, strength, alpha, alpha_error, key_norm, stretch, gamma, erases, up)


def float64(case: Case) -> tuple[Array, Array, Array, Array]:
    """Output, final state and bounds of their errors, over all sequences and heads at once.

    Let E bound ||S~ - S||_F for the computed and the exact state. The exact step maps S to A S + beta k v^T,
    A = (I - beta k k^T) Diag(alpha), and the computed one lands within `local` of that map at S~, so the next
    E is ||A||_2 E + local, with ||A||_2 <= max(alpha) max(1, |1 - beta ||k||^2|), which is at most 1 for unit
    keys and beta in [0, 2] (claim kda.transition-spectrum). With a~ = exp(g) computed, d = a~ S~, p = k^T d,
    e = v - p, w = beta e, c = k w and S~' = d + c, each rounded (relative error u of the *result*; dots
    gamma_K sum |k||d| for any order, Higham, Accuracy and Stability, eq. 3.5 and theorem 2.3):

        local <= max(1, |1 - beta ||k||^2|) || u|d| + (error of a~)|S~| ||_F
                 + ||k|| (beta (gamma_K || |k|^T|d| || + u||e||) + u||w||) + u||c||_F + u||S~'||_F.

    Linear attention erases nothing: A = Diag(alpha), p = 0, e = v, and nothing of them is rounded.

    The output row adds ||scale q|| E + (gamma_K + 2u) || |scale q|^T |S~| ||. The error of exp is not assumed
    but enclosed, gate by gate, by balls. The bound itself is computed in float64: it is a sum of non-negative
    terms over at most K V + K + 64 roundings each, so multiplying by 1 + 2 (K V + K + 64) u rounds it up.
    Underflow adds one smallest subnormal per operation.

    Raises:
        RequestError: a gate is not a finite number.
    """
    c, s = Setting.of(case), case.shape
    query_norm = np.linalg.norm(c.q, axis=-1) * c.up
    state = np.zeros((s.B, s.HV, s.K, s.V)) if case.initial_state is None else case.initial_state
    error = np.zeros((s.B, s.HV))
    output, output_error = np.empty((s.B, s.T, s.HV, s.V)), np.empty((s.B, s.T, s.HV))
    for t, step in enumerate(steps(case, c)):
        state, error = step.after, step.after_error
        query = c.q[:, t, :, None, :]
        output[:, t] = (query @ state)[..., 0, :]
        from_query = (c.gamma + 2 * U) * row_norm((np.abs(query) @ np.abs(state))[..., 0, :])
        smallest = (s.K + 1) * (s.V + 1) * SMALLEST * (1 + frobenius(state))
        output_error[:, t] = (query_norm[:, t] * error + from_query + smallest) * c.up
    return output, state, output_error, error


def steps(case: Case, c: Setting) -> Iterator[Step]:
    """The tokens one after another, with the bounds that `float64` derives."""
    s = case.shape
    growth = c.stretch * (c.alpha + c.alpha_error).max(-1) * c.up
    underflow = 8 * (s.K + 1) * (s.V + 1) * SMALLEST * (1 + c.key_norm) * (1 + c.strength) * c.stretch
    state = np.zeros((s.B, s.HV, s.K, s.V)) if case.initial_state is None else case.initial_state
    error = np.zeros((s.B, s.HV))
    for t in range(s.T):
        beta, key, key_norm = c.strength[:, t], c.k[:, t, :, None, :], c.key_norm[:, t]
        decayed = c.alpha[:, t, ..., None] * state
        read = c.erases * (key @ decayed)[..., 0, :]
        miss = case.v[:, t] - read
        written = beta[..., None] * miss
        added = c.k[:, t, ..., None] * written[..., None, :]
        after = decayed + added
        from_decay = frobenius(U * np.abs(decayed) + c.alpha_error[:, t, ..., None] * np.abs(state))
        from_read = c.erases * c.gamma * row_norm((np.abs(key) @ np.abs(decayed))[..., 0, :])
        from_miss = from_read + c.erases * U * row_norm(miss)
        from_write = beta * from_miss + U * row_norm(written)
        local = c.stretch[:, t] * from_decay + U * (frobenius(added) + frobenius(after))
        widest = (c.alpha[:, t] + c.alpha_error[:, t]).max(-1)
        decayed_error = (widest * error + from_decay + underflow[:, t]) * c.up
        miss_error = (c.erases * key_norm * decayed_error + from_miss) * c.up
        written_error = (beta * miss_error + U * row_norm(written)) * c.up
        error = (growth[:, t] * error + local + key_norm * from_write + underflow[:, t]) * c.up
        yield Step(decayed, miss, written, after, decayed_error, miss_error, written_error, error)
        state = after


def row_norm(x: Array) -> Array:
    return np.asarray(np.sqrt(np.einsum("bhv,bhv->bh", x, x)))


def frobenius(x: Array) -> Array:
    return np.asarray(np.sqrt(np.einsum("bhkv,bhkv->bh", x, x)))

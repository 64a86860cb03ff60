"""Reference gradients in float64, with rigorous bounds of their errors."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.gradient import directed
from verify.audit.gradient.functional import Cotangent, gathered, norm
from verify.audit.reference import attention
from verify.audit.reference.recurrence import Setting, Step, U, frobenius, row_norm, steps
from verify.audit.reference.results import Digits

# Bounds all underflow: fewer than 2^40 products, each off by at most 2^-1074, times sizes below 2^30.
_UNDERFLOW = 2.0**-1000
_TERMS = ("subtracted", "written")


@dataclass(frozen=True, eq=False)
class Gradients:
    """The exact gradients up to stated errors, by field.

    Args:
        values: each of its input's shape; ``[HV]`` for ``sink``, the logit that all tokens of a head share.
        errors: bounds of the errors' norms, over the axes of `row_axes`.
        terms: per output head: ``subtracted``, the sizes of the terms that add up to the gradient of a sum of
            gates, q dq and those of the vectors that keys are made of, ``[B, T, HV, K]``; and the gradient of
            what a delta rule ``written``, ``[B, T, HV, V]``; empty without a state.
        level, note, digits: as in `verify.audit.reference.results.Reference`; digits by field.
    """

    values: dict[str, Array]
    errors: dict[str, Array]
    terms: dict[str, Array]
    level: str = "float64"
    note: str = ""
    digits: Mapping[str, Digits] = dataclasses.field(default_factory=dict)


def float64_gradients(case: Case, functional: Cotangent) -> Gradients:
    """The adjoint of the definition in float64, with a running bound of its error.

    Raises:
        RequestError: a gate is not a finite number.
    """
    if not case.kind.stateful:
        parts = _attention(case, functional)
    else:
        parts = (directed.gradients if case.kind.directed else _recurrence)(case, functional)
    terms = {name: parts.pop(name)[0] for name in _TERMS if name in parts}
    sink = parts.pop("sink", None)
    if "subtracted" in terms:
        terms["subtracted"] = terms["subtracted"] + np.abs(case.spread("q") * parts["q"][0])
    values, errors = {}, {}
    for field, (spread, error) in parts.items():
        values[field] = gathered(case, field, spread)
        group = case.shape.HV // case.shape.H
        adding = group * U * gathered(case, field, norm(case, field, spread)) if group > 1 else 0.0
        errors[field] = gathered(case, field, error) * (1 + 64 * U) + adding + _UNDERFLOW
    if sink is not None:
        values["sink"], errors["sink"] = (x.sum((0, 1)) for x in sink)
        rounded = case.shape.B * case.shape.T * U * np.abs(sink[0]).sum((0, 1))
        errors["sink"] = (errors["sink"] + rounded) * (1 + 64 * U) + _UNDERFLOW
    return Gradients(values, errors, terms)


def _recurrence(case: Case, functional: Cotangent) -> dict[str, tuple[Array, Array]]:
    """Per output head, backward through the tokens; formulas in `adjoint`.

    A product of x and y with errors dx and dy is off by at most |x|dy + |y|dx + dx dy, plus gamma_n times the
    product of the absolute values for its own sums. The gradient X of the state is carried by the transposes
    of the steps, whose norm is that of the steps: L -> max(alpha) (max(1, |1 - beta k^2|) L + local).
    """
    c, s = Setting.of(case), case.shape
    up = c.up * (1 + 2 * (s.K + s.V) * U)
    inner = 2 * (s.K * s.V + 4) * U
    tokens = list(steps(case, c))
    found: dict[str, list[tuple[Array, Array]]] = {name: [] for name in (*case.kind.tokens, *_TERMS)}
    after, error = functional.state, np.zeros((s.B, s.HV))
    for t in reversed(range(s.T)):
        step, key, d_output = tokens[t], c.k[:, t], functional.output[:, t]
        added = c.q[:, t, :, :, None] * d_output[..., None, :]
        after = after + added
        error = (error + 4 * U * frobenius(added) + U * frobenius(after)) * up
        row = _Row(c, step, t, key, after, error, inner, up)
        found["q"].append(row.query(d_output, case.scale))
        for name, part in row.token().items():
            if name in found:
                found[name].append(part if name != "g" or case.kind.gate == "channel" else row.whole_gate())
        decayed = row.d_decayed[0]
        alpha, alpha_error = c.alpha[:, t, ..., None], c.alpha_error[:, t, ..., None]
        after = alpha * decayed
        own = frobenius(alpha_error * np.abs(decayed)) + U * frobenius(after)
        error = ((alpha + alpha_error).max((-1, -2)) * row.d_decayed[1] + own) * up
    parts = {
        name: (np.stack([x for x, _ in rows[::-1]], axis=1), np.stack([e for _, e in rows[::-1]], axis=1))
        for name, rows in found.items()
        if rows
    }
    if case.initial_state is not None:
        parts["initial_state"] = after, error
    return parts


class _Row:
    """The gradients of one token's inputs, from the gradient of the state after it."""

    def __init__(
        self, c: Setting, step: Step, t: int, key: Array, after: Array, error: Array, inner: float, up: float
    ) -> None:
        self.c, self.step, self.inner, self.up = c, step, inner, up
        self.key, self.beta, self.after, self.error = key, c.strength[:, t], after, error
        key_norm, erases = c.key_norm[:, t], c.erases
        self.d_written = self._times(_down(after, key), error, key_norm, _down(np.abs(after), np.abs(key)))
        self.d_miss = self.beta[..., None] * self.d_written[0]
        own = U * row_norm(self.d_miss)
        self.miss_error = (np.abs(self.beta) * self.d_written[1] + own) * up
        erased = erases * key[..., None] * self.d_miss[..., None, :]
        decayed = after - erased
        local = key_norm * (np.abs(self.beta) * inner * row_norm(_down(np.abs(after), np.abs(key))) + own)
        local = erases * (local + U * frobenius(erased) + U * frobenius(decayed))
        self.d_decayed = decayed, (c.stretch[:, t] * error + local) * up

    def _times(self, value: Array, error: Array, size: Array, sizes: Array) -> tuple[Array, Array]:
        """A product with an exact vector of norm ``size``; ``sizes`` is that of the absolute values."""
        return value, (size * error + self.inner * row_norm(sizes)) * self.up

    def query(self, d_output: Array, scale: float) -> tuple[Array, Array]:
        read = _across(self.step.after, d_output)
        sizes = _across(np.abs(self.step.after), np.abs(d_output))
        _, error = self._times(read, self.step.after_error, row_norm(d_output), sizes)
        return scale * read, (abs(scale) * (error + U * row_norm(read))) * self.up

    def token(self) -> dict[str, tuple[Array, Array]]:
        """Of k, v, beta and the gate per channel."""
        s, up, erases = self.step, self.up, self.c.erases
        from_write = _across(self.after, s.written)
        from_read = erases * _across(s.decayed, self.d_miss)
        unbounded = np.full(self.error.shape, np.inf)
        d_key = from_write - from_read
        error = _product(frobenius(self.after), self.error, row_norm(s.written), s.written_error)
        error += self.inner * row_norm(_across(np.abs(self.after), np.abs(s.written)))
        read = _product(frobenius(s.decayed), s.decayed_error, row_norm(self.d_miss), self.miss_error)
        read += self.inner * row_norm(_across(np.abs(s.decayed), np.abs(self.d_miss)))
        d_beta = (self.d_written[0] * s.miss).sum(-1)
        beta_error = _product(row_norm(self.d_written[0]), self.d_written[1], row_norm(s.miss), s.miss_error)
        beta_error += self.inner * np.abs(self.d_written[0] * s.miss).sum(-1)
        return {
            "k": (d_key, (error + erases * read + U * row_norm(d_key)) * up),
            "v": (self.d_miss, self.miss_error),
            "subtracted": (np.abs(self.key * from_write) + np.abs(self.key * from_read), unbounded),
            "written": (self.d_written[0], unbounded),
            "beta": (d_beta, beta_error * up),
            "g": ((s.decayed * self.d_decayed[0]).sum(-1), self._gate_error(per_channel=True)),
        }

    def whole_gate(self) -> tuple[Array, Array]:
        """Of the gate per head."""
        value = (self.step.decayed * self.d_decayed[0]).sum((-1, -2))
        return value, self._gate_error(per_channel=False)

    def _gate_error(self, per_channel: bool) -> Array:
        """By sum_c (|D_c| dX)^2 <= max |D_c|^2 dX^2 for the vector, Cauchy-Schwarz for the sum."""
        s, (decayed, error) = self.step, self.d_decayed
        sums = np.abs(s.decayed * decayed).sum(-1)
        if per_channel:
            sizes = [np.sqrt(np.square(x).sum(-1).max(-1)) for x in (s.decayed, decayed)]
            own = row_norm(sums)
        else:
            sizes, own = [frobenius(s.decayed), frobenius(decayed)], sums.sum(-1)
        return (_product(sizes[0], s.decayed_error, sizes[1], error) + self.inner * own) * self.up


def _product(x: Array, dx: Array, y: Array, dy: Array) -> Array:
    return np.asarray(x * dy + y * dx + dx * dy)


def _down(matrix: Array, column: Array) -> Array:
    """[..., K, V] transposed times [..., K]."""
    return np.asarray((column[..., None, :] @ matrix)[..., 0, :])


def _across(matrix: Array, row: Array) -> Array:
    """[..., K, V] times [..., V]."""
    return np.asarray((matrix @ row[..., None])[..., 0])


def _attention(case: Case, functional: Cotangent) -> dict[str, tuple[Array, Array]]:
    """Per output head; formulas in `adjoint`, each weight with the bound of its own error."""
    s = case.shape
    p, p_error = attention.weights(case)
    q, k, v, d_output = (
        x.swapaxes(1, 2) for x in (*(case.spread(name) for name in ("q", "k", "v")), functional.output)
    )
    inner = 2 * (s.T + s.K + s.V + 8) * U
    up = 1 + inner
    seen = case.visible
    d_weight = np.where(seen, d_output @ v.swapaxes(-1, -2), 0.0)
    weight_error = inner * (np.abs(d_output) @ np.abs(v).swapaxes(-1, -2))
    mean = (p * d_weight).sum(-1, keepdims=True)
    share = np.abs(p)
    mean_error = _product(share, p_error, np.abs(d_weight), weight_error).sum(-1, keepdims=True)
    mean_error = (mean_error + inner * (share * np.abs(d_weight)).sum(-1, keepdims=True)) * up
    centred = d_weight - mean
    centred_error = weight_error + mean_error + U * np.abs(centred)
    rate, rate_error = attention.rates(case)
    d_logit = np.where(seen, rate * centred, 0.0)
    logit_error = _product(np.abs(rate), rate_error, np.abs(centred), centred_error) + U * np.abs(d_logit)
    logit_error = np.where(seen, logit_error, 0.0) * up
    sizes = logit_error + inner * np.abs(d_logit)
    scale = case.scale
    norms = [attention.length(x) for x in (q, k, d_output)]
    parts = {
        "q": (scale * (d_logit @ k), abs(scale) * (sizes @ norms[1])),
        "k": (scale * (d_logit.swapaxes(-1, -2) @ q), abs(scale) * (sizes.swapaxes(-1, -2) @ norms[0])),
        "v": (p.swapaxes(-1, -2) @ d_output, (p_error + inner * share).swapaxes(-1, -2) @ norms[2]),
    }
    found = {
        name: (value.swapaxes(1, 2), error[..., 0].swapaxes(1, 2) * up * up)
        for name, (value, error) in parts.items()
    }
    if case.kind.sink is not None:
        # The weights of a query and its sink add up to 1, and the sink has no value.
        share, share_error = attention.sink_weights(case)
        error = _product(share, share_error, np.abs(mean), mean_error) + U * np.abs(share * mean)
        found["sink"] = tuple(x[..., 0].swapaxes(1, 2) for x in (-share * mean, error * up))
    return found

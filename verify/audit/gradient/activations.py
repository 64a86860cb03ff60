"""From the gradients of gates, strengths, unit keys to those of what a function makes them of.

With z = e^A_log (x + b) or x + b the argument of the activation, s the sigmoid and R = e^A_log:

    g = -R softplus(x + b):   dx = db = -R s(z) dg,                   dA_log = g dg
    g = L s(R (x + b)):       dx = db = L R s(z) s(-z) dg,            dA_log = L z s(z) s(-z) dg
    g = A x, v = x v':        dx = A dg + v' . dv,   dv' = x dv,      dA = x dg
    beta = c s(x):            dx = c s(x) s(-x) dbeta
    y = x / n, n = sqrt(|x|^2 + eps):                                 dx = (dy - y (y . dy)) / n

and those of constants, b, A_log and A, added up over all that share them. Gates and strengths themselves are
the problem that was asked for, as everywhere, and count as exact.
"""

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.convention import forms
from verify.audit.convention.convention import Convention
from verify.audit.gradient.reference import Gradients
from verify.audit.reference.recurrence import U
from verify.audit.tolerance.predicted.model import MADE
from verify.audit.tolerance.predicted.prediction import GradientPrediction

_TOKENS = (0, 1)
_ROUNDINGS, _PER_ARGUMENT = 32, 12
"""What a factor may err by, in units of roundoff: two for each of at most three exponentials and one for each
of at most nine other operations; and what z errs by, at most four times |z|, in two of the exponentials."""


class Passage(Protocol):
    """How the gradient of an input comes from that of ``made``, a field of the case that is asked for."""

    @property
    def made(self) -> str: ...

    def value(self, gradient: Array) -> Array:
        """The gradient of the input."""

    def carried(self, rows: Array) -> Array:
        """At least what errors with these norms, of the rows of ``made``, become."""

    def own(self, gradient: Array) -> Array:
        """At least the norms of what computing `value` rounds."""

    @property
    def reach(self) -> float:
        """At least by how much it multiplies an underflow, of its factor or of a gradient of size 1."""


@dataclass(frozen=True, eq=False)
class Factor:
    """A product with ``factor``, whose relative error is at most ``error``; added up over axes.

    ``rate`` is at least what multiplies a sigmoid in it.
    """

    made: str
    factor: Array
    error: Array | float = 0.0
    summed: tuple[int, ...] = ()
    rate: float = 1.0

    def value(self, gradient: Array) -> Array:
        return np.asarray((self.factor * gradient).sum(self.summed))

    def carried(self, rows: Array) -> Array:
        size = np.abs(self.factor)
        if size.ndim > rows.ndim:
            size = np.sqrt(np.square(size).sum(-1)) if size.ndim - 1 in self.summed else size.max(-1)
        return np.asarray((size * rows).sum(_TOKENS) if 0 in self.summed else size * rows)

    def own(self, gradient: Array) -> Array:
        terms = np.abs(self.factor * gradient)
        count = int(np.prod([terms.shape[axis] for axis in self.summed])) if self.summed else 1
        entries = ((np.broadcast_to(self.error, terms.shape) + (count + 1) * U) * terms).sum(self.summed)
        kept = terms.ndim - 1 not in self.summed and terms.ndim == 4
        return np.asarray(np.sqrt(np.square(entries).sum(-1)) if kept else entries)

    @property
    def reach(self) -> float:
        count = np.prod([self.factor.shape[axis] for axis in self.summed]) if self.summed else 1
        return float(count * (1 + self.rate + np.abs(self.factor).max(initial=0.0)))


@dataclass(frozen=True, eq=False)
class Norm:
    """Through y = x / n: ``unit`` is y, ``length`` n ``[..., 1]``."""

    made: str
    unit: Array
    length: Array

    def value(self, gradient: Array) -> Array:
        along = (self.unit * gradient).sum(-1, keepdims=True)
        return np.asarray((gradient - self.unit * along) / self.length)

    def carried(self, rows: Array) -> Array:
        """I - y y^T lengthens nothing, as |y| <= 1."""
        return np.asarray(rows / self.length[..., 0])

    def own(self, gradient: Array) -> Array:
        """y errs by (K/2 + 4) u, y . dy by K u more, n by (K/2 + 2) u, and three operations by u each."""
        sizes = np.sqrt(np.square(gradient).sum(-1)) / self.length[..., 0]
        return np.asarray((3 * gradient.shape[-1] + 16) * U * sizes)

    @property
    def reach(self) -> float:
        return float(1 + self.unit.shape[-1] * (1 / self.length).max(initial=0.0))


def passages(convention: Convention, case: Case) -> dict[str, list[Passage]]:
    """By input or constant of the function, for all that activations change the gradients of.

    ``case`` is what was drawn for the function, not what it is asked for.
    """
    c, seen = convention, convention.as_seen(case)
    handed = {field: array for field, (array, _) in c.handed(case).items()}
    found: dict[str, list[Passage]] = {}
    if seen.g is not None and c.gate_form != "value":
        found |= _of_gates(c, seen.g, handed)
    if seen.beta is not None and c.beta_form != "value":
        x, twice = handed["beta"], 2.0 if c.beta_form == "2*sigmoid" else 1.0
        found["beta"] = [Factor("beta", twice * forms.sigmoid(x) * forms.sigmoid(-x), _error(x))]
    if c.qk_norm != "none":
        for field in ("q", "k"):
            squares = np.square(handed[field]).sum(-1, keepdims=True) + c.qk_norm_eps
            length = np.sqrt(np.where(squares > 0, squares, 1.0))
            found[field] = [Norm(field, forms.unit(handed[field], c.qk_norm_eps), length)]
    return found


def _of_gates(c: Convention, g: Array, handed: Mapping[str, Array]) -> dict[str, list[Passage]]:
    x = handed["g"]
    rates, bias = c.gates.constants(x)
    everywhere = (*_TOKENS, *range(3, g.ndim))
    found: dict[str, list[Passage]]
    if c.gate_form == "step":
        whole = np.broadcast_to(rates, x.shape)
        found = {
            "g": [Factor("g", whole), Factor("v", handed["v"], 0.0, (3,))],
            "v": [Factor("v", x[..., None])],
            "A": [Factor("g", x, 0.0, _TOKENS)],
        }
    else:
        z = np.broadcast_to(x + bias if c.gate_form == "softplus" else rates * (x + bias), g.shape)
        steep = float((1 + abs(c.lower_bound)) * np.abs(rates).max())
        if c.gate_form == "softplus":
            slope, rate = -rates * forms.sigmoid(z), g
        else:
            slope = c.lower_bound * rates * forms.sigmoid(z) * forms.sigmoid(-z)
            rate = c.lower_bound * z * forms.sigmoid(z) * forms.sigmoid(-z)
        found = {
            "g": [Factor("g", slope, _error(z), (), steep)],
            "dt_bias": [Factor("g", slope, _error(z), _TOKENS, steep)],
            "A_log": [Factor("g", rate, _error(z), everywhere, steep)],
        }
    return {field: ways for field, ways in found.items() if field in handed}


def _error(z: Array) -> Array:
    return np.asarray((_ROUNDINGS + _PER_ARGUMENT * np.abs(z)) * U)


def through(gradients: Gradients, ways: Mapping[str, list[Passage]], handed: Collection[str]) -> Gradients:
    """The gradients of what is ``handed`` over, with bounds, from those of what is asked for."""
    values = {field: x for field, x in gradients.values.items() if field in handed}
    errors = {field: gradients.errors[field] for field in values}
    for field, passed in ways.items():
        parts = [w.value(gradients.values[w.made]) for w in passed]
        bounds = [w.carried(gradients.errors[w.made]) + w.own(gradients.values[w.made]) for w in passed]
        values[field], errors[field] = sum(parts[1:], parts[0]), sum(bounds[1:], bounds[0]) * (1 + 64 * U)
    return dataclasses.replace(gradients, values=values, errors=errors)


def with_made(gradients: Gradients, inner: Gradients, ways: Mapping[str, list[Passage]]) -> dict[str, Array]:
    """Exact gradients as `model.run` names them: of what is handed over, and of what is made of it."""
    made = {w.made for passed in ways.values() for w in passed}
    return gradients.values | {MADE + field: inner.values[field] for field in made}


def of_made(predicted: GradientPrediction, inner: Gradients) -> GradientPrediction:
    """What is predicted for the gradients of what is asked for."""
    rows = {f: predicted.rows[name] for f in inner.values if (name := _made(f, predicted)) in predicted.rows}
    return dataclasses.replace(predicted, rows=rows)


def _made(field: str, predicted: GradientPrediction) -> str:
    return MADE + field if MADE + field in predicted.rows else field


def widened(
    predicted: GradientPrediction,
    before: GradientPrediction,
    after: GradientPrediction,
    ways: Mapping[str, list[Passage]],
) -> GradientPrediction:
    """With what the gradients of what is asked for err by ``after`` and did not ``before``, passed on.

    Added errors of tokens that share a constant are taken to be alike, so that their deviations add up.
    """
    added = {
        field: np.sqrt(np.maximum(np.square(after.rows[field]) - np.square(x), 0.0))
        for field, x in before.rows.items()
    }
    rows = {field: x for field, x in predicted.rows.items() if not field.startswith(MADE)}
    for field, x in rows.items():
        if passed := ways.get(field):
            parts = [w.carried(added[w.made]) for w in passed]
            rows[field] = np.sqrt(np.square(x) + np.square(sum(parts[1:], parts[0])))
        else:
            rows[field] = np.sqrt(np.square(x) + np.square(added[field]))
    return dataclasses.replace(predicted, rows=rows)


def reach(case: Case, gradients: Gradients, ways: Mapping[str, list[Passage]]) -> dict[str, float]:
    """At least how many times an underflow enters a gradient; a sink's adds up all tokens."""
    found = {
        field: sum(w.reach * (1 + float(np.abs(gradients.values[w.made]).max(initial=0.0))) for w in passed)
        for field, passed in ways.items()
    }
    return found | {"sink": float(case.shape.B * case.shape.T)}

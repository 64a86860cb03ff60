"""What functions compute of what they are handed, before their recurrence: gates, write strengths, unit keys.

Each form has two directions, in float64: what to hand over for a wanted value, and what is thereby asked for.
The second is exact up to a few units of float64; the first need not be.
"""

from dataclasses import dataclass

import numpy as np

from verify.audit.case import Array

GATE_SPACES = ("ln", "log2", "linear")
GATE_FORMS = ("value", "softplus", "sigmoid", "step")
BETA_FORMS = ("value", "sigmoid", "2*sigmoid")
NORMS = ("none", "unit", "unit-rounded")
# exp of this underflows to zero in every format; stands for the logarithm of a decay handed over as 0.
_LN_OF_ZERO = -1e5
SATURATED = 1000.0
"""Stands for an infinite logit: e^-1000 is 0 in every format, and the number is one of every format."""
# Decay rates of a head as layers have them: log U(1, 16) at the start, up to 72 in trained ones.
_A_LOG = (0.0, 0.5, 2.0, -0.5, 4.25)
_A = (-1.0, -2.0, -16.0, -0.5, -64.0)


@dataclass(frozen=True)
class GateForm:
    """How a function makes the log decay g of its input x.

    ``"value"``: x is the log decay in ``space``, or the decay.
    ``"softplus"``: g = -e^A_log softplus(x + bias).
    ``"sigmoid"``: g = lower_bound sigmoid(e^A_log (x + bias)), so that g never falls below the bound.
    ``"step"``: g = A x, with A < 0 and x the step dt, by which values are multiplied too.

    Args:
        form: one of `GATE_FORMS`.
        space: one of `GATE_SPACES`; of ``"value"`` alone.
        lower_bound: of ``"sigmoid"`` alone, below 0.
        rates: whether the function takes A_log; else it is 0.
        biases: whether it takes biases; else they are 0.
    """

    form: str = "value"
    space: str = "ln"
    lower_bound: float = 0.0
    rates: bool = True
    biases: bool = True

    def a_log(self, heads: int) -> Array:
        """A_log ``[HV]``; of ``"step"``, A itself."""
        if self.form == "step":
            return np.resize(_A, heads)
        return np.resize(_A_LOG, heads) if self.rates else np.zeros(heads)

    def bias(self, heads: int, channels: int | None) -> Array:
        """Multiples of 1/2 between -4 and -1/2, ``[HV]`` or ``[HV, K]``."""
        shape = (heads,) if channels is None else (heads, channels)
        places = sum(np.indices(shape) * np.reshape((5, 3)[: len(shape)], (-1, *[1] * len(shape))))
        return -(1 + places % 8) / 2.0 if self.biases else np.zeros(shape)

    def constants(self, g: Array) -> tuple[Array, Array]:
        """e^A_log (or A) and the biases, to be broadcast with gates ``[B, T, HV]`` or ``[B, T, HV, K]``."""
        heads, channels = g.shape[2], g.shape[3] if g.ndim == 4 else None
        rates = self.a_log(heads) if self.form == "step" else np.exp(self.a_log(heads))
        return (rates[:, None] if g.ndim == 4 else rates), self.bias(heads, channels)

    def handed(self, g: Array) -> Array:
        """The input that gives the log decay g, or the nearest one that the form can give."""
        with np.errstate(divide="ignore", over="ignore"):
            if self.form == "value":
                return np.asarray({"ln": g, "log2": g / np.log(2.0)}.get(self.space, np.exp(g)))
            rates, bias = self.constants(g)
            if self.form == "step":
                return np.asarray(g / rates)
            if self.form == "softplus":
                y = -g / rates
                x = y + np.log(-np.expm1(-y))
            else:
                x = logit(np.minimum(g / self.lower_bound, 1.0)) / rates
        return np.where(np.isfinite(x), x - bias, np.copysign(SATURATED, x))

    def asked(self, x: Array) -> Array:
        """The log decay that the input x amounts to."""
        if self.form == "value":
            if self.space == "linear":
                return np.log(x, out=np.full_like(x, _LN_OF_ZERO), where=x > 0)
            return x if self.space == "ln" else x * np.log(2.0)
        rates, bias = self.constants(x)
        if self.form == "step":
            return np.asarray(rates * x)
        if self.form == "softplus":
            return np.asarray(-rates * np.logaddexp(0.0, x + bias))
        return np.asarray(self.lower_bound * sigmoid(rates * (x + bias)))


PLAIN = GateForm()
"""The natural log of the decay."""


def beta_handed(form: str, beta: Array) -> Array:
    """The input that gives the write strength beta."""
    return beta if form == "value" else logit(beta / (2 if form == "2*sigmoid" else 1))


def beta_asked(form: str, x: Array) -> Array:
    """The write strength that the input x amounts to."""
    return x if form == "value" else (2 if form == "2*sigmoid" else 1) * sigmoid(x)


def unit(x: Array, eps: float) -> Array:
    """x / sqrt(|x|^2 + eps) along the last axis; zero rows stay zero."""
    squares = np.square(x).sum(-1, keepdims=True) + eps
    return np.asarray(x / np.sqrt(np.where(squares > 0, squares, 1.0)))


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x)."""
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-x)))


def logit(p: Array) -> Array:
    """Its inverse; a saturated one for 0 and 1."""
    with np.errstate(divide="ignore"):
        x = np.log(p) - np.log1p(-p)
    return np.asarray(np.clip(x, -SATURATED, SATURATED))

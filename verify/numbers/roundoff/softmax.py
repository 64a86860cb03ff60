"""The rounding error of one row of softmax attention, for all logits and values within given bounds.

A row is o = sum_i p_i v_i with p_i = e^(s_i) / sum_j e^(s_j). However it is computed (two passes, or running
maximum and rescaled sums), the weight of key i is built from exponentials whose exact arguments add up to
-a_i, where a_i = max s - s_i. Its errors fall in two parts:

- Those that numerator and denominator share move the weights but leave them weights. The error u a_i of the
  arguments turns o by at most 2 u V sum_i p_i a_i, and the mean sum_i p_i a_i of n keys is at most w with
  w e^w = (n-1)/e (where its derivative 1 - a_i + mean vanishes, all a_i of the others equal 1 + w); it is at
  most u V max a_i too. Factors within e^±L, those of the exponentials and of errors of the logits, turn o by
  at most 2 V tanh(L/2): the worst values are ±V, and then the odds of +V change by at most e^±2L.
- Those of one sum alone: every term passes k roundings in the numerator and l in the denominator, which moves
  the quotient by at most V ((1+u)^k - 1 + (1+u)^l - 1) / (2 - (1+u)^l).

Nothing grows with the range of the logits. Weights and accumulators may be flushed to zero below the smallest
normal number; the denominator is at least the weight of the largest logit, nearly 1.
"""

from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx, fmpq

from verify.model.errors import RequestError
from verify.numbers.convert import Number, to_fraction
from verify.numbers.formats import FLOAT32, Format

_BITS = 128
_MOST = Fraction(1, 8)
"""Beyond this sum of relative errors no bound is given: the rows would be useless."""


@dataclass(frozen=True)
class SoftmaxRow:
    """How a row is computed, and on what.

    Args:
        keys: n >= 1.
        reach: the largest minus the smallest logit is at most this.
        values: V, no value is larger in absolute value.
        format: of all operations.
        stored: of the weights that multiply values; sums of weights keep ``format``.
        output: of the result.
        function_ulps: exp errs by at most this many units in the last place.
        additions: how many additions a term passes in a sum; n - 1 covers every order.
        rescalings: how often a running maximum rescales the sums; 0 for two passes.
        logit_error: every logit is at most this far from the one that counts.
    """

    keys: int
    reach: Number
    values: Number = 1
    format: Format = FLOAT32
    stored: Format | None = None
    output: Format | None = None
    function_ulps: Number = 1
    additions: int | None = None
    rescalings: int = 0
    logit_error: Number = 0

    def __post_init__(self) -> None:
        least = {"keys": 1, "reach": 0, "values": 0, "function_ulps": 0, "additions": 0, "rescalings": 0}
        for name, limit in {**least, "logit_error": 0}.items():
            given = getattr(self, name)
            if given is not None and to_fraction(given) < limit:
                raise RequestError(f"{name} must be at least {limit}, got {given}")


def softmax_error(row: SoftmaxRow) -> float:
    """A bound of every |computed - exact| entry of the output, for any data within the row's bounds.

    Raises:
        RequestError: the relative errors add up to more than 1/8, or the values may overflow.
    """
    u = row.format.unit_roundoff
    additions = row.keys - 1 if row.additions is None else row.additions
    exponential = 2 * to_fraction(row.function_ulps) * u
    factors = (1 + row.rescalings) * exponential
    stored = Fraction(0) if row.stored is None else row.stored.unit_roundoff
    if (additions + row.rescalings + 1) * u + factors + stored + to_fraction(row.logit_error) > _MOST:
        raise RequestError(f"the relative errors of {row.keys} keys in {row.format.name} exceed {_MOST}")
    if row.keys * to_fraction(row.values) * 2 > row.format.max:
        raise RequestError(f"sums of {row.keys} values up to {row.values} may overflow in {row.format.name}")
    with ctx.workprec(_BITS):
        shared = _shared(row, factors)
        own = _own(additions + row.rescalings, u, stored)
        relative = shared + own + _underflow(row)
        last = (1 + _ball(u)) * (1 if row.output is None else 1 + _ball(row.output.unit_roundoff)) - 1
        result = _ball(to_fraction(row.values)) * (relative * (1 + last) + last)
        return _above(result + 2 * _ball(max(row.format.min_normal, (row.output or row.format).min_normal)))


def _shared(row: SoftmaxRow, factors: Fraction) -> arb:
    """Of errors that move the weights alike in both sums, relative to V."""
    u, reach = _ball(row.format.unit_roundoff), _ball(to_fraction(row.reach))
    mean = arb(0) if row.keys == 1 else ((row.keys - 1) / arb(1).exp()).lambertw()
    turned = arb.min(2 * mean / (1 - u), reach) * u
    spread = -(1 + row.rescalings) * (1 - _ball(factors) / (1 + row.rescalings)).log()
    return turned + 2 * ((spread + _ball(to_fraction(row.logit_error))) / 2).tanh()


def _own(roundings: int, u: Fraction, stored: Fraction) -> arb:
    """Of errors that each sum makes for itself, relative to V: one product more in the numerator."""
    below = (1 + _ball(u)) ** roundings
    above = below * (1 + _ball(u)) * (1 + _ball(stored))
    return (above - 1 + below - 1) / (2 - below)


def _underflow(row: SoftmaxRow) -> arb:
    """Of weights, products and sums that vanish below the smallest normal number, relative to V.

    In each sum at most three of them a key and one a rescaling, doubled because errors grow by less than that
    on their way, over a denominator of at least 1/2, which they must not change much.
    """
    tiny = max(row.format.min_normal, Fraction(0) if row.stored is None else row.stored.min_normal)
    values = to_fraction(row.values)
    lost = (3 * row.keys + row.rescalings) * _ball(tiny * 2)
    if not lost < 0.25:
        raise RequestError(f"{row.keys} weights may vanish below {float(tiny):.3g}; no bound is given")
    return 4 * lost * (1 if not values else 2 + 1 / _ball(values))


def _ball(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


def _above(x: arb) -> float:
    """A float64 that is at least every number of the ball."""
    import numpy as np

    return float(np.nextafter(float(x.upper()), np.inf))

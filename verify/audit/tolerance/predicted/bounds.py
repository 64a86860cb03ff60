"""The largest deviation a correct kernel shows, up to a stated false-alarm probability.

Let e be a kernel's error in one row (V outputs of a token and head, or the K V entries of a state), d_1 ...
d_R and d'_1 ... d'_R the errors of the coherent and incoherent runs of its model. Assumed: each is a sum of
many small roundings, so Gaussian with mean 0 and some covariance, of any shape and rank; they are
independent; and the trace of e's covariance is at most C = trace cov d + trace cov d', as it is when each
operation of the kernel errs like one of the two. Compared is ||e||^2 with D = sum (||d_r||^2 + ||d'_r||^2) /
R, whose mean is C. With Q = ||e||^2 / C = sum lambda_i Z_i^2, sum lambda_i <= 1:

* P(Q > x) is largest for rank one, Q = Z^2, as soon as x > 1.5365 (Szekely and Bakirov, Extremal
  probabilities for Gaussian quadratic forms, Probab. Theory Relat. Fields 126, 2003).
* That tail of Z^2 is a convex decreasing function of x, and by convexity its mean value over D / C, an
  average of R independent such sums, is at most that over the average of Z_1^2 ... Z_R^2.
* So P(||e||^2 > c D) <= P(Z^2 > c chi^2_R / R) + P(D < 1.5365 C / c): a Student tail |t_R| > sqrt(c), and a
  term that Chernoff's bound, again by convexity, puts below that of chi^2_R / R.

Rank one is what coherent errors give (one gate's rounding repeated at every token), and then the R runs are
worth R numbers, however many entries the row has; hence R degrees of freedom and not R V.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from verify.audit.case import Array, Case, Outcome
from verify.audit.reference.attention import rates
from verify.audit.reference.results import Reference
from verify.audit.reference.transition import growth
from verify.audit.tolerance.predicted.prediction import Algorithm, Prediction
from verify.model.errors import RequestError
from verify.numbers.formats import format_named

FALSE_ALARM = 1e-9
_RANK_ONE_FROM = 1.5365


@dataclass(frozen=True, eq=False)
class Tolerance:
    """Largest accepted norm of the deviation from the reference.

    Args:
        output: ``[B, T, HV]``, for the 2-norm over V.
        state: ``[B, HV]``, for the Frobenius norm.
        factor: tolerance over predicted deviation, before the other terms.
    """

    output: Array
    state: Array
    factor: float


def tolerance(
    case: Case,
    prediction: Prediction,
    reference: Reference,
    algorithm: Algorithm,
    *,
    cells: int,
    false_alarm: float = FALSE_ALARM,
) -> Tolerance:
    """Predicted deviation times a Student quantile, plus bias, the reference's error and underflow.

    Args:
        case: the input.
        prediction: the deviation its model shows.
        reference: the exact result, with its error.
        algorithm: form and formats of the kernel.
        cells: how many cases share the certificate; each gets an equal part of the false-alarm probability,
            and in it every output row and state an equal part again.
        false_alarm: probability that a correct kernel exceeds any tolerance of the certificate.

    Raises:
        RequestError: the probability or the number of cells makes no sense.
    """
    if not 0 < false_alarm < 1 or cells < 1:
        raise RequestError(f"false alarm {false_alarm} must be in (0, 1) and the {cells} cells at least 1")
    numbers = prediction.output.size + prediction.state.size
    factor = quantile(false_alarm / (cells * max(numbers, 1)), prediction.runs)
    flushed = underflow(case, algorithm)
    return Tolerance(
        output=factor * prediction.output + prediction.output_bias + reference.output_error + flushed[0],
        state=factor * prediction.state + prediction.state_bias + reference.state_error + flushed[1],
        factor=factor,
    )


@cache
def quantile(probability: float, runs: int) -> float:
    """The c^(1/2) with P(||e||^2 > c D) <= probability, see the module's derivation; rounded up.

    P(|t_R| > x) is the regularised incomplete beta function I_{R/(R + x^2)}(R/2, 1/2), enclosed by a ball.
    """
    low, high = 0.0, 1.0
    while _exceeds(high, runs) > probability:
        high *= 2
        if high > 1e300:
            raise RequestError(
                f"no tolerance has a false alarm below {probability} with {runs} runs; give more runs"
            )
    # The upper end always satisfies the condition; stopping early only leaves the tolerance larger.
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _exceeds(middle, runs) <= probability else (middle, high)
    return high


def _exceeds(x: float, runs: int) -> float:
    """Upper bound of P(||e|| > x D^(1/2))."""
    from flint import arb, ctx

    if x * x <= _RANK_ONE_FROM:
        return 1.0
    with ctx.workprec(128):
        half, share = arb(runs) / 2, arb(runs) / (arb(runs) + arb(x) * arb(x))
        student = share.beta_lower(half, arb(0.5), regularized=True)
        small = arb(_RANK_ONE_FROM) / (arb(x) * arb(x))
        chernoff = (half * (1 - small + small.log())).exp()
        return math.nextafter(float((student + chernoff).upper()), math.inf)


def underflow(case: Case, algorithm: Algorithm) -> tuple[Array, Array]:
    """What flushing every subnormal intermediate to zero may change: per output row and per state.

    One operation then errs by at most the smallest normal number. Per token there are fewer than
    8 (K + 1)(V + 1) + 4 C (K + V + C) of them, C the chunk size; each enters the state multiplied by at most
    (1 + ||k||)^2 (1 + beta), stays there without growing (claim kda.transition-spectrum), and is read with
    scale ||q||. With directions of their own, the lengths of these stand for that of k, the longest value for
    beta, and what it grows by is the product of the norms of transitions. Conversion to the output's format
    underflows gradually, which the prediction includes.
    Softmax attention: a weight that underflows, or its share of a tile, changes the output by at most the
    smallest number times twice the largest value; its T weights and their T sums of V entries do so. With the
    normaliser of linear attention, the state has a column of ones more, and what it changes, in numerator and
    denominator, is divided by the sum of the weights.
    """
    s = case.shape
    smallest = max(
        float(format_named(name).min_normal) for name in (algorithm.compute_dtype, algorithm.products) if name
    )
    if case.kind.weights == "softmax":
        change = 4 * s.T * (s.K + s.V + 4) * smallest * (1 + np.abs(case.v).max(initial=0.0))
        return np.full((s.B, s.T, s.HV), change), np.zeros((s.B, s.HV))
    chunk = algorithm.chunk_size or 1
    count = s.T * (8 * (s.K + 1) * (s.V + 1) + 4 * chunk * (s.K + s.V + chunk))
    key = np.linalg.norm(case.k, axis=-1).max(initial=0.0)
    query = 1 + abs(case.scale) * np.linalg.norm(case.q, axis=-1).max(initial=0.0)
    state = count * smallest * (1 + key) ** 2 * (1 + case.strength.max(initial=0.0))
    if case.kind.directed:
        way = case.directions
        lengths = [np.linalg.norm(x, axis=-1).max(initial=0.0) for x in (way.read, way.out, way.value)]
        state *= float(np.prod([1 + x for x in lengths])) * growth(case)
    if case.kind.weights == "linear":
        shares = np.abs(rates(case)[0]).max(initial=0.0) * (
            1 + np.linalg.norm(case.v, axis=-1).max(initial=0.0)
        )
        return np.full((s.B, s.T, s.HV), 4 * query * state * shares), np.zeros((s.B, s.HV))
    return np.full((s.B, s.T, s.HV), query * state), np.full((s.B, s.HV), state)


def row_errors(outcome: Outcome, reference: Reference) -> tuple[Array | None, Array | None]:
    """The norms a tolerance is for: deviation of the output [B, T, HV] and of the state [B, HV].

    NaN where a value is not finite, None where nothing came back.
    """
    output = None if outcome.output is None else outcome.output - reference.output
    state = None if outcome.final_state is None else outcome.final_state - reference.final_state
    return (
        None if output is None else np.sqrt(np.square(output).sum(-1)),
        None if state is None else np.sqrt(np.square(state).sum((-1, -2))),
    )

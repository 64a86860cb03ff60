"""Plain numbers on the error of one tensor: relative, in units in the last place, by token and block, signed.

Where the reference is 0 no relative error exists: such entries and rows are left out of it, counted, and
their largest absolute error is stated instead.
"""

from dataclasses import dataclass

import numpy as np

from verify.audit.case import Array
from verify.numbers.formats import Format

BLOCK = 16
"""Tokens per block."""


@dataclass(frozen=True)
class Plain:
    """Plain numbers on one tensor; None where nothing can be measured.

    Args:
        max_rel: largest |error| / |reference|.
        max_ulp: largest |error| in units in the last place of the reference, in the format that came back.
        median_ulp: the median of these.
        zeros: entries whose reference is 0.
        at_zero: largest |error| among them.
        rms_token: largest ratio, over single tokens of a head, of the RMS of the error to that of the
            reference.
        rms_block: likewise over blocks of 16 tokens of a head.
        bias: mean of the signed error.
        bias_share: bias over the RMS of the error: 0 for errors of either sign, 1 or -1 for errors all
            alike.
        outward_share: likewise with errors away from 0 counted as positive; truncation gives a negative one.
    """

    max_rel: float | None
    max_ulp: float | None
    median_ulp: float | None
    zeros: int
    at_zero: float | None
    rms_token: float | None
    rms_block: float | None
    bias: float | None
    bias_share: float | None
    outward_share: float | None


def plain(difference: Array, reference: Array, came_back: Format, *, tokens: bool) -> Plain:
    """The numbers of one tensor.

    Args:
        difference: what came back less the reference, of any shape; an entry that is not finite counts as
            infinitely wrong.
        reference: of the same shape.
        came_back: the format of what came back.
        tokens: whether axes 1 and 2 are tokens and heads; else no number is given per token.
    """
    error = np.where(np.isfinite(difference), np.abs(difference), np.inf)
    zero = reference == 0
    size = np.abs(reference)[~zero]
    in_ulps = error[~zero] / _quantum(size, came_back)
    rows = _token_ratios(error, reference) if tokens else (None, None)
    return Plain(
        max_rel=_largest(error[~zero] / size),
        max_ulp=_largest(in_ulps),
        median_ulp=float(np.median(in_ulps)) if in_ulps.size else None,
        zeros=int(zero.sum()),
        at_zero=_largest(error[zero]),
        rms_token=rows[0],
        rms_block=rows[1],
        bias=_mean(difference),
        bias_share=_share(difference),
        outward_share=_share(difference * np.sign(reference)),
    )


def _quantum(size: Array, target: Format) -> Array:
    """The distance of neighbouring numbers of a format at positive sizes."""
    _, exponent = np.frexp(size)
    return np.asarray(np.ldexp(1.0, np.maximum(exponent - 1, target.min_exponent) - target.precision + 1))


def _token_ratios(error: Array, reference: Array) -> tuple[float | None, float | None]:
    """The largest RMS ratio of a token and of a block of tokens, each of one sequence and head."""
    axes = tuple(range(3, error.ndim))
    squares = [np.square(x).sum(axis=axes) for x in (error, reference)]
    if not error.size:
        return None, None
    starts = np.arange(0, error.shape[1], BLOCK)
    blocks = [np.add.reduceat(x, starts, axis=1) for x in squares]
    return _ratio(*squares), _ratio(*blocks)


def _ratio(above: Array, below: Array) -> float | None:
    some = below > 0
    return _largest(np.sqrt(above[some] / below[some]))


def _largest(values: Array) -> float | None:
    return float(values.max()) if values.size else None


def _mean(values: Array) -> float | None:
    """NaN when a value is not finite."""
    if not values.size:
        return None
    return float(values.mean()) if np.isfinite(values).all() else float("nan")


def _share(signed: Array) -> float | None:
    mean = _mean(signed)
    if mean is None or not np.isfinite(mean):
        return mean
    spread = float(np.sqrt(np.square(signed).mean()))
    return mean / spread if spread else 0.0

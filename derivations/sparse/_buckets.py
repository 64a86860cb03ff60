"""A one-pass integer histogram of scores, and a threshold whose dropped mass is certainly at most ε.

Scores are in units of ln 2 (base-2 logits); bucket b holds those in [b, b + 1), so that a token weighs at
least 2^b and less than 2^(b+1). Counts, thresholds and bounds are integers; nothing is sorted.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import floor

from verify.model.errors import RequestError


@dataclass(frozen=True)
class Threshold:
    """Drop every token whose bucket is below ``bucket``.

    Attributes:
        bucket: the lowest bucket that is kept.
        dropped_at_most: an upper bound of the dropped weights, in units of 2^lowest.
        kept_at_least: a lower bound of the kept weights, in the same units.
    """

    bucket: int
    dropped_at_most: int
    kept_at_least: int

    @property
    def mass(self) -> Fraction:
        """The bound on the dropped mass, U/(U + L)."""
        return Fraction(self.dropped_at_most, self.dropped_at_most + self.kept_at_least)


def histogram(scores: Iterable[Fraction]) -> Counter[int]:
    """How many scores lie in each bucket [b, b + 1)."""
    return Counter(floor(score) for score in scores)


def threshold(counts: Counter[int], epsilon: Fraction) -> Threshold:
    """The highest threshold whose bound U/(U + L) is at most ε, found from the counts alone.

    Args:
        counts: tokens per bucket.
        epsilon: the dropped mass allowed, in [0, 1).

    Raises:
        RequestError: there is no token, or ε is not in [0, 1).
    """
    if not counts:
        raise RequestError("there is no token to keep; give at least one score")
    if not 0 <= epsilon < 1:
        raise RequestError(f"the dropped mass allowed is {epsilon}; give a number from 0 up to but below 1")
    lowest = min(counts)
    lost, left = 0, sum(count << (bucket - lowest) for bucket, count in counts.items())
    best = Threshold(lowest, 0, left)
    for bucket in sorted(counts):
        lost += counts[bucket] << (bucket - lowest + 1)
        left -= counts[bucket] << (bucket - lowest)
        candidate = Threshold(bucket + 1, lost, left)
        if candidate.mass > epsilon:
            break
        best = candidate
    return best

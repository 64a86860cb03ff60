"""How far rounding may take a recurrent delta-rule kernel from the exact recurrence: the proved bound.

The formulas are those of claim kernel.error-contract (derivations/kernel/statements.v), in exact rationals;
a unit test has Coq compare them. They hold for every rounding with |y - x| <= u (|x| + tiny), any order of
summation inside inner products, fused or not, and no overflow; not for chunked forms or the aligned sums of
tensor cores. All lengths are Euclidean, and given as upper bounds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from verify.model.errors import RequestError
from verify.numbers.formats import Format

ZERO, ONE = Fraction(0), Fraction(1)
BITS = 96
"""Significant bits of a bound that is carried from token to token."""


@dataclass(frozen=True)
class Roundoff:
    """Relative errors of a kernel's operations.

    Args:
        operation: u, of every operation but the next three.
        decay: of a decayed state's entry: u, and the relative error of the decay where it is computed.
        state: of storing the state at every token, 0 where it stays as computed.
        output: of storing the output, likewise.
        tiny: the smallest normal number of the formats, the largest of them; over u where subnormals flush.
        depth: most roundings that a product of an inner product meets, its own included; None for any order.
    """

    operation: Fraction
    decay: Fraction
    state: Fraction
    output: Fraction
    tiny: Fraction
    depth: int | None = None

    @classmethod
    def nearest(
        cls,
        compute: Format,
        state: Format | None = None,
        output: Format | None = None,
        decay_error: Fraction = ZERO,
        depth: int | None = None,
    ) -> "Roundoff":
        """Rounding to nearest, with subnormals.

        Args:
            compute: the format of every operation.
            state: the format the state is stored in at every token, if another.
            output: the format outputs are stored in, if another.
            decay_error: relative error of the decays themselves, as of an exponential.
            depth: of the inner products; None for any order.
        """
        u = compute.unit_roundoff
        kept, given = (format_.unit_roundoff if format_ else ZERO for format_ in (state, output))
        tiny = max(format_.min_normal for format_ in (compute, state, output) if format_)
        return cls(u, (1 + u) * (1 + decay_error) - 1, kept, given, tiny, depth)

    def depth_of(self, keys: int) -> int:
        """D: of inner products of ``keys`` terms."""
        return keys if self.depth is None else self.depth

    def spread(self, keys: int) -> Fraction:
        """Gamma: relative error of one step with keys of ``keys`` entries."""
        return (1 + self.operation) ** (self.depth_of(keys) + 4) * (1 + self.decay) * (1 + self.state) - 1

    def room(self, keys: int, values: int) -> Fraction:
        """What underflow adds to the length of a state of ``keys`` times ``values`` entries."""
        return values * (keys * self.tiny)


@dataclass(frozen=True)
class Token:
    """Upper bounds of what one step meets.

    Args:
        decay: largest decay, alpha.
        key: length of the key.
        strength: beta.
        value: length of the value.
        state: length of the exact state before the step, over all its entries.
    """

    decay: Fraction
    key: Fraction
    strength: Fraction
    value: Fraction
    state: Fraction

    def __post_init__(self) -> None:
        if min(self.decay, self.key, self.strength, self.value, self.state) < 0:
            raise RequestError(f"a bound on a length, a decay or a strength is negative: {self}")

    @property
    def growth(self) -> Fraction:
        """g: how much the exact step may lengthen an error, apart from the decay."""
        return max(ONE, self.strength * self.key**2 - 1)


def state_errors(
    roundoff: Roundoff,
    keys: int,
    values: int,
    tokens: Sequence[Token],
    start: Fraction = ZERO,
    *,
    bits: int | None = BITS,
) -> list[Fraction]:
    """E_0 ... E_T, Frobenius: bounds of the computed state's error before the first and after every token.

    Args:
        roundoff: of the kernel.
        keys: K.
        values: V.
        tokens: the bounds of each step.
        start: bound of the initial state's error.
        bits: significant bits to which every E_t is rounded up, which keeps it a bound; None for exact
            numbers, whose length grows with each token.
    """
    spread, room, errors = roundoff.spread(keys), roundoff.room(keys, values), [start]
    for token in tokens:
        kappa, b, error = max(ONE, token.key), max(ONE, token.strength), errors[-1]
        decayed = token.decay * (token.state + error) + room
        fresh = spread * (token.growth * decayed + b * kappa * (token.value + kappa * decayed))
        exact = token.growth * token.decay * error + fresh
        errors.append(exact if bits is None else _rounded_up(exact, bits))
    return errors


def _rounded_up(x: Fraction, bits: int) -> Fraction:
    unit = Fraction(2) ** (x.numerator.bit_length() - x.denominator.bit_length() - bits)
    return math.ceil(x / unit) * unit


def output_error(
    roundoff: Roundoff, keys: int, values: int, query: Fraction, state: Fraction, error: Fraction
) -> Fraction:
    """Bound of the error of one token's output, over its ``values`` entries.

    Args:
        roundoff: of the kernel.
        keys: K.
        values: V.
        query: length of the (scaled) query.
        state: length of the exact state that is read.
        error: bound of the computed state's error there.
    """
    reading = (1 + roundoff.operation) ** roundoff.depth_of(keys) * (1 + roundoff.output) - 1
    return query * error + reading * (query * (state + error) + roundoff.room(keys, values))


def error_after(roundoff: Roundoff, keys: int, values: int, steps: int, largest: Token) -> Fraction:
    """A bound of E_T from an exact start, linear in T, without the decays.

    Args:
        roundoff: of the kernel.
        keys: K.
        values: V.
        steps: T.
        largest: upper bounds for every token; its decay is taken to be 1.

    Raises:
        RequestError: the bound does not exist: T Gamma (1 + b kappa^2) reaches 1, or an erase may lengthen.
    """
    kappa, b = max(ONE, largest.key), max(ONE, largest.strength)
    rate, carried = steps * roundoff.spread(keys), 1 + b * kappa**2
    if largest.growth > 1 or largest.decay > 1 or rate * carried >= 1:
        raise RequestError(
            f"no bound linear in T for {steps} tokens, growth {float(largest.growth):.6g} and relative errors"
            f" of {float(roundoff.spread(keys)):.3g} a token; bound them token by token"
        )
    added = carried * (largest.state + roundoff.room(keys, values)) + b * kappa * largest.value
    return rate * added / (1 - rate * carried)

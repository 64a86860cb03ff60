"""What is left of the tokens of a head: its data, and bounds from the last token back."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from verify.model.errors import RequestError

Matrix = Sequence[Sequence[Fraction]]
EXACT_TOKENS = 64
"""Shares of rational decays are exact up to this many tokens; afterwards they are enclosed."""
LARGEST = 2**20
"""Most numbers (tokens × channels, with keys × channels again) that are multiplied out."""
DIGITS = 12
"""Significant digits of an enclosure."""
SHORT = 120
"""Bits up to which an exact value stands as it is."""
TINY, COARSE = Fraction(1, 10**300), Fraction(1, 10**45)
"""Ceilings below, and ends of rounded shares apart, are not told further."""


@dataclass(frozen=True)
class Head:
    """T tokens of a head: gates T×K or T×1 (α, or g = ln α), strengths, and keys T×K as directions."""

    gates: Matrix
    logarithms: bool
    betas: Sequence[Fraction]
    keys: Matrix | None = None

    @property
    def exact(self) -> bool:
        """Whether shares are computed without rounding."""
        return not self.logarithms and len(self.gates) <= EXACT_TOKENS

    def decays(self, token: int) -> Sequence[Fraction]:
        """The decays of a token, one per channel of the keys."""
        row = self.gates[token]
        return list(row) * len(self.keys[0]) if self.keys and len(row) == 1 else row


def checked(head: Head) -> Head:
    """The same head.

    Raises:
        RequestError: shapes differ, a decay or strength is outside its range, a key is 0, or it is too large.
    """
    tokens, width = len(head.gates), len(head.gates[0])
    name, good = ("g", "at most 0") if head.logarithms else ("α", "in [0, 1]")
    for place, row in enumerate(head.gates, 1):
        for gate in row:
            if gate > 0 if head.logarithms else not 0 <= gate <= 1:
                hint = "" if head.logarithms or gate > 1 else "; give --log for gates g = ln α"
                raise RequestError(f"gate {gate} of token {place}: {name} must be {good}{hint}")
    if len(head.betas) != tokens:
        raise RequestError(f"{len(head.betas)} strengths for {tokens} gates; give one per token")
    for place, beta in enumerate(head.betas, 1):
        if not 0 <= beta <= 2:
            raise RequestError(f"β = {beta} of token {place}: the ceiling needs β in [0, 2]")
    if head.keys is not None:
        if len(head.keys) != tokens:
            raise RequestError(f"{len(head.keys)} keys for {tokens} gates; give one per token")
        if width not in (1, len(head.keys[0])):
            raise RequestError(f"keys have {len(head.keys[0])} channels, gates {width}")
        if zero := next((place for place, key in enumerate(head.keys, 1) if not any(key)), 0):
            raise RequestError(f"key {zero} is 0 and has no direction; keys are scaled to length 1")
        width = len(head.keys[0]) ** 2
    if tokens * width > LARGEST:
        raise RequestError(f"{tokens} tokens of this width are {tokens * width} numbers, more than {LARGEST}")
    return head


def rows(head: Head, wanted: set[int]) -> list[dict[str, Any]]:
    """Bounds on what is left of the wanted tokens (from 1), in the form that the checker reads."""
    ceilings, shares = _ceilings(head, wanted), _shares(head, wanted)
    return [{"token": token, **ceilings[token], **shares.get(token, {})} for token in sorted(wanted)]


def _ceilings(head: Head, wanted: set[int]) -> dict[int, dict[str, Any]]:
    import mpmath

    width = len(head.gates[0])
    kept = [Fraction(int(not head.logarithms))] * (width + 1)
    parts = [(1, 1)] * (width + 1)
    found = {}
    for token in range(len(head.gates), 0, -1):
        if token in wanted:
            if head.logarithms:
                with mpmath.workdps(3 * DIGITS):
                    kept_now = [_exponential(x) for x in kept]
            else:
                kept_now = [Fraction(*pair) for pair in parts]
            bounds = [_bounds(x, not head.logarithms, TINY) for x in kept_now[:-1]]
            capped = head.betas[token - 1] * kept_now[-1]
            found[token] = {"ceiling": _bounds(capped, not head.logarithms, TINY), "channels": bounds}
        gates = [*head.gates[token - 1], max(head.gates[token - 1])]
        if head.logarithms:
            kept = [x + gate for x, gate in zip(kept, gates, strict=True)]
        else:
            parts = [(n * g.numerator, d * g.denominator) for (n, d), g in zip(parts, gates, strict=True)]
    return found


def _exponential(x: Fraction) -> Fraction:
    import mpmath

    if x < -1000:
        return Fraction(0)
    return _fraction(mpmath.exp(mpmath.mpf(x.numerator) / x.denominator))


def _fraction(value: Any) -> Fraction:
    sign, mantissa, exponent, _ = value._mpf_
    size = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    return -size if sign else size


def _shares(head: Head, wanted: set[int]) -> dict[int, dict[str, Any]]:
    """With P the product of all later steps: β_j kᵀPk/‖k‖² and β_j²‖Pk‖²/‖k‖²."""
    if head.keys is None:
        return {}
    import mpmath

    with mpmath.workdps(6 * DIGITS):
        return _backward(head, head.keys, wanted)


def _backward(head: Head, keys: Matrix, wanted: set[int]) -> dict[int, dict[str, Any]]:
    import mpmath

    def number(x: Fraction) -> Any:
        return x if head.exact else mpmath.mpf(x.numerator) / x.denominator

    width = len(keys[0])
    after = [[number(Fraction(int(i == j))) for j in range(width)] for i in range(width)]
    found = {}
    for token in range(len(keys), 0, -1):
        key, beta = [number(x) for x in keys[token - 1]], number(head.betas[token - 1])
        square = sum(x * x for x in key)
        image = [sum(a * b for a, b in zip(row, key, strict=True)) for row in after]
        if token in wanted:
            read = beta * sum(a * b for a, b in zip(key, image, strict=True)) / square
            length = beta**2 * sum(x * x for x in image) / square
            values = [x if head.exact else _fraction(x) for x in (read, length)]
            share, squared = (_bounds(x, head.exact, Fraction(0) if head.exact else COARSE) for x in values)
            found[token] = {"share": share, "length": squared}
        decays = [number(x) for x in head.decays(token - 1)]
        if head.logarithms:
            decays = [mpmath.exp(x) for x in decays]
        reads = [beta * x / square for x in image]
        after = [
            [(x - read * k) * decay for x, k, decay in zip(row, key, decays, strict=True)]
            for row, read in zip(after, reads, strict=True)
        ]
    return found


def _bounds(value: Fraction, exact: bool, least: Fraction) -> list[str]:
    """An exact short value twice, or ends that certainly hold it, some units of its last digit apart.

    ``least``: below this size a digit is not told.
    """
    bits = value.numerator.bit_length() - value.denominator.bit_length()
    if exact and value.numerator.bit_length() + value.denominator.bit_length() <= SHORT:
        return [str(value), str(value)]
    if abs(value) < least:
        return [str(-least if value < 0 else Fraction(0)), str(least)] if exact else [str(-least), str(least)]
    unit = max(Fraction(10) ** (math.floor(bits * math.log10(2)) - DIGITS), least)
    whole = value // unit
    return [str((whole - 1) * unit), str((whole + 2) * unit)]

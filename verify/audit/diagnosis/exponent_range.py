"""Why a kernel gives values that are not finite: how strong a constant gate it stands, at several lengths."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from verify.audit.case import Case
from verify.audit.diagnosis.not_finite import (
    explain_infinite_gate,
    explain_lengths,
    explain_rising_sums,
    finite,
)
from verify.audit.inputs.probes import probe
from verify.audit.judge import Judgement
from verify.audit.laboratory import Finding, Laboratory
from verify.numbers.formats import FORMATS, format_named

_LENGTHS = (16, 32, 64, 128)
_STRONGEST = 1000.0
_BISECTIONS = 24
_RESET = -1e4
_ROWS = 64
_LARGE_LOGITS = 1024.0


def explain_nonfinite(
    lab: Laboratory, overflowing: Sequence[Judgement], passing: Sequence[Judgement]
) -> Finding:
    """A finding for cells with NaN or infinities, with the measured threshold when the gate is the cause."""
    first = min(overflowing, key=lambda j: j.case.v.size)
    where = f"{len(overflowing)} cells, smallest of class {first.case.name} with T = {first.case.shape.T}"
    if not lab.convention.kind.gate:
        return _other(lab, where)
    if all(np.isneginf(j.case.log_decay).any() for j in overflowing) and (
        reason := explain_infinite_gate(lab, lambda case: finite(lab.run(case)), where)
    ):
        return reason
    measured = thresholds(lab, lambda case: finite(lab.run(case)))
    found = {t: g for t, g in measured.items() if g is not None}
    whole = math.gcd(*(t for t, g in measured.items() if g is None))
    if (limit := exponent_limit(lab, found)) is not None:
        partial = whole > 1 and all(t % whole for t in found)
        block = first_rows(lab) if max(map(round, limit[2].values())) == 1 else None
        return _overflow(*limit[:2], found, limit[2], where, whole if partial else None, block)
    if found:
        listed = "; ".join(f"T = {t}: |g| = {g:.6g}" for t, g in found.items())
        return Finding(
            "not finite for strong gates",
            "finite for mild and not for strong gates, at thresholds that fit no single exponential",
            f"{where}; not finite from {listed}",
        )
    return _other(lab, where)


def thresholds(lab: Laboratory, stands: Callable[[Case], bool]) -> dict[int, float | None]:
    """By length: the weakest constant gate |g| that it does not stand, to 7 digits; None if there is none."""
    return {t: _threshold(lab, t, stands) for t in sorted({lab.length(n) for n in _LENGTHS})}


def _threshold(lab: Laboratory, tokens: int, stands: Callable[[Case], bool]) -> float | None:
    """Only a threshold counts: the result must be finite at the mildest gate tried."""

    def holds(strength: float) -> bool:
        return stands(probe(lab.convention, lab.dtype, tokens, gate=-strength))

    low, high = 1e-3, _STRONGEST
    if holds(high) or not holds(low):
        return None
    for _ in range(_BISECTIONS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high


def exponent_limit(lab: Laboratory, found: Mapping[int, float]) -> tuple[str, float, dict[int, float]] | None:
    """The format whose largest exponent the thresholds mean, that exponent, and the span in tokens by length.

    None unless at several lengths the exponent is a whole number of tokens' gates.
    """
    format_name = lab.convention.resolve(lab.convention.compute_dtype, lab.dtype)
    for limit_name in dict.fromkeys((format_name, *FORMATS)):
        limit = math.log(float(format_named(limit_name).max))
        steps = {t: limit / g for t, g in found.items()}
        if len(steps) > 1 and all(_whole(n) and 1 <= round(n) <= t for t, n in steps.items()):
            return limit_name, limit, steps
    return None


def first_rows(lab: Laboratory) -> int | None:
    """The block size, if one full reset gives values that are not finite just on the first rows of blocks."""
    tokens = lab.length(_ROWS)
    case = probe(lab.convention, lab.dtype, tokens, gate=-0.01)
    broken = set()
    for row in range(tokens):
        gates = np.array(case.g)
        gates[:, row] = _RESET
        if not finite(lab.run(case.replace(g=gates))):
            broken.add(row)
    block = math.gcd(*broken)
    return block if block > 1 and broken == set(range(block, tokens, block)) else None


def _whole(steps: float) -> bool:
    """Whether a threshold is that of a whole number of tokens, up to a rounding in the running gate."""
    return abs(steps - round(steps)) <= 1e-3 * steps


def _overflow(
    limit_name: str,
    limit: float,
    thresholds: dict[int, float],
    steps: dict[int, float],
    where: str,
    whole: int | None,
    block: int | None,
) -> Finding:
    """The exponential of a span of gates, of the wrong sign.

    Multiples of ``whole`` tokens never fail; one gate alone fails on the first rows of blocks of ``block``.
    """
    lines = [
        f"T = {t}: finite below |g| = {thresholds[t]:.5g}, not from it on, and {round(n)}·"
        f"{thresholds[t]:.5g} = {round(n) * thresholds[t]:.4g}"
        for t, n in steps.items()
    ]
    evidence = f"constant gates, bisected: {'; '.join(lines)}; {where}"
    shown = f"span·|g| = {limit:.1f} = ln(max {limit_name})"
    if whole is not None:
        return Finding(
            "pad rows read the running gate as 0",
            f"only when T is not a multiple of {whole}: e^(0 − G) of a pad row overflows where {shown}, and "
            f"times a zero key it is NaN; mask before exp",
            f"{evidence}; finite up to |g| = {_STRONGEST:g} at multiples of {whole}",
        )
    if block is not None:
        return Finding(
            "exponent above 0 on the first row of a block",
            f"one gate beyond {limit:.1f} = ln(max {limit_name}) overflows on the first row of every block "
            f"of {block} after the first and on no other row: a sum that leaves that row out, relative to "
            f"one that includes it",
            f"{evidence}; one gate of {_RESET:g} tried on every row of T = {_ROWS}, -0.01 on the others",
        )
    return Finding(
        "exponential of −cumsum formed alone",
        f"finite for mild gates and not for strong ones: e^−G overflows where {shown}, and times e^G = 0 it "
        f"is NaN; the span is at most {max(round(n) for n in steps.values())} tokens; form the difference of "
        f"the sums before exp",
        evidence,
    )


def _other(lab: Laboratory, where: str) -> Finding:
    """Not a matter of constant gates: try mild gates alone, then with one full reset among them."""
    tokens = lab.length(24)
    case = probe(lab.convention, lab.dtype, tokens, gate=-0.1)
    if not finite(lab.run(case)):
        return explain_lengths(lab, where) or Finding(
            "not finite on mild inputs",
            "values that are not finite for unit keys, β in [0, 1] and a gate of -0.1 at every token",
            f"T = {tokens}; {where}",
        )
    if case.g is not None:
        gates = case.g.copy()
        gates[:, tokens // 2] = _RESET
        if not finite(lab.run(case.replace(g=gates))):
            return Finding(
                "not finite after a full reset",
                f"one gate of {_RESET:g} among mild ones gives values that are not finite",
                f"T = {tokens}, gate {_RESET:g} at token {tokens // 2}, -0.1 elsewhere; constant gates up to "
                f"{_STRONGEST:g} stay finite; {where}",
            )
        if (found := explain_rising_sums(lab, where)) is not None:
            return found
    if case.kind.features >= {"logits"}:
        large = case.replace(q=case.q * _LARGE_LOGITS)
        if not finite(lab.run(large)):
            return Finding(
                "exponential of a logit formed alone",
                "finite for logits of size 1 and not for large ones: e^s overflows; subtract the row's "
                "largest logit before exp",
                f"T = {tokens}, queries multiplied by {_LARGE_LOGITS:g}; {where}",
            )
    return Finding(
        "not finite",
        "values that are not finite for finite inputs; neither a strong constant gate nor a reset gives them",
        where,
    )

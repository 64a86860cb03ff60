"""Why values are not finite when no constant gate is the cause: lengths, and sums of gates that rise."""

import math
from collections.abc import Callable

import numpy as np

from verify.audit.case import Array, Case, Outcome
from verify.audit.inputs.probes import probe
from verify.audit.laboratory import Finding, Laboratory

Stands = Callable[[Case], bool]
"""Whether what a kernel gives for a case is finite."""
_LENGTHS = (1, 8, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 128)
_TOKENS = 64
_EXACT, _ROUNDED = -(2.0**27), -1e8
"""Gates whose sums over 64 tokens are exact in float32, and about as large ones whose sums are not."""


def finite(outcome: Outcome) -> bool:
    """Whether there are values, all finite."""
    arrays = [a for a in (outcome.output, outcome.final_state) if a is not None]
    return bool(arrays) and all(np.isfinite(a).all() for a in arrays)


def explain_lengths(lab: Laboratory, where: str) -> Finding | None:
    """Whether mild inputs give values that are not finite in partial tiles, or after the first tile, only."""
    lengths = sorted({lab.length(n) for n in _LENGTHS})
    runs = {n: finite(lab.run(probe(lab.convention, lab.dtype, n, gate=-0.1))) for n in lengths}
    good, bad = [n for n in lengths if runs[n]], [n for n in lengths if not runs[n]]
    if not good or not bad:
        return None
    evidence = f"mild inputs, finite at T = {_listed(good)} and not at T = {_listed(bad)}; {where}"
    tile = math.gcd(*good)
    if tile > 1 and len(good) > 1 and all(n % tile for n in bad):
        return Finding(
            "not finite where the last tile is partial",
            f"finite just where T is a multiple of {tile}: what lies beyond the sequence takes part, and 0 "
            f"times a value that is not finite is NaN",
            evidence,
        )
    if max(good) < min(bad) and len(good) > 1:
        return Finding(
            "not finite from the second tile on",
            f"finite up to T = {max(good)} and not from T = {min(bad)} on: a whole tile that is masked for "
            f"some rows, as where the largest logit so far is −inf and −inf − (−inf) is NaN",
            evidence,
        )
    return None


def explain_infinite_gate(lab: Laboratory, stands: Stands, where: str) -> Finding | None:
    """Whether a decay of exactly 0 is not finite as a logarithm of -inf, and finite as one of -1000."""
    if not lab.convention.gate_infinite:
        return None
    case = probe(lab.convention, lab.dtype, lab.length(_TOKENS), gate=-0.1)
    gates = np.array(case.g)
    gates[:, case.shape.T // 2] = -np.inf
    infinite = case.replace(g=gates)
    if stands(infinite) or not stands(infinite.with_finite_gates()):
        return None
    return Finding(
        "not finite for a gate of −inf",
        "a decay of exactly 0, whose logarithm is −inf, gives values that are not finite, and a gate of "
        "−1000 does not: a difference of two sums is −inf − (−inf); floor the gate, or sum the gates between",
        f"T = {case.shape.T}, one token of −inf among gates of −0.1; {where}",
    )


def explain_rising_sums(lab: Laboratory, where: str) -> Finding | None:
    """Whether huge gates are not finite just where their running sums round."""
    tokens = lab.length(_TOKENS)
    case = probe(lab.convention, lab.dtype, tokens, gate=0.0)
    rng = np.random.default_rng(0)
    active = rng.integers(0, 2, case.log_decay.shape[: 3 + (case.kind.gate == "channel")]).astype(np.float64)
    rounded = (_ROUNDED * (1 + rng.random(active.shape)) * active).astype(np.float32).astype(np.float64)

    def stands(gates: Array) -> bool:
        return finite(lab.run(case.replace(g=gates)))

    if stands(rounded) or not stands(_EXACT * active):
        return None
    return Finding(
        "running sums of gates that rise by rounding",
        "gates of at most 0 whose running sums round give values that are not finite, and as large ones "
        "whose sums are exact do not: a difference of two sums comes out above 0, beyond the range of exp; "
        "clamp it",
        f"T = {tokens}, half of the gates 0, the others between {_ROUNDED:g} and {2 * _ROUNDED:g}: not "
        f"finite; the others {_EXACT:g}: finite; {where}",
    )


def _listed(lengths: list[int]) -> str:
    return ", ".join(map(str, lengths))

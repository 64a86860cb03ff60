"""Compares a kernel with wrong kernels on the cells that were run: what a hypothesis must pass."""

from collections.abc import Iterable, Sequence

import numpy as np

from verify.audit.diagnosis.variants import Result, Variant
from verify.audit.judge import Judgement, Measure, measure
from verify.audit.laboratory import Finding

MOST_FAILING = 6
MOST_PASSING = 4
_LARGEST = 200_000
"""Multiplications per variant and cell; larger cells say no more."""


def measures(judgement: Judgement) -> tuple[Measure | None, Measure | None]:
    return judgement.output, judgement.state


def worst_ratio(judgement: Judgement) -> float:
    return max(m.worst_ratio for m in measures(judgement) if m is not None)


def best_fit(
    variants: Iterable[Variant], wrong: Sequence[Judgement], passing: Sequence[Judgement]
) -> Finding | None:
    """The variant that gives what the kernel gives, on failing and on passing cells alike."""
    failing = small(wrong, MOST_FAILING)
    agreeing = small(passing, MOST_PASSING)
    if not failing:
        return None
    best: tuple[float, Variant] | None = None
    for variant in variants:
        fit = _fit(variant, failing, agreeing)
        if fit is not None and fit <= 1 and (best is None or fit < best[0]):
            best = fit, variant
    if best is None:
        return None
    fit, variant = best
    away = max(map(worst_ratio, failing))
    evidence = (
        f"on {len(failing)} failing cells the result is within {fit:.2g} of the tolerance around this "
        f"variant, evaluated in float64, and up to {away:.3g} tolerances from the definition"
    )
    if agreeing:
        evidence += f"; {len(agreeing)} passing cells agree with it too"
    return Finding(variant.reason, variant.detail, evidence)


def small(judgements: Sequence[Judgement], most: int) -> list[Judgement]:
    """Small cells, of as many classes as possible; float cells before exact ones, whose tolerance is 0."""

    def size(j: Judgement) -> int:
        s = j.case.shape
        return s.B * s.T * s.HV * s.K * s.V

    usable = sorted(
        (j for j in judgements if size(j) <= _LARGEST), key=lambda j: (j.yardstick.kind == "exact", size(j))
    )
    seen: dict[str, int] = {}
    ranked = []
    for j in usable:
        seen[j.case.name] = seen.get(j.case.name, 0) + 1
        ranked.append((seen[j.case.name], j))
    chosen = [j for _, j in sorted(ranked, key=lambda pair: pair[0])]
    floats = [j for j in chosen if j.yardstick.kind != "exact"]
    return (floats or chosen)[:most]


def _fit(variant: Variant, failing: Sequence[Judgement], passing: Sequence[Judgement]) -> float | None:
    """The largest distance from the variant in tolerances; None where the variant cannot be the reason."""
    worst = 0.0
    for j in failing:
        result = variant.run(j.case)
        if result is None:
            return None
        worst = max(worst, distance(j, result))
        if worst > 1:
            return None
    for j in passing:
        result = variant.run(j.case)
        if result is not None and distance(j, result) > 1:
            return None
    return worst


def distance(judgement: Judgement, result: Result) -> float:
    """How far the kernel is from a variant, in tolerances of the case.

    A variant of larger numbers has proportionally larger rounding errors, so the tolerance grows with them.
    """
    y, o = judgement.yardstick, judgement.outcome
    worst = 0.0
    for computed, expected, reference, tolerance in (
        (o.output, result[0], y.output, y.output_tolerance),
        (o.final_state, result[1], y.state, y.state_tolerance),
    ):
        if computed is not None:
            size = float(np.abs(reference).max(initial=0.0))
            growth = max(1.0, float(np.abs(expected).max(initial=0.0)) / size) if size else 1.0
            worst = max(worst, measure(computed, expected, tolerance * growth, tolerance).worst_ratio)
    return worst

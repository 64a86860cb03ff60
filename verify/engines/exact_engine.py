"""Derivations without exp or log at random exact points, in python-flint's rationals."""

import random
from typing import Any

from verify.derive.instances import World, chains, residuals, uses_functions
from verify.engines.degree import degree_bound
from verify.engines.points import SEED, chooser
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

NAME = "exact points"
KINDS = frozenset({"derivation", "induction"})
TOP = 2**61 - 1
"""Numerators are drawn from 1 … TOP: a false identity of degree d survives with probability <= d/TOP."""


def judge(obligation: Obligation) -> Check | None:
    """``refuted`` with the step where a residual is not zero, else ``sampled`` with the probability.

    Says nothing on a derivation with exp or log.
    """
    import flint

    by = f"exact points (python-flint {flint.__version__})"
    degree, points = 1, 0
    for chain in chains(dict(obligation.data)):
        if uses_functions(chain):
            return None
        for place, instance in enumerate(chain["setting"]["instances"]):
            fault = _fault(chain, instance, random.Random(SEED + place), flint.fmpq)
            if fault:
                return Check(by, "engine", Verdict.REFUTED, fault)
            degree = max(degree, degree_bound(chain, instance))
            points += 1
    detail = f"{points} random exact points; a false step passes one with probability <= {degree}/2^61"
    return Check(by, "engine", Verdict.SAMPLED, detail)


def _fault(chain: dict[str, Any], instance: dict[str, int], source: random.Random, fmpq: Any) -> str:
    value = chooser(source, chain, TOP)
    world = World(
        number=lambda text: fmpq(*_ratio(text)),
        exp=None,
        log=None,
        value=lambda name: fmpq(value(name).numerator, value(name).denominator),
        sizes=instance,
    )
    try:
        for found in residuals(chain, world):
            if found.value != 0:
                return (
                    f"{found.label} is off by {_short(found.value)} at a random point with sizes {instance}"
                )
            if any(term < 0 for term in found.terms):
                return f"{found.label} drops a negative term at a random point with sizes {instance}"
    except ZeroDivisionError:
        return f"a step of «{chain['title']}» divides by zero with sizes {instance}"
    return ""


def _ratio(text: str) -> tuple[int, int]:
    top, _, bottom = text.partition("/")
    return int(top), int(bottom or 1)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) < 40 else f"{float(int(value.p) / int(value.q)):.6g}"

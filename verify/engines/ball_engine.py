"""Derivations at random points in ball arithmetic: every residual must contain zero."""

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from verify.derive.instances import World, chains, residuals
from verify.engines.points import SEED, chooser
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

NAME = "balls"
KINDS = frozenset({"derivation", "induction", "minimum"})
PRECISION = 256
"""Bits of the ball arithmetic."""


def judge(obligation: Obligation) -> Check:
    """``refuted`` when a residual certainly differs from zero, else ``sampled``."""
    import flint

    by = f"balls (python-flint {flint.__version__}, {PRECISION} bits)"
    with flint.ctx.workprec(PRECISION):
        if obligation.kind == "minimum":
            return _minimum(by, dict(obligation.data), flint)
        points, widest = 0, flint.arb(0)
        for chain in chains(dict(obligation.data)):
            for place, instance in enumerate(chain["setting"]["instances"]):
                world = _world(chooser(random.Random(SEED + place), chain, 3), instance, flint)
                for found in residuals(chain, world):
                    if not found.value.contains(0):
                        return Check(by, "engine", Verdict.REFUTED, _off(found.label, found.value, instance))
                    if any(term < 0 for term in found.terms):
                        detail = f"{found.label} drops a negative term with sizes {instance}"
                        return Check(by, "engine", Verdict.REFUTED, detail)
                    if not found.value.is_finite():
                        detail = f"{found.label} has no value at a random point with sizes {instance}"
                        return Check(by, "engine", Verdict.UNDECIDED, detail)
                    widest = flint.arb.max(widest, found.value.rad())
                points += 1
    detail = (
        f"{points} random points: every residual contains 0 (radius at most {widest.str(3, radius=False)})"
    )
    return Check(by, "engine", Verdict.SAMPLED, detail)


def _world(value: Callable[[str], Any], sizes: dict[str, int], flint: Any) -> World:
    def number(text: str) -> Any:
        top, _, bottom = text.partition("/")
        return flint.arb(flint.fmpq(int(top), int(bottom or 1)))

    return World(
        number=number,
        exp=lambda x: x.exp(),
        log=lambda x: x.log(),
        value=lambda name: number(str(value(name))),
        sizes=sizes,
    )


def _off(label: str, value: Any, instance: dict[str, int]) -> str:
    return f"{label} is off by {value.str(8)} at a random point with sizes {instance}"


def _constant(point: Fraction) -> Callable[[str], Fraction]:
    return lambda _: point


def _minimum(by: str, data: dict[str, Any], flint: Any) -> Check:
    source = random.Random(SEED)
    for _ in range(16):
        point = Fraction(source.randint(1, 400), 100)
        here = _world(_constant(point), {}, flint)
        gap = here.evaluate(data["function"]).value - here.evaluate(data["value"]).value
        if gap < 0:
            detail = f"the function is below its stated minimum by {(-gap).str(8)} at x = {point}"
            return Check(by, "engine", Verdict.REFUTED, detail)
    return Check(by, "engine", Verdict.SAMPLED, "16 random points, none below the stated minimum")

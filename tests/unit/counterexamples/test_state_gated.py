"""The formulas of the gated collision follow the definitions, and Newton finds its centre."""

from math import exp, isclose, log, sqrt

import pytest
from sympy import N

from counterexamples.collision import gated
from counterexamples.collision._gated import (
    DECAYS,
    FIRST,
    KEYS,
    STRENGTH,
    UNKNOWN,
    VALUE,
    Token,
    newton,
    second,
    state,
)
from derivations.kda import definition as kda
from verify.numbers.float64 import Float64

NUMBERS = Float64()


def dot(weights: object, token: list[float]) -> float:
    return sum(float(w) * x for w, x in zip(weights, token, strict=True))  # type: ignore[call-overload]


def column(items: list[float]) -> object:
    return NUMBERS.matrix([[item] for item in items])


def by_definition(history: list[list[float]], mechanism: str) -> list[float]:
    keys, gates = [], []
    for token in history:
        plain = [dot(row, token) for row in KEYS]
        keys.append(column([p / sqrt(sum(x * x for x in plain)) for p in plain]))
        rows = (DECAYS[0], DECAYS[0]) if mechanism == "gdn" else DECAYS
        gates.append(column([-log(1 + exp(-dot(row, token))) for row in rows]))
    values = [column([dot(VALUE, token)]) for token in history]
    strengths = [1 / (1 + exp(-dot(STRENGTH, token))) for token in history]
    zero = NUMBERS.zeros(2, 1)
    _, final = kda.recurrence(
        NUMBERS, keys, keys, values, kda.decay(NUMBERS, gates), strengths, scale=1.0, state=zero
    )
    return [float(NUMBERS.entry(final, row, 0)) for row in range(2)]


def numeric(history: tuple[Token, ...], mechanism: str) -> list[list[float]]:
    at = dict(zip(UNKNOWN, (float(x) for x in gated.CENTRES[mechanism]), strict=True))
    return [[float(N(x.subs(at))) if hasattr(x, "subs") else float(x) for x in token] for token in history]


@pytest.mark.parametrize("mechanism", ["gdn", "kda"])
def test_the_formulas_are_the_recurrence(mechanism: str) -> None:
    for history in (FIRST, second()):
        tokens = numeric(history, mechanism)
        written = [float(N(x)) for x in state(tokens, mechanism)]
        for one, other in zip(written, by_definition(tokens, mechanism), strict=True):
            assert isclose(one, other, rel_tol=1e-12)


@pytest.mark.parametrize("mechanism", ["gdn", "kda"])
def test_newton_finds_the_stated_centre(mechanism: str) -> None:
    found = newton(mechanism, (-1.0, -1.0))
    for x, centre in zip(found, gated.CENTRES[mechanism], strict=True):
        assert isclose(x, float(centre), rel_tol=1e-9)

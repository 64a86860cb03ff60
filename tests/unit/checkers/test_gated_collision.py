"""The gated collision checker accepts collisions of both mechanisms and refuses every planted falsehood."""

import copy
from fractions import Fraction
from typing import Any

import pytest
from flint import arb, ctx, fmpq

from counterexamples.collision import gated
from counterexamples.collision._gated_box import derivative
from counterexamples.collision._gated_head import Head
from counterexamples.collision._gated_layer import drawn
from verify.checkers import gated_collision
from verify.model.evidence import Obligation
from verify.model.verdict import Verdict
from verify.numbers.ball import Ball
from verify.numbers.dual import Duals

DATA = {name: gated.collision(name).obligation("collision").data for name in ("gdn", "kda")}


def judged(data: Any) -> tuple[Verdict, str]:
    check = gated_collision.judge(Obligation("gated-collision", "test", "B", data))
    return check.verdict, check.detail


@pytest.mark.parametrize("mechanism", ["gdn", "kda"])
def test_a_collision_is_found(mechanism: str) -> None:
    verdict, detail = judged(DATA[mechanism])
    assert verdict is Verdict.PROVED, detail
    assert "exactly one zero in a box of radius 9.31e-10" in detail


def changed(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A deep copy with one place replaced; a function is applied to what was there."""
    copied = copy.deepcopy(data)
    place = copied
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value(place[path[-1]]) if callable(value) else value
    return copied


def more(text: str) -> str:
    return str(Fraction(text) + Fraction(1, 2**20))


@pytest.mark.parametrize("mechanism", ["gdn", "kda"])
@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("second", 1, 2), more, "outside"),
        (("second", 0, 0), more, "outside"),
        (("first", 2, 1), more, "outside"),
        (("layer", "w_v", 0, 2), more, "outside"),
        (("layer", "w_k", 1, 0), more, "outside"),
        (("layer", "w_beta", 0, 1), more, "outside"),
        (("layer", "w_gate", 0, 1), more, "outside"),
        (("layer", "A_log"), more, "outside"),
        (("layer", "dt_bias", 0), more, "outside"),
        (("layer", "eps"), more, "outside"),
        (("second",), lambda rows: rows[::-1], "outside"),
        (("inverse",), lambda rows: rows[::-1], "outside"),
        (("inverse",), [["0", "0"], ["0", "0"]], "outside"),
        (("unknown",), lambda places: places[::-1], "outside"),
        (("radius",), "1/1000000000000000", "outside"),
        (("radius",), "1/8", "outside"),
        (("radius",), "0", "positive"),
        (("gap",), "37/100", "not certainly more"),
        (("gap",), "0", "positive"),
        (("gap",), "-1", "positive"),
        (("next_token",), ["-9", "0", "0"], "not certainly more"),
        (("layer", "mechanism"), "delta", "neither gdn nor kda"),
        (("layer", "w_gate"), [["0", "0", "0"]] * 3, "do not fit"),
        (("layer", "w_v"), [["0", "0"]], "differ in width"),
        (("layer", "eps"), "-1", "negative"),
        (("layer", "A_log"), "100", "malformed"),
        (("first",), lambda rows: rows[:2], "do not fit"),
        (("next_token",), ["1"], "do not fit"),
        (("unknown",), [[1, 2]], "as many different unknowns"),
        (("unknown",), [[1, 2], [1, 2]], "as many different unknowns"),
        (("unknown",), [[1, 2], [3, 0]], "malformed"),
        (("unknown",), [[1, 2], [-1, 2]], "malformed"),
        (("inverse",), [["1"]], "square inverse"),
        (("first", 0, 0), "nan", "malformed"),
        (("second",), None, "malformed"),
    ],
)
def test_falsehoods_are_refuted(mechanism: str, path: tuple[Any, ...], value: Any, reason: str) -> None:
    verdict, detail = judged(changed(DATA[mechanism], path, value))
    assert verdict is Verdict.REFUTED
    assert reason in detail, detail


def test_the_second_history_must_differ() -> None:
    """The history itself has its own state, but softmax cannot tell it from itself."""
    data = changed(DATA["kda"], ("second",), DATA["kda"]["first"])
    verdict, detail = judged(data)
    assert verdict is Verdict.REFUTED
    assert "outside" in detail or "not certainly more" in detail


def test_the_other_mechanism_is_another_map() -> None:
    layer = {**DATA["gdn"]["layer"], "w_gate": DATA["kda"]["layer"]["w_gate"], "dt_bias": ["0", "0"]}
    assert judged({**DATA["gdn"], "layer": {**layer, "mechanism": "kda"}})[0] is Verdict.REFUTED


@pytest.mark.parametrize(("mechanism", "keys", "values"), [("gdn", 3, 2), ("kda", 2, 3), ("kda", 1, 1)])
def test_state_and_derivative_agree_with_the_definition_over_balls(
    mechanism: str, keys: int, values: int
) -> None:
    """Both programs enclose the same numbers, so their enclosures must overlap; both are narrow."""
    layer = drawn(mechanism, keys, values, 4, seed=3)
    history = [[Fraction(3 * t - 2 * i, 4) for i in range(4)] for t in range(3)]
    places = [(t, i) for t in range(3) for i in range(4)]
    numbers = Ball(160)
    balls = [[numbers.number(x) for x in row] for row in history]
    state, slopes = derivative(numbers, Head(Duals(numbers), layer), balls, places)
    box = gated_collision._box(history, places, Fraction(1, 2**150))
    found = gated_collision._Head(layer.data()).state(box)
    for n, (wanted, jet) in enumerate(zip(state.entries(), found, strict=True)):
        assert near(wanted, jet.value)
        for place, slope in enumerate(slopes):
            assert near(slope.entries()[n], jet.slopes.get(place, gated_collision.Dyadic(0, 0)))


def near(wanted: Any, found: gated_collision.Dyadic) -> bool:
    """Whether the ball and the interval come within 2⁻¹²⁰ of each other, both narrower than that."""
    with ctx.workprec(300):
        low, high = (arb(fmpq(end, gated_collision.ONE)) for end in found)
        slack = arb(2) ** -120
        middle = wanted.mid()
        return bool(wanted.rad() < slack) and bool(low - slack < middle) and bool(middle < high + slack)

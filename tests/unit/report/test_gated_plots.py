"""Figures of merged histories compute what the certificate's own formulas give."""

import math
from typing import Any

import numpy as np
import pytest

from counterexamples.collision import gated
from counterexamples.collision._gated_head import Head
from counterexamples.collision._gated_layer import drawn
from counterexamples.collision._gated_newton import search
from verify.numbers.float64 import Float64
from verify.report import gated_plots

NUMBERS = Float64()


def collisions() -> list[Any]:
    found = search(drawn("kda", 2, 3, 5, 1), 4, seed=0, starts=20)
    return [gated.collision("gdn"), gated.collision("kda"), found]


@pytest.mark.parametrize("place", range(3))
def test_figures_show_the_collision(place: int) -> None:
    collision = collisions()[place]
    entries, states, outputs = gated_plots.merged(collision.obligation("x").data, "gated-collision-7")
    assert [plot.name for plot in (entries, states, outputs)] == [
        "gated-collision-7-entries",
        "gated-collision-7-states",
        "gated-collision-7-outputs",
    ]
    assert f"{len(collision.unknown)} of them unknowns" in entries.alt
    assert float(states.alt.split(" by ")[-1].split(" at ")[0]) < 1e-10
    apart = float(outputs.alt.split(" are ")[1].split(" apart")[0])
    assert float(collision.gap) <= apart <= 1.3 * float(collision.gap)


@pytest.mark.parametrize("place", range(3))
def test_state_and_softmax_are_those_of_the_head(place: int) -> None:
    collision = collisions()[place]
    data = collision.obligation("x").data
    drawn_head, head = gated_plots._Head(data["layer"]), Head(NUMBERS, collision.layer)
    history = [[float(x) for x in row] for row in collision.second]
    columns = [NUMBERS.matrix([[x] for x in row]) for row in history]
    *_, state = drawn_head.states(history)
    np.testing.assert_allclose(state, head.state(columns), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(
        drawn_head.softmax(history), head.softmax(columns)[:, 0], rtol=1e-12, atol=1e-14
    )
    q = head.normed("w_q", columns[-1])[:, 0] / math.sqrt(len(state))
    np.testing.assert_allclose(drawn_head.read(history), np.array(state).T @ q, rtol=1e-12, atol=1e-14)


def test_long_histories_have_no_figure_of_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gated_plots, "MOST_ENTRIES", 8)
    assert len(gated_plots.merged(gated.collision("gdn").obligation("x").data, "name")) == 2

"""The head follows its formulas; the search finds collisions that the checker accepts, or says why not."""

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from counterexamples.collision import _gated_box, _gated_newton, gated
from counterexamples.collision._gated_box import Box, Stopped, derivative
from counterexamples.collision._gated_head import Head
from counterexamples.collision._gated_layer import PRIME, Layer, drawn, rank, read
from counterexamples.collision._gated_newton import plenty, search
from counterexamples.collision._gated_pair import claim
from verify.model.errors import RequestError, SearchEnded
from verify.model.search import again
from verify.numbers.dual import Duals
from verify.numbers.float64 import Float64
from verify.prove import settle

NUMBERS = Float64()


def by_formulas(layer: Layer, history: list[list[float]]) -> tuple[np.ndarray, np.ndarray]:
    """State after the history, and softmax output of its last token, straight from the formulas."""
    w = {name: np.array(getattr(layer, name), float) for name in ("w_q", "w_k", "w_v", "w_beta", "w_gate")}
    bias, state = np.array(layer.dt_bias, float), np.zeros((len(w["w_k"]), len(w["w_v"])))
    keys, values = [], []
    for x in np.array(history, float):
        k = w["w_k"] @ x / math.sqrt(sum((w["w_k"] @ x) ** 2) + 1e-6)
        v = w["w_v"] @ x
        beta = 1 / (1 + math.exp(-(w["w_beta"][0] @ x)))
        alpha = np.exp(-math.exp(layer.a_log) * np.log1p(np.exp(w["w_gate"] @ x + bias)))
        erase = np.eye(len(k)) - beta * np.outer(k, k)
        state = erase @ np.diag(alpha * np.ones(len(k))) @ state + beta * np.outer(k, v)
        keys.append(k)
        values.append(v)
    last = np.array(history[-1], float)
    q = w["w_q"] @ last / math.sqrt(sum((w["w_q"] @ last) ** 2) + 1e-6)
    weights = np.exp(np.array(keys) @ q / math.sqrt(len(q)))
    return state, weights @ np.array(values) / weights.sum()


@pytest.mark.parametrize("mechanism", ["gdn", "kda"])
@pytest.mark.parametrize("seed", range(3))
def test_the_head_is_its_formulas(mechanism: str, seed: int) -> None:
    plain = drawn(mechanism, 3, 2, 5, seed)
    names = ("w_q", "w_k", "w_v", "w_beta", "dt_bias")
    gates = plain.w_gate[0] if mechanism == "gdn" else plain.w_gate
    layer = read({**{n: getattr(plain, n) for n in names}, "w_gate": gates, "A_log": "3/4"}, mechanism)
    rng = random.Random(seed)
    history = [[rng.gauss(0, 1) for _ in range(5)] for _ in range(4)]
    state, output = by_formulas(layer, history)
    tokens = [NUMBERS.matrix([[x] for x in row]) for row in history]
    head = Head(NUMBERS, layer)
    np.testing.assert_allclose(head.state(tokens), state, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(head.softmax(tokens)[:, 0], output, rtol=1e-11, atol=1e-13)


def test_unknowns_beyond_those_asked_for_have_no_derivative() -> None:
    head = Head(Duals(NUMBERS), drawn("kda", 2, 2, 4, 0))
    history = [[np.asarray(float(i - t)) for i in range(4)] for t in range(3)]
    _, all_slopes = derivative(NUMBERS, head, history, [(0, 0), (1, 2)])
    _, (one,) = derivative(NUMBERS, head, history, [(1, 2)])
    np.testing.assert_array_equal(one, all_slopes[1])
    assert np.abs(one).max() > 0


@pytest.mark.parametrize(
    ("mechanism", "keys", "values", "width", "tokens"),
    [("gdn", 2, 2, 4, 4), ("kda", 2, 3, 5, 4), ("kda", 4, 4, 8, 8), ("gdn", 1, 1, 2, 1)],
)
def test_a_found_collision_stands(mechanism: str, keys: int, values: int, width: int, tokens: int) -> None:
    found = search(drawn(mechanism, keys, values, width, 1), tokens, seed=0, starts=20)
    assert found.first != found.second
    assert len(found.unknown) == keys * values
    settled = settle(claim("test", found))
    assert settled.verdict == "cited"
    assert all(mutant.rejected for mutant in settled.mutants)
    assert len(settled.mutants) == (2 if tokens == 1 else 3)


def test_a_seed_gives_one_collision_and_another_another() -> None:
    layer = drawn("gdn", 2, 1, 3, 0)
    one, same, other = (search(layer, 3, seed, 20) for seed in (5, 5, 6))
    assert one == same
    assert one.first != other.first


def test_the_search_of_the_registry_finds_its_witnesses() -> None:
    found = again(gated.CLAIM)
    assert [item.labels for item in found] == [(label,) for label in gated.CLAIM.counterexample.witness]


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (3, "3 tokens of 5 numbers each are 15, not more than the 16 of the state: no collision is forced"),
        (0, "no collision is forced; give at least 4 tokens"),
        (-1, "no collision is forced"),
    ],
)
def test_too_few_tokens_force_nothing(tokens: int, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        search(drawn("gdn", 4, 4, 5, 0), tokens, 0, 1)


def test_numbers_that_the_head_cannot_tell_apart_do_not_count() -> None:
    """K = V = 1: a GDN token counts by k, v, β and α alone, however wide it is."""
    layer = drawn("gdn", 1, 1, 9, 0)
    assert plenty(layer) == 2
    wide = drawn("gdn", 6, 6, 40, 0)
    with pytest.raises(RequestError, match="2 tokens of 14 numbers each are 28"):
        search(wide, 2, 0, 1)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([[1, 2], [3, 5]], 2),
        ([[1, 2], [2, 4]], 1),
        ([[0, 0]], 0),
        ([[1, 2, 3], [4, 5, 6], [7, 8, 9]], 2),
        ([[PRIME, 0], [0, 1]], 2),
        ([[Fraction(1, PRIME), 0], [0, Fraction(1, 3)]], 2),
    ],
)
def test_ranks_are_exact(rows: list[list[Any]], expected: int) -> None:
    """Also where the prime divides an entry."""
    assert rank([[Fraction(x) for x in row] for row in rows]) == expected


def test_tokens_below_full_rank_are_refused() -> None:
    with pytest.raises(RequestError, match="3 tokens give 4×4 states of rank at most 3"):
        search(drawn("kda", 4, 4, 9, 0), 3, 0, 1)


def test_a_state_too_large_for_the_test_is_refused() -> None:
    with pytest.raises(RequestError, match="17×16 gives 272 unknowns"):
        drawn("kda", 17, 16, 40, 0)


def test_a_search_that_ends_says_what_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_gated_newton, "STEPS", 1)
    with pytest.raises(
        SearchEnded, match=r"3 random starts \(seed 0\).* stalled at a relative distance over"
    ):
        search(drawn("gdn", 4, 4, 5, 0), 4, 0, 3)


def test_saturated_gates_end_the_search() -> None:
    """Weights a hundred times too large: strengths and decays are 0 or 1, and Newton's steps go anywhere."""
    plain = drawn("kda", 2, 2, 4, 0)
    names = ("w_q", "w_k", "w_v", "w_gate")
    large = {name: [[100 * x for x in row] for row in getattr(plain, name)] for name in names}
    layer = read({**large, "w_beta": [100 * x for x in plain.w_beta[0]]})
    with pytest.raises(SearchEnded, match=r"they .* \(\d+\); try more --starts"):
        search(layer, 3, 1, 5)


def test_values_that_cannot_be_told_apart_end_the_search() -> None:
    """The same history twice: the state agrees, and so does softmax."""
    with pytest.raises(Stopped, match="too close to tell apart"):
        Box(gated.layer("gdn"), gated.FIRST, gated.FIRST, gated.UNKNOWN).collision([gated.NEXT_TOKEN])


def test_boxes_shrink_until_the_test_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the first box a norm may vanish, over the second the derivative changes too much."""
    second = [gated.CHANGED, *gated.FIRST[1:]]
    box = Box(gated.layer("kda"), gated.FIRST, second, gated.UNKNOWN)
    wide, narrow = (Fraction(9), Fraction(1, 8)), Fraction(1, 2**20)
    monkeypatch.setattr(_gated_box, "RADII", (*wide, narrow))
    assert box.collision([gated.NEXT_TOKEN]).radius == narrow
    monkeypatch.setattr(_gated_box, "RADII", wide)
    with pytest.raises(Stopped, match="no box down to radius 1e-01 passed the test"):
        box.collision([gated.NEXT_TOKEN])


def test_unknowns_that_do_not_move_the_state_end_the_search() -> None:
    layer = read({"w_q": [[1, 0]], "w_k": [[1, 0]], "w_v": [[1, 0]], "w_beta": [1, 0], "w_gate": [1, 0]})
    rows = [[Fraction(1), Fraction(2)], [Fraction(3), Fraction(1)]]
    with pytest.raises(Stopped, match="singular derivative"):
        Box(layer, rows, rows, [(1, 1)]).collision([rows[0]])


GOOD: dict[str, Any] = {
    "w_q": [[1, 0, 0], [0, 1, 0]],
    "w_k": [[1, "1/2", 0], [0, 1, 1]],
    "w_v": [[1, 2, 3]],
    "w_beta": [1, 0, 1],
    "w_gate": [1, 1, 1],
}


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in GOOD.items() if key != name}


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({}, "lack w_q, w_k, w_v, w_beta, w_gate; .* given: nothing"),
        (without("w_beta"), "lack w_beta"),
        ({**GOOD, "q_conv1d": [1]}, "have q_conv1d, which this head does not use"),
        ({**GOOD, "w_q": [[1, 0, 0]]}, "w_q is 1×3, but w_k of 2×3 asks for 2×3"),
        ({**GOOD, "w_v": [[1, 0]]}, "w_v is 1×2, but w_k of 2×3 asks for 1×3"),
        ({**GOOD, "w_beta": [1, 2]}, "w_beta is 1×2"),
        ({**GOOD, "w_gate": [[1, 2, 3]] * 3}, "w_gate is 3×3, but w_k of 2×3 asks for 2×3"),
        ({**GOOD, "w_v": [[1, 2, 3], [1, 2]]}, r"w_v is not a matrix: its rows have \[2, 3\] entries"),
        ({**GOOD, "w_v": [1, 2, 3]}, "w_v is not a matrix"),
        ({**GOOD, "w_v": []}, "w_v is not a matrix"),
        ({**GOOD, "w_v": [[]]}, "w_v is not a matrix"),
        ({**GOOD, "w_v": [[1, math.nan, 3]]}, r"w_v\[0, 1\]: nan is not a finite number"),
        ({**GOOD, "w_beta": [1, 2, math.inf]}, r"w_beta\[2\]: inf is not a finite number"),
        ({**GOOD, "w_k": [[1, "x", 3], [0, 1, 1]]}, r"w_k\[0, 1\]: 'x' is not a rational number"),
        ({**GOOD, "w_k": [[1, 2, 3], [2, 4, 6]]}, "w_k is singular: rank 1 with 2 rows"),
        ({**GOOD, "w_v": [[0, 0, 0]]}, "w_v is singular: rank 0 with 1 rows"),
        ({**GOOD, "dt_bias": [1, 2]}, "dt_bias has 2 numbers, but this GDN head needs 1"),
        ({**GOOD, "A_log": [1, 2]}, "A_log has 2 numbers, but this GDN head needs 1"),
        ({**GOOD, "A_log": 33}, "A_log = 33 is beyond ±32"),
    ],
)
def test_a_bad_layer_is_one_sentence(arrays: dict[str, Any], said: str) -> None:
    with pytest.raises(RequestError, match=said):
        read(arrays)


def test_the_mechanism_is_read_off_the_gate() -> None:
    assert read(GOOD).mechanism == "gdn"
    assert read({**GOOD, "w_gate": [[1, 1, 1], [0, 0, 1]]}).mechanism == "kda"
    with pytest.raises(RequestError, match="makes this a GDN head, not kda"):
        read(GOOD, "kda")


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [x], np.array])
def test_vectors_may_be_rows_and_single_numbers_scalars(wrap: Callable[[Any], Any]) -> None:
    layer = read({**GOOD, "w_beta": wrap([1, 0, 1]), "A_log": np.array(0.5), "dt_bias": wrap([-2])})
    assert layer.w_beta == [[1, 0, 1]]
    assert (layer.a_log, layer.dt_bias) == (Fraction(1, 2), [Fraction(-2)])

"""The checker of collisions under enclosed features: a true one, planted falsehoods, malformed data."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from verify.checkers import enclosed_collision
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

Data = dict[str, Any]

# Features 3/2 and 1/2, each up to 1/256; with 1 on the first token z is −3 on the second, up to 9/256.
TRUE: Data = {
    "features": [["384"], ["128"]],
    "feature_radius": "1",
    "bits": 8,
    "pivots": [1],
    "inverse": [["32"]],
    "inverse_bits": 4,
    "z": ["256", "-768"],
    "z_radius": "9",
    "keys": [["0"], ["1"]],
    "first": [["1", "5"], ["2", "-1/3"]],
    "w": ["1", "-1/2"],
    "query": ["1"],
    "gap": "9/5",
}


def judged(data: Any) -> Check:
    return enclosed_collision.judge(Obligation("enclosed-collision", "a witness", "B", data))


def changed(*path: str | int, to: object) -> Data:
    data = copy.deepcopy(TRUE)
    place: Any = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return data


def test_a_true_witness_is_accepted() -> None:
    check = judged(TRUE)
    assert check.verdict is Verdict.PROVED, check.detail
    assert "within 0.0351562 of a null vector" in check.detail


def test_the_bound_is_the_exact_one() -> None:
    """Needed are 8/(1 − 1/128) = 8.06… units."""
    assert judged(changed("z_radius", to="8")).verdict is Verdict.REFUTED


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (changed("z", 1, to="-769"), "from z"),
        (changed("features", 0, 0, to="400"), "from z"),
        (changed("feature_radius", to="2"), "from z"),
        (changed("feature_radius", to="128"), "from z"),
        (changed("inverse", 0, 0, to="-32"), "not certainly invertible"),
        (changed("z", to=["0", "0"]), "zero off the pivots"),
        (changed("pivots", to=[0]), "not certainly invertible"),
        (changed("pivots", to=[]), "square block"),
        (changed("keys", 1, to=["0"]), "one key"),
        (changed("keys", to=[["0"], ["1"], ["2"]]), "different numbers"),
        (changed("w", to=["1"]), "different numbers"),
        (changed("gap", to="2"), "only certainly"),
        (changed("gap", to="191/100"), "only certainly"),  # holds in the middle of the enclosure only
        (changed("gap", to="0"), "only certainly"),
        (changed("w", to=["1/2", "-1/2"]), "only certainly"),
        (changed("query", to=["3/10"]), "only certainly"),
        (changed("inverse", to=[["32", "1"]]), "square"),
        (changed("z_radius", to="17/2"), "malformed"),
        (changed("feature_radius", to="1/2"), "malformed"),
        (changed("feature_radius", to="-1"), "negative"),
        (changed("bits", to=10**6), "malformed"),
        (changed("bits", to=-8), "malformed"),
        (changed("features", 0, 0, to="1/2"), "malformed"),
    ],
)
def test_a_planted_falsehood_is_refuted(data: Data, reason: str) -> None:
    check = judged(data)
    assert check.verdict is Verdict.REFUTED
    assert reason in check.detail


@pytest.mark.parametrize("junk", [None, 0.5, "1/0", "x", [], [[]], {}, True, "1e9"], ids=repr)
def test_malformed_data_is_refuted_and_never_raises(junk: object) -> None:
    assert judged({}).verdict is Verdict.REFUTED
    for name in TRUE:
        assert judged(json.loads(json.dumps({**TRUE, name: junk}))).verdict is Verdict.REFUTED, name


def test_more_equations_than_one() -> None:
    """φ(k) = (1, k) on the keys 0, 1, 2 with z = (1, −2, 1), pivots the last two: A = (1 1; 1 2)."""
    two: Callable[[list[int]], list[str]] = lambda row: [str(256 * x) for x in row]  # noqa: E731
    data = {
        "features": [two([1, 0]), two([1, 1]), two([1, 2])],
        "feature_radius": "0",
        "bits": 8,
        "pivots": [1, 2],
        "inverse": [["32", "-16"], ["-16", "16"]],
        "inverse_bits": 4,
        "z": two([1, -2, 1]),
        "z_radius": "0",
        "keys": [["0"], ["1"], ["2"]],
        "first": [["0"], ["0"], ["0"]],
        "w": ["1"],
        "query": ["1"],
        "gap": "1/4",
    }
    assert judged(data).verdict is Verdict.PROVED
    swapped = {**data, "inverse": [["-16", "32"], ["16", "-16"]]}
    assert judged(swapped).verdict is Verdict.REFUTED

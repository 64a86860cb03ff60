"""The checker of rounded runs: its arithmetic against NumPy's float32, its roundings, and what it refuses."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from derivations.kernel import _runs as runs
from verify.checkers import rounded_recurrence as checker
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict
from verify.numbers.formats import BFLOAT16, FLOAT16, FLOAT32, Format, round_to


def judged(data: dict[str, Any], **contract: Any) -> Check:
    return checker.judge(runs.within(data, "a run", **contract))


def small_run(**options: Any) -> dict[str, Any]:
    inputs = runs.drawn(4, 2, 6, 2, 11, Fraction(1))
    return runs.run(inputs["state"], inputs["steps"], runs.in_turn(4), **options)


@pytest.mark.parametrize("target", [FLOAT32, BFLOAT16, FLOAT16, runs.NARROW], ids=lambda target: target.name)
def test_it_rounds_as_the_formats_do(target: Format) -> None:
    rounded = checker._rounding({"precision": target.precision, "min_exponent": target.min_exponent})
    rng = np.random.default_rng(3)
    for _ in range(300):
        x = Fraction(int(rng.integers(-(2**40), 2**40)), 2**20) * Fraction(2) ** int(rng.integers(-40, 3))
        expected = round_to(target, x)
        assert expected is None or rounded(x) == expected
    assert rounded(Fraction(0)) == 0


def test_a_run_in_float32_is_numpys_bit_for_bit() -> None:
    data = small_run()
    rounded = checker._rounding({"precision": 24, "min_exponent": -126})
    state = [[Fraction(x) for x in column] for column in data["state"]]
    computed = np.array([[float(x) for x in column] for column in state], dtype=np.float32)
    for step in data["steps"]:
        a, k = ([Fraction(x) for x in step[name]] for name in ("a", "k"))
        beta, v = Fraction(step["beta"]), [Fraction(x) for x in step["v"]]
        pairs = zip(state, v, strict=True)
        state = [checker._step(s, a, k, beta, x, data["order"], False, rounded) for s, x in pairs]
        wide, key = (np.array([float(x) for x in values], dtype=np.float32) for values in (a, k))
        decayed = computed * wide
        read = key[0] * decayed[:, 0]
        for i in range(1, 4):
            read = read + key[i] * decayed[:, i]
        values = np.array([float(x) for x in v], dtype=np.float32)
        computed = decayed + (np.float32(beta) * (values - read))[:, None] * key
        assert [[Fraction(float(x)) for x in column] for column in computed] == state


def test_orders_have_their_depth_and_may_change_the_result() -> None:
    assert small_run()["contract"]["depth"] == 4
    inputs = runs.drawn(8, 1, 1, 1, 5, Fraction(1))
    pairs = runs.run(inputs["state"], inputs["steps"], runs.in_pairs(0, 8), BFLOAT16)
    turns = runs.run(inputs["state"], inputs["steps"], runs.in_turn(8), BFLOAT16)
    assert (pairs["contract"]["depth"], turns["contract"]["depth"]) == (4, 8)
    assert judged(pairs).verdict is judged(turns).verdict is Verdict.PROVED
    assert judged(pairs).detail != judged(turns).detail


@pytest.mark.parametrize("fused", [False, True])
def test_arithmetic_coarser_than_the_contract_says_is_refuted(fused: bool) -> None:
    data = small_run(compute=BFLOAT16, fused=fused)
    assert judged(data).verdict is Verdict.PROVED
    found = judged(data, u="1/16777216", decay="1/16777216")
    assert found.verdict is Verdict.REFUTED
    assert "state after step 1" in found.detail


def test_an_output_outside_the_contract_is_refuted() -> None:
    data = small_run(stored=BFLOAT16)
    data |= {"formats": data["formats"] | {"state": None}}
    assert judged(data, state="0").verdict is Verdict.PROVED
    assert "output of step 1" in judged(data, state="0", output="0").detail


def test_a_share_that_is_not_attained_is_refuted() -> None:
    assert judged(runs.stagnating_state(4) | {"attains": "1/5"}).verdict is Verdict.PROVED
    assert judged(runs.stagnating_state(4) | {"attains": "1/3"}).verdict is Verdict.REFUTED


@pytest.mark.parametrize(
    "change",
    [
        {"order": [0, [1, 2]]},
        {"order": [[0, 1], [2, 2]]},
        {"order": [[0, 1], [2, 3, 3]]},
        {"state": [["1", "0", "0"]]},
        {"fused": 1},
        {"formats": {}},
        {"steps": [{"a": ["-1"] * 4, "k": ["0"] * 4, "beta": "0", "v": ["0"] * 2, "q": ["0"] * 4}]},
        {"contract": {"u": "x"}},
        {"state": None},
    ],
    ids=["short", "twice", "three", "width", "flag", "formats", "decay", "contract", "state"],
)
def test_malformed_data_is_refuted(change: dict[str, Any]) -> None:
    found = checker.judge(Obligation("rounded-recurrence", "a run", "B", small_run() | change))
    assert found.verdict is Verdict.REFUTED
    assert "malformed" in found.detail

"""The measured comparison: its arithmetic against the definitions, its intervals, and what it refuses."""

import math
from typing import Any

import numpy as np
import pytest

from derivations.softmax.definition import causal
from verify.checkers import paired_errors
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict
from verify.numbers.float64 import Float64

SMALL: dict[str, Any] = {
    "history": "gaussian",
    "deviation": "1",
    "width": 4,
    "values": 2,
    "tokens": 8,
    "draws": 200,
    "seed": 7,
    "comparisons": [{"first": "full", "second": "mean", "mean": "smaller"}],
}


def judged(**changes: Any) -> Check:
    return paired_errors.judge(Obligation("paired-errors", "a measurement", "B", {**SMALL, **changes}))


def compare(first: str, second: str, **side: str) -> list[dict[str, str]]:
    return [{"first": first, "second": second, **side}]


def test_a_true_comparison_is_sampled_and_its_reverse_refuted() -> None:
    assert judged().verdict is Verdict.SAMPLED
    assert judged(comparisons=compare("mean", "full", mean="smaller")).verdict is Verdict.REFUTED
    assert judged(comparisons=compare("mean", "full", mean="larger")).verdict is Verdict.SAMPLED
    assert judged(comparisons=compare("full", "mean", share_above="1/2")).verdict is Verdict.SAMPLED
    assert judged(comparisons=compare("full", "mean", share_below="1/2")).verdict is Verdict.REFUTED
    assert judged(comparisons=compare("full", "mean", share_above="99/100")).verdict is Verdict.UNDECIDED


def test_too_few_draws_decide_nothing() -> None:
    few = judged(draws=3, comparisons=compare("full", "mean", share_above="1/2"))
    assert few.verdict is Verdict.UNDECIDED


def test_a_method_is_not_better_than_itself() -> None:
    itself = compare("full", "full", mean="smaller")
    assert judged(comparisons=itself).verdict is not Verdict.SAMPLED


def test_numbers_that_overflow_decide_nothing() -> None:
    huge = judged(deviation="1" + "0" * 300, comparisons=compare("key", "mean", mean="larger"))
    assert huge.verdict is not Verdict.SAMPLED


@pytest.mark.parametrize("junk", [None, 0.5, "1/0", "x", [], [[]], {}, -1, [{}], [3]], ids=repr)
def test_malformed_data_is_refuted_and_never_raises(junk: object) -> None:
    empty = paired_errors.judge(Obligation("paired-errors", "nothing", "B", {}))
    assert empty.verdict is Verdict.REFUTED
    for name in SMALL:
        assert judged(**{name: junk}).verdict is Verdict.REFUTED, name


def test_sizes_beyond_memory_are_refused() -> None:
    assert judged(draws=10**9).verdict is Verdict.REFUTED
    assert judged(width=2**14, values=2**14, draws=2).verdict is Verdict.REFUTED


def _logits(history: str) -> np.ndarray:
    spread = math.sqrt(2 / math.sqrt(16))
    q, k, _ = paired_errors.draw(np.random.default_rng(3), history, spread, (400, 16, 16, 1), np)
    return np.einsum("ntd,nd->nt", k, q)


@pytest.mark.parametrize("history", ["gaussian", "sphere"])
def test_the_logits_of_random_histories_have_the_stated_deviation(history: str) -> None:
    """Each draw estimates the variance 4 with relative deviation at most 1/2 (query length and 16 logits,
    √(2/16) each); the mean of 400 draws is within five of its own deviations.
    """
    variance = float((_logits(history) ** 2).mean())
    assert abs(variance / 4 - 1) < 5 * 0.5 / math.sqrt(400)


def test_a_query_near_a_key_scores_it_high() -> None:
    assert _logits("near").max(axis=1).mean() > _logits("gaussian").max(axis=1).mean() + 1


def test_errors_are_distances_from_softmax_and_its_expansions() -> None:
    """One history against the definition of softmax and the expansions written out in plain loops."""
    q, k, v = paired_errors.draw(np.random.default_rng(5), "gaussian", 0.6, (1, 5, 3, 2), np)
    found = paired_errors.errors(q, k, v, 0.36, np)
    numbers = Float64()
    columns = [k[0, t][:, None] for t in range(5)]
    contents = [v[0, t][:, None] for t in range(5)]
    exact = causal(numbers, [q[0][:, None]] * 5, columns, contents, scale=numbers.number(1))[-1][:, 0]
    mean_k, mean_v = k[0].mean(axis=0), v[0].mean(axis=0)
    covariance = (k[0] - mean_k).T @ (v[0] - mean_v) / 5
    stepwise, key_state, shrunk = v[0, 0] * 0, np.zeros((3, 2)), np.zeros((3, 2))
    for t in range(1, 6):
        centred = k[0, t - 1] - k[0, :t].mean(axis=0)
        old = v[0, : t - 1].mean(axis=0) if t > 1 else np.zeros(2)
        stepwise = stepwise + (1 + centred @ q[0]) / t * (v[0, t - 1] - stepwise)
        least = 2 * 0.36 * centred / (1 + 0.36 * centred @ centred)
        for state, guess in ((key_state, centred), (shrunk, least)):
            transition = (1 - 1 / t) * np.eye(3) - np.outer(centred, guess) / t
            state[:] = transition @ state + np.outer(centred, v[0, t - 1] - old) / t
    outputs = {
        "mean": mean_v,
        "full": mean_v + covariance.T @ q[0],
        "self": stepwise,
        "key": mean_v + key_state.T @ q[0],
        "least-squares": mean_v + shrunk.T @ q[0],
    }
    assert set(found) == set(outputs)
    for name, output in outputs.items():
        # Sums of at most 5·3·2 products of numbers below 10: far below 1e4 roundings of 1e-16 each.
        assert abs(float(found[name][0]) - float(np.linalg.norm(output - exact))) < 1e-11, name

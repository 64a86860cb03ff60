"""Keys kept by rounded scores: what certified_topk returns on drawn inputs, planted falsehoods, bad data."""

from fractions import Fraction
from typing import Any

import pytest
import torch

from kernels.topk.certified import certified_topk
from kernels.topk.score_bounds import score_errors
from verify.checkers.scored_selection import judge
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

TWO: dict[str, Any] = {
    "query": ["1", "1"],
    "keys": [["1", "1/2"], ["-1", "0"]],
    "scale": "1",
    "scores": ["3/2", "-1"],
    "errors": ["0", "0"],
    "kept": [0],
    "bound": "76/1000",
}
"""A dropped mass of 1/(1 + e^2.5) = 0.0758…"""


def judged(value: Any) -> Check:
    return judge(Obligation("scored-selection", "kept keys", "B", value))


def exact(x: torch.Tensor) -> list[str]:
    return [str(Fraction(item)) for item in x.double().tolist()]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("large", [1.0, 2.0**40])
def test_the_kernel_returns_bounds_that_hold(seed: int, large: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    q = torch.randn(1, 1, 1, 4, generator=generator, dtype=torch.float64)
    k = torch.randn(1, 9, 1, 4, generator=generator, dtype=torch.float64)
    q[..., :2] = 1
    k[..., 0], k[..., 1] = large, -large
    found = certified_topk(q, k, k, epsilon=0.2, scale=1.0, causal=False)
    query, keys = q[0, 0, 0], k[0, :, 0]
    data = {
        "query": exact(query),
        "keys": [exact(key) for key in keys],
        "scale": "1",
        "scores": exact(query @ keys.T),
        "errors": exact(score_errors(query[None], keys)[0]),
        "kept": [place for place in found.kept[0, 0, 0].tolist() if place >= 0],
        "bound": str(Fraction(found.dropped_mass.item())),
    }
    checked = judged(data)
    assert checked.verdict is Verdict.PROVED, checked.detail
    if large > 1:
        assert judged(data | {"errors": ["0"] * 9}).verdict is Verdict.REFUTED


def test_a_bound_is_refuted_when_the_mass_exceeds_it() -> None:
    assert judged(TWO).verdict is Verdict.PROVED
    assert "beyond" in judged(TWO | {"bound": "75/1000"}).detail
    assert judged(TWO | {"kept": [1]}).verdict is Verdict.REFUTED
    assert judged(TWO | {"kept": [0, 1], "bound": "0"}).verdict is Verdict.PROVED


def test_scores_must_be_within_their_errors() -> None:
    assert "not within" in judged(TWO | {"scores": ["3/2", "0"]}).detail
    assert judged(TWO | {"scores": ["3/2", "0"], "errors": ["0", "1"]}).verdict is Verdict.PROVED


@pytest.mark.parametrize(
    "changed",
    [
        {"kept": [2]},
        {"kept": [-1]},
        {"keys": []},
        {"keys": [["1"], ["2"]]},
        {"scores": ["3/2"]},
        {"bound": 0.5},
        {"query": None},
    ],
)
def test_bad_data_is_refuted_with_a_reason(changed: dict[str, Any]) -> None:
    found = judged(TWO | changed)
    assert found.verdict is Verdict.REFUTED
    assert found.detail

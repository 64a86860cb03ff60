"""Settling many claims: a broken file loses nothing of the others, and cached results are taken."""

from pathlib import Path
from typing import Any

import pytest

from verify import prove
from verify.model import registry
from verify.model.errors import ClaimFileError

GOOD, BAD = "gdn.exact-delta", "gdn.survival-product"


def test_one_broken_claim_loses_nothing_of_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    honest = registry.load

    def load(claim_id: str) -> Any:
        if claim_id == BAD:
            raise ZeroDivisionError("planted")
        return honest(claim_id)

    monkeypatch.setattr(registry, "load", load)
    made: list[str] = []
    with pytest.raises(
        ClaimFileError, match=r"gdn\.survival-product could not be settled: .*ZeroDivisionError: planted"
    ):
        prove.certify_claims([BAD, GOOD], tmp_path, 1, lambda data, _: made.append(data["id"]))
    assert made == [GOOD]


def test_a_second_run_comes_from_the_cache(tmp_path: Path) -> None:
    seen: list[bool] = []
    for _ in range(2):
        prove.certify_claims([GOOD], tmp_path, 2, lambda _, cached: seen.append(cached))
    assert seen == [False, True]


def test_several_cores_give_the_same_certificates() -> None:
    made: dict[str, Any] = {}
    prove.certify_claims([GOOD, BAD], None, 2, lambda data, _: made.update({data["id"]: data}))
    assert {name: data["verdict"] for name, data in made.items()} == {GOOD: "proved", BAD: "proved"}

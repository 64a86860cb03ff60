"""A kernel certificate is checked again without the code that made it, and edits are found."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verify.audit.certify import certify
from verify.checkers.kernel_certificate import recheck

Edit = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("certificate")
    return certify(
        "kernels.kda.recurrent:recurrent_kda",
        "kda",
        "ours",
        classes=["random", "integer-reset"],
        folder=folder,
    )


def test_a_certificate_as_made_has_no_fault(made: dict[str, Any], tmp_path: Path) -> None:
    from verify.model import certificate

    assert recheck(made) == []
    certificate.write(tmp_path / "certificate.json", made)
    assert recheck(certificate.read(tmp_path / "certificate.json")) == []
    assert {sample["reference_kind"] for sample in made["samples"]} == {"exact", "float64"}


def set_at(*path: Any, value: Any) -> Edit:
    def edit(data: dict[str, Any]) -> None:
        for part in path[:-1]:
            data = data[part]
        data[path[-1]] = value

    return edit


def sample(kind: str, *path: Any, change: Callable[[Any], Any]) -> Edit:
    def edit(data: dict[str, Any]) -> None:
        found = next(s for s in data["samples"] if s["reference_kind"] == kind)
        for part in path[:-1]:
            found = found[part]
        found[path[-1]] = change(found[path[-1]])

    return edit


def moved(by: float) -> Callable[[str], str]:
    return lambda text: (float.fromhex(text) + by).hex()


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (set_at("verdict", value="refuted"), "the verdict is refuted, the cells and properties say sampled"),
        (set_at("verdict", value="proved"), "verdict: 'proved' is not one of"),
        (set_at("cells", 0, "verdict", value="refuted"), "its figures say sampled"),
        (set_at("cells", 0, "output", "nonfinite", value=1), "its figures say refuted"),
        (set_at("cells", 0, "output", "worst_ratio", value=0.999), "the largest ratio per token"),
        (set_at("cells", 0, "output", "per_token", "error", value=[]), "per_token has"),
        (set_at("classes", 0, "worst_ratio", value=1e-9), "its cells say"),
        (set_at("classes", 0, "cells", value=9), "9 cells stated, 4 listed"),
        (set_at("properties", 0, "verdict", value="refuted"), "the cells and properties say refuted"),
        (set_at("findings", value=[{"reason": "r", "detail": "d", "evidence": "e"}]), "with 1 findings"),
        (set_at("cells", value=[]), "cells:"),
        (sample("exact", "reference", change=moved(1.0)), "not within its bound"),
        (
            sample("exact", "computed", change=moved(1.0)),
            "the verdict is sampled, computed again it is refuted",
        ),
        (sample("float64", "reference", change=moved(1e-9)), "not within its bound"),
        (
            sample("float64", "computed", change=moved(1.0)),
            "the verdict is sampled, computed again it is refuted",
        ),
        (sample("float64", "inputs", "beta", -1, change=moved(0.5)), "not within its bound"),
        (sample("float64", "inputs", "v", change=lambda v: v[1:]), "do not have the sizes"),
    ],
)
def test_an_edit_is_found(edit: Edit, said: str, made: dict[str, Any]) -> None:
    edited = copy.deepcopy(made)
    edit(edited)
    faults = recheck(edited)
    assert any(said in fault for fault in faults), faults

"""Manifests, statements and proofs for Coq fit the claims they stand beside."""

import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from verify.model import registry
from verify.model.kernel_proof import AXIOMS, of_claim

MANIFESTS = [path for room in registry.ROOMS for path in sorted(registry.room_path(room).glob("*/coq.toml"))]
PROOFS = {
    entry.id: proof for entry in registry.entries() if (proof := of_claim(entry.id, entry.path)) is not None
}


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.parent.name)
def test_a_manifest_names_claims_and_every_proof_is_in_one(manifest: Path) -> None:
    named = set(tomllib.loads(manifest.read_text(encoding="utf-8"))["claims"])
    proved = {
        path.stem.replace("_", "-")
        for path in manifest.parent.glob("*.v")
        if f"Theorem {path.stem}_proof : {path.stem}." in path.read_text(encoding="utf-8")
    }
    assert named == proved
    topic = manifest.parent.name
    assert {f"{topic}.{name}" for name in named} <= {entry.id for entry in registry.entries()}


def test_every_topic_with_statements_has_a_manifest() -> None:
    for room in registry.ROOMS:
        for path in registry.room_path(room).glob("*/statements.v"):
            assert path.with_name("coq.toml") in MANIFESTS, path


def test_no_proof_is_left_open() -> None:
    for room in registry.ROOMS:
        for path in registry.room_path(room).rglob("*.v"):
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"\b(Admitted|admit|Axiom|Parameter|Conjecture)\b", text), path
            assert len(text.splitlines()) <= 150, path


@pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed")
@pytest.mark.parametrize("claim_id", PROOFS)
def test_coq_accepts_the_proof_with_the_allowed_axioms(claim_id: str, certified: Any) -> None:
    data = certified(claim_id)
    assert data["kernel"]["verdict"] == "proved", data["kernel"]["checks"]
    assert "K" in data["reached"]
    listed = data["kernel"]["checks"][1]["detail"]
    used = [] if "no axiom" in listed else listed.removeprefix("axioms: ").split(", ")
    assert set(used) <= set(AXIOMS[PROOFS[claim_id].axioms])

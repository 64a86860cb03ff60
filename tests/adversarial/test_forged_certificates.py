"""Certificates edited and sealed again: what is stated must follow from the evidence."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verify.model import certificate
from verify.prove import certify_claim
from verify.recheck import recheck

Forge = Callable[[dict[str, Any]], object]


def evidence(data: dict[str, Any], part: int = 0, item: int = 0) -> dict[str, Any]:
    return data["parts"][part]["evidence"][item]


FORGERIES: dict[str, tuple[str, Forge]] = {
    "better verdict": ("rank.exponential-full", lambda d: d.update(verdict="proved")),
    "mutants removed": ("delta.overwrite", lambda d: d["mutants"].clear()),
    "surviving mutant": ("delta.overwrite", lambda d: d["mutants"][0].update(verdict="undecided")),
    "mutant's fate": ("delta.overwrite", lambda d: d["mutants"][0].update(rejected=False)),
    "strength reached": ("delta.overwrite", lambda d: d.update(reached="KSEBC")),
    "word of a part": ("delta.overwrite", lambda d: d["parts"][0].update(word="cited")),
    "word of an item": ("delta.overwrite", lambda d: evidence(d).update(verdict="bounded")),
    "one solver only": ("kda.no-shear", lambda d: evidence(d, 0, 1)["checks"].pop()),
    "checker's word": ("delta.overwrite", lambda d: evidence(d)["checks"][-1].update(verdict="cited")),
    "witness": ("delta.overwrite", lambda d: evidence(d, 1)["data"].update(output=["1/5", "99/100"])),
    "best word": ("chunk.knob", lambda d: evidence(d, 0).update(best="sampled")),
    "another claim's Coq proof": (
        "delta.overwrite",
        lambda d: d["kernel"]["data"].update(module="Attnproof.counterexamples.delta.order"),
    ),
    "a Coq proof that covers more": ("delta.overwrite", lambda d: d["kernel"].update(verdict="bounded")),
    "unknown field": ("delta.overwrite", lambda d: d.update(trusted=True)),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_certificate_does_not_recheck(name: str, tmp_path: Path) -> None:
    claim_id, forge = FORGERIES[name]
    made, _ = certify_claim(claim_id, tmp_path / "cache")
    path = tmp_path / "claim.json"
    certificate.write(path, made)
    assert recheck(path).faults == ()
    forge(made)
    certificate.write(path, made)
    assert recheck(path).faults != ()

"""Certificates edited and sealed again: what is stated must follow from the evidence."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verify.model import certificate
from verify.model.errors import ResultFileError
from verify.prove import certify_claim
from verify.recheck import Outcome, recheck, recheck_all

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
    "a Coq theorem of the library": (
        "delta.overwrite",
        lambda d: d["kernel"]["data"].update(theorem="Coq.Init.Logic.I", statement="Coq.Init.Logic.True"),
    ),
    "title": ("delta.overwrite", lambda d: d.update(title=d["title"] + " always")),
    "scope": ("delta.overwrite", lambda d: d.update(scope="everything")),
    "assumption left out": ("delta.overwrite", lambda d: d["assumptions"].clear()),
    "what fails": ("delta.overwrite", lambda d: d["counterexample"].update(gap="10^6")),
    "sentence of a part": ("delta.overwrite", lambda d: d["parts"][0].update(statement="It is so.")),
    "label of an item": ("delta.overwrite", lambda d: evidence(d).update(label="all of it")),
    "a part left out": ("delta.overwrite", lambda d: d["parts"].pop()),
    "a mutant's description": ("delta.overwrite", lambda d: d["mutants"][0].update(description="deep")),
    "an id that is not registered": ("delta.overwrite", lambda d: d.update(id="delta.overwritten")),
    "a request's room": ("delta.overwrite", lambda d: d.update(room="requests", title="Whatever I like")),
    "unknown field": ("delta.overwrite", lambda d: d.update(trusted=True)),
}


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Any]]:
    """A claim's certificate, which rechecks; made once."""
    folder, known = tmp_path_factory.mktemp("honest"), set[str]()

    def make(claim_id: str) -> dict[str, Any]:
        made, _ = certify_claim(claim_id, folder / "cache")
        if claim_id not in known:
            certificate.write(folder / "claim.json", made)
            assert recheck(folder / "claim.json").faults == ()
            known.add(claim_id)
        return made

    return make


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_certificate_does_not_recheck(
    name: str, honest: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    claim_id, forge = FORGERIES[name]
    made = honest(claim_id)
    forge(made)
    path = tmp_path / "claim.json"
    certificate.write(path, made)
    assert recheck(path).faults != ()


def test_only_the_forged_one_of_several_coq_proofs_fails(
    honest: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    names = ("delta.overwrite", "delta.order", "sparse.face")
    paths = [tmp_path / f"{name}.json" for name in names]
    for name, path in zip(names, paths, strict=True):
        made = honest(name)
        certificate.write(path, made)
    made["statement"] += " For all sizes."
    certificate.write(paths[-1], made)
    wanted = [(), (), ("statement: not that of the claim registered as sparse.face",)]
    for cores in (1, 2):
        found = list(recheck_all([*paths, tmp_path / "nowhere.json"], cores))
        assert [path for path, _ in found[:-1]] == paths
        assert [outcome.faults for _, outcome in found if isinstance(outcome, Outcome)] == wanted
        assert isinstance(found[-1][1], ResultFileError)

"""Every claim keeps the contract: it holds, its mutants die, its certificate convinces alone."""

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from verify.model import certificate, registry
from verify.model.evidence import Obligation
from verify.model.judges import ask
from verify.model.verdict import Verdict
from verify.recheck import recheck

IDS = [entry.id for entry in registry.entries()]


Certified = Callable[[str], dict[str, Any]]


@pytest.mark.parametrize("claim_id", IDS)
def test_the_claim_holds_at_every_asked_strength_but_the_kernel(claim_id: str, certified: Certified) -> None:
    made = certified(claim_id)
    words = [(p["statement"], e["label"], e["checks"]) for p in made["parts"] for e in p["evidence"]]
    assert Verdict(made["verdict"]).holds, words
    assert set(made["asked"]) - {"K"} <= set(made["reached"])


@pytest.mark.parametrize("claim_id", IDS)
def test_every_mutant_is_refuted(claim_id: str, certified: Certified) -> None:
    made = certified(claim_id)
    assert made["mutants"]
    assert [mutant for mutant in made["mutants"] if mutant["verdict"] != "refuted"] == []


@pytest.mark.parametrize("claim_id", IDS)
def test_the_certificate_fits_its_schema_and_rechecks(
    claim_id: str, certified: Certified, tmp_path: Path
) -> None:
    path = tmp_path / "claim.json"
    certificate.write(path, certified(claim_id))
    jsonschema.validate(certificate.read(path), certificate.schema(certificate.CLAIM_FORMAT))
    assert recheck(path).faults == ()


@pytest.mark.parametrize("claim_id", IDS)
def test_corrected_claims_refute_what_was_printed(claim_id: str, certified: Certified) -> None:
    made = certified(claim_id)
    refuting = [part for part in made["parts"] if part["refutes"]]
    assert bool(refuting) == (made["status"] == "X")
    assert all(part["word"] == "refuted" for part in refuting)


def _numbers(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of the rational constants in formulas and witnesses."""
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in _numbers(item, (*path, key))]
    if isinstance(value, list):
        if len(value) == 2 and value[0] == "q":
            return [(*path, 1)]
        return [found for place, item in enumerate(value) for found in _numbers(item, (*path, place))]
    return []


@pytest.mark.parametrize("claim_id", IDS)
def test_checkers_notice_a_changed_constant_in_a_derivation(claim_id: str, certified: Certified) -> None:
    """The last formula's first constant is changed: no checker may still say proved."""
    for part in certified(claim_id)["parts"]:
        for item in part["evidence"]:
            if item["kind"] != "derivation" or not item["data"]["steps"]:
                continue
            data = json.loads(json.dumps(item["data"]))
            places = _numbers(data["steps"][-1]["after"])
            if not places:
                continue
            target = data["steps"][-1]["after"]
            for key in places[0][:-1]:
                target = target[key]
            target[1] = str(Fraction(target[1]) + 1)
            data["goal"]["rhs"] = copy.deepcopy(data["steps"][-1]["after"])
            words = ask("verify.checkers", Obligation("derivation", "tampered", "C", data))
            assert words
            assert all(word.verdict is not Verdict.PROVED for word in words), item["label"]


def test_rechecking_works_without_any_engine(certified: Certified, tmp_path: Path) -> None:
    path = tmp_path / "claim.json"
    certificate.write(path, certified(IDS[0]))
    blocked = (
        "import sys\n"
        "for name in ('sympy', 'z3', 'cvc5', 'flint', 'torch', 'verify.engines', 'verify.derive'):\n"
        "    sys.modules[name] = None\n"
        "from pathlib import Path\n"
        "from verify.recheck import recheck\n"
        f"print(recheck(Path({str(path)!r})).faults)\n"
    )
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "()", done.stderr

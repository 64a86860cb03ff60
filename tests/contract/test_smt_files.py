"""Every solver statement is one SMT-LIB file that both solvers decide, and nonlinear ones rest on more."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verify.engines import cvc5_engine, z3_engine
from verify.model import registry
from verify.model.evidence import Obligation
from verify.model.verdict import Verdict
from verify.report import smt_files


def statements(made: dict[str, Any]) -> list[dict[str, Any]]:
    return [item for part in made["parts"] for item in part["evidence"] if item["kind"] == "smt"]


@pytest.mark.parametrize("claim_id", [entry.id for entry in registry.entries()])
def test_both_solvers_decide_the_files(
    claim_id: str, certified: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    made = certified(claim_id)
    paths = smt_files.write(made, tmp_path)
    assert len(paths) == len(statements(made))
    for path, item in zip(paths, statements(made), strict=True):
        text = path.read_text(encoding="utf-8")
        header = [line for line in text.splitlines() if line.startswith(";")][:3]
        assert header[0].startswith(f"; claim: {claim_id},")
        assert header[1] == f"; statement: {' '.join(item['label'].split())}"
        expected = header[2].removeprefix("; expected: ")
        data = {"smtlib": text, "expect": expected, "logic": item["data"]["logic"]}
        for engine in (z3_engine, cvc5_engine):
            check = engine.judge(Obligation("smt", path.name, "S", data))
            assert check.verdict is Verdict.PROVED, (path.name, check)


def test_nonlinear_refutations_carry_a_certificate(certified: Callable[[str], dict[str, Any]]) -> None:
    """The same text refuted by a sum of signs, or another exact witness in the same part."""
    exact = {"polynomial-certificate", "no-kda-step", "stretch", "kda-product"}
    bare = set()
    for entry in registry.entries():
        made = certified(entry.id)
        for part in made["parts"]:
            signs = [
                item["data"]["smtlib"] for item in part["evidence"] if item["kind"] == "positivstellensatz"
            ]
            others = {item["kind"] for item in part["evidence"]} & exact
            for item in part["evidence"]:
                nonlinear = item["kind"] == "smt" and item["data"]["logic"] in ("QF_NRA", "QF_NIA")
                refuted = nonlinear and item["data"]["expect"] == "unsat"
                if refuted and item["data"]["smtlib"] not in signs and not others:
                    bare.add(f"{entry.id}: {item['label']}")
    assert bare == set()

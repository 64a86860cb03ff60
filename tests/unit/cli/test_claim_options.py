"""``--smt`` writes the solvers' statements, ``--search`` runs searches again; both from outside."""

from pathlib import Path

import pytest

from verify.cli.claims import prove, refute
from verify.model import registry
from verify.model import search as searches
from verify.model.errors import RequestError
from verify.model.search import Found

NAMES = {"results": None, "json_output": False, "jobs": 1, "fresh": False}


def test_smt_files_hold_the_text_after_three_comments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ATTNPROOF_CACHE", str(tmp_path / "cache"))
    options = {**NAMES, "results": tmp_path, "smt": tmp_path / "smt"}
    assert refute(["collision.bilinear"], **options) == 0
    assert "SMT-LIB files: 3 in" in capsys.readouterr().out
    files = sorted((tmp_path / "smt").iterdir())
    assert [file.name for file in files] == [f"collision.bilinear-{number}.smt2" for number in (1, 2, 3)]
    stated = [
        item.data["smtlib"]
        for part in registry.load("collision.bilinear").parts()
        for item in part.obligations
        if item.kind == "smt"
    ]
    for file, text in zip(files, stated, strict=True):
        header, rest = file.read_text(encoding="utf-8").split("(set-logic", 1)
        assert f"(set-logic{rest}" == text
        assert [line[:2] for line in header.splitlines()] == ["; "] * 3
    assert prove(["softmax.separates-near-keys"], **options) == 0
    assert "SMT-LIB files: 1" in capsys.readouterr().out


def test_a_search_that_finds_the_witness_again_is_code_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert refute(["kda.gate-basis", "delta.overwrite"], **NAMES, search=True) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[1] for line in said] == ["found again", "found again"]


def test_a_search_that_finds_something_else_is_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(searches, "again", lambda claim: (Found({"x": "1"}, ()),))
    assert refute(["kda.gate-basis"], **NAMES, search=True) == 1
    assert "found something else" in capsys.readouterr().out


def test_a_witness_made_by_hand_has_no_search() -> None:
    with pytest.raises(RequestError, match="made by hand"):
        refute(["kda.no-shear"], **NAMES, search=True)

"""``attnproof refute representable`` from outside: answers, wrong requests, certificates that re-check."""

import json
from pathlib import Path
from typing import Any

import pytest

from verify.cli.refute.representable import representable
from verify.model import certificate
from verify.model.errors import RequestError, SearchEnded
from verify.recheck import recheck

ROTATED = [["0", "1/2", "0"], ["1/2", "0", "1/2"], ["0", "1/2", "1/4"]]


def ask(folder: Path, matrix: Any, steps: int = 1) -> dict[str, Any]:
    given = folder / "given.json"
    given.write_text(matrix if isinstance(matrix, str) else json.dumps(matrix), encoding="utf-8")
    code = representable(given, steps, folder / "results", json_output=False, name="")
    made = certificate.read(folder / "results" / "claims" / "request.representable-given.json")
    assert code == 0
    assert made["mutants"]
    assert all(mutant["rejected"] for mutant in made["mutants"])
    return made


@pytest.mark.parametrize(
    ("matrix", "steps", "title", "verdict"),
    [
        ([["3/8", "1/12"], ["1/8", "1/4"]], 1, "is one KDA step", "proved"),
        ([["1/2", "1/5"], ["1/4", "1/3"]], 1, "is one KDA step", "proved"),
        ([["0", "0"], ["0", "0"]], 1, "is one KDA step", "proved"),
        ([[-1]], 1, "is one KDA step", "proved"),
        ([["1", "3/4"], ["0", "1"]], 1, "is no product of KDA steps", "proved"),
        ([["1", "3/4"], ["0", "1"]], 9, "is no product of KDA steps", "proved"),
        ([["1/2", 0.25], ["1/3", "-0.5"]], 1, "is no KDA step", "proved"),
        ([["1/2", 0.25], ["1/3", "-0.5"]], 2, "is a product of 2 KDA steps", "proved"),
        (ROTATED, 6, "is a product of at most 6 KDA steps", "cited"),
    ],
)
def test_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], matrix: Any, steps: int, title: str, verdict: str
) -> None:
    made = ask(tmp_path, matrix, steps)
    assert made["title"].endswith(title)
    assert made["verdict"] == verdict
    assert title in capsys.readouterr().out


def test_a_product_that_is_not_found_is_undecided(tmp_path: Path) -> None:
    with pytest.raises(SearchEnded, match="6 steps suffice") as ended:
        ask(tmp_path, ROTATED, 2)
    assert ended.value.exit_code == 3
    assert "tried" in str(ended.value)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        ([[1, 2, 3], [4, 5, 6]], "2×3; a KDA step is square"),
        ([[1, 2], [3]], "row 2 of the matrix has 1 entries"),
        ([], "non-empty list of rows"),
        ({"matrix": [[1]]}, "non-empty list of rows"),
        ([["a"]], "'a' is not a rational number"),
        ([[None]], "is not a number such as"),
        ('[["1/0"]]', "not a rational number"),
        ("[[NaN]]", "NaN is not a finite number"),
        ("[[1e999, -Infinity]]", "Infinity is not a finite number"),
        ("[[1e99999]]", "exponent of more than 3 digits"),
        ([["1E-000123456"]], "exponent of more than 3 digits"),
        ("[[1, 2", "is not JSON"),
        (f"[[{'9' * 5000}]]", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("", "is empty"),
    ],
)
def test_wrong_matrices_are_one_sentence_and_write_nothing(tmp_path: Path, matrix: Any, said: str) -> None:
    with pytest.raises(RequestError, match=said.replace("(", r"\(")) as problem:
        ask(tmp_path, matrix)
    assert "\n" not in str(problem.value)
    assert not (tmp_path / "results").exists()


def test_a_missing_file_and_a_bad_name_are_said(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="cannot be read"):
        representable(tmp_path / "none.json", 1, tmp_path, json_output=False, name="")
    given = tmp_path / "one.csv"
    given.write_text("1/2, 0\n0, 0.25\n", encoding="utf-8")
    with pytest.raises(RequestError, match="small letters"):
        representable(given, 1, tmp_path, json_output=False, name="A b")
    with pytest.raises(RequestError, match="the name has 300 letters; give at most 100"):
        representable(given, 1, tmp_path, json_output=False, name="a" * 300)
    assert representable(given, 1, tmp_path, json_output=True, name="gate") == 0
    assert (tmp_path / "claims" / "request.gate.json").exists()


def test_the_certificate_rechecks_and_a_forged_one_fails(tmp_path: Path) -> None:
    made = ask(tmp_path, [["1/2", 0.25], ["1/3", "-0.5"]])
    path = tmp_path / "results" / "claims" / "request.representable-given.json"
    assert recheck(path).faults == ()
    made["parts"][0]["evidence"][0]["data"]["matrix"][1][1] = "1/2"
    certificate.write(path, made)
    assert any("is recorded, now refuted" in fault for fault in recheck(path).faults)

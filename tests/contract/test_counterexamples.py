"""Every counterexample says what fails, by how much, how small its witness is, and what repairs it."""

import ast
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from verify.model import certificate, registry, search
from verify.model.errors import RequestError
from verify.report import site
from verify.report.mathml import prose

Certified = Callable[[str], dict[str, Any]]

ENTRIES = registry.entries("counterexamples")
IDS = [entry.id for entry in ENTRIES]
TEXTS = ("fails", "believed", "catch", "gap", "smallest", "repair")


def witnesses(made: dict[str, Any]) -> list[dict[str, Any]]:
    labels = made["counterexample"]["witness"]
    return [item for part in made["parts"] for item in part["evidence"] if item["label"] in labels]


@pytest.mark.parametrize("claim_id", IDS)
def test_the_record_is_whole(claim_id: str, certified: Certified) -> None:
    made = certified(claim_id)
    record = made["counterexample"]
    assert [name for name in TEXTS if not record[name].strip()] == []
    assert record["repaired_by"]
    assert set(record["repaired_by"]) <= {entry.id for entry in registry.entries()}
    assert {item["label"] for item in witnesses(made)} == set(record["witness"]) != set()
    assert certificate.settled(made).claim.counterexample == registry.load(claim_id).counterexample


def test_no_derivation_has_one() -> None:
    loaded = [registry.load(entry.id) for entry in registry.entries("derivations")]
    assert [claim.id for claim in loaded if claim.counterexample is not None] == []


@pytest.mark.parametrize("claim_id", IDS)
def test_the_witness_is_checked_by_others(claim_id: str, certified: Certified) -> None:
    for item in witnesses(certified(claim_id)):
        checkers = {check["by"] for check in item["checks"] if check["role"] == "checker"}
        assert checkers or len({check["by"] for check in item["checks"]}) > 1, item["label"]
        assert item["verdict"] != "refuted"


@pytest.mark.parametrize("entry", ENTRIES, ids=IDS)
def test_the_docstring_keeps_one_line(entry: registry.Entry) -> None:
    docstring = ast.get_docstring(ast.parse(entry.path.read_text(encoding="utf-8")))
    assert docstring is not None
    assert "\n" not in docstring


def stated(text: str) -> Iterator[tuple[Fraction, Fraction]]:
    """Fractions, decimals and long whole numbers of a text without signs, each with a unit of what is cut."""
    for top, bottom in re.findall(r"\\frac(\d|\{\d+\})(\d|\{\d+\})", text):
        yield Fraction(int(top.strip("{}")), int(bottom.strip("{}"))), Fraction(0)
    for found in re.findall(r"\d+\.\d+|\d{4,}", text):
        yield Fraction(found), Fraction(1, 10 ** len(found.partition(".")[2]))


def held(value: Any) -> Iterator[tuple[Fraction, Fraction]]:
    """Numbers in an obligation, with how far off they may be: exact ones not at all, decimals one unit."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from held(item)
    elif isinstance(value, str):
        for found in re.findall(r"\d+/\d+|\d+(?:\.\d+)?(?:e[+-]\d+)?", value.replace("½", "1/2")):
            mantissa, _, power = found.partition("e")
            unit = Fraction(10) ** (int(power or 0) - len(mantissa.partition(".")[2]))
            yield abs(Fraction(found)), unit if "." in found else Fraction(0)


@pytest.mark.parametrize("claim_id", IDS)
def test_the_gap_is_what_the_witness_shows(claim_id: str, certified: Certified) -> None:
    made = certified(claim_id)
    shown = [
        number
        for item in witnesses(made)
        for number in held([item["data"], item["label"], [check["detail"] for check in item["checks"]]])
    ]
    text = made["counterexample"]["gap"]
    for number, cut in stated(text):
        assert any(abs(number - other) <= (unit and max(unit, cut)) for other, unit in shown), number


@pytest.mark.parametrize("claim_id", IDS)
def test_the_search_finds_the_witness_again(claim_id: str) -> None:
    claim = registry.load(claim_id)
    assert claim.counterexample is not None
    if claim.counterexample.search is None:
        with pytest.raises(RequestError, match="made by hand"):
            search.again(claim)
        assert re.search("by hand|by proof|proved|not established", claim.counterexample.smallest.lower())
        return
    found = search.again(claim)
    assert found
    assert [item.data for item in found if not item.labels] == []


def test_a_search_that_finds_something_else_is_noticed() -> None:
    claim = registry.load("kda.gate-basis")
    (found,) = search.again(claim)
    other = registry.load("delta.overwrite")
    assert found.labels
    assert all(not set(item.labels) & set(found.labels) for item in search.again(other))
    with pytest.raises(RequestError, match="no counterexample"):
        search.again(registry.load("softmax.simplex"))


def test_the_page_shows_the_record_its_figure_and_the_repair(certified: Certified, tmp_path: Path) -> None:
    wanted = {name for claim_id in IDS for name in certified(claim_id)["counterexample"]["repaired_by"]}
    for claim_id in sorted({*IDS, *wanted}):
        certificate.write(tmp_path / "results" / "claims" / f"{claim_id}.json", certified(claim_id))
    folder = site.write(tmp_path / "results", tmp_path / "out").parent
    for claim_id in IDS:
        page = (folder / "claims" / f"{claim_id}.html").read_text(encoding="utf-8")
        record = certified(claim_id)["counterexample"]
        assert [name for name in TEXTS if str(prose(record[name])) not in page] == [], claim_id
        assert page.index('class="gap"') < page.index("<figure") < page.index("Checked again by code")
        links = {f'href="../claims/{name}.html"' for name in record["repaired_by"] if name != claim_id}
        assert [link for link in links if link not in page] == [], claim_id
        assert (f"attnproof refute {claim_id} --search" in page) == (record["search"] is not None)

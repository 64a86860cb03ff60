"""Printed numbers: what their digits can stand for, and how proved bounds stand to that."""

from fractions import Fraction
from pathlib import Path

import pytest
import sealed_results as made
from test_report_site import Page

from verify.model import certificate
from verify.report import printed, site


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("0.577", "1153/2000", "231/400"),
        ("458", "915/2", "917/2"),
        ("-4.77", "-955/200", "-953/200"),
        ("0.817…", "817/1000", "818/1000"),
        ("-0.5…", "-3/5", "-1/2"),
        ("≈ 6.2", "61/10", "63/10"),
        ("0.5²", "81/400", "121/400"),
        ("< 0.0001", None, "1/10000"),
        ("≤ 4.606", None, "4606/1000"),
    ],
)
def test_digits_stand_for_a_range(text: str, least: str | None, most: str | None) -> None:
    wanted = tuple(None if end is None else Fraction(end) for end in (least, most))
    assert printed.meaning(text) == wanted


@pytest.mark.parametrize("text", ["about 3", "1e-4", "3,5", "<0.1", "0.5²²"])
def test_other_text_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        printed.meaning(text)


@pytest.mark.parametrize(
    ("text", "bounds", "word"),
    [
        ("0.98", {"above": "0.977", "below": "0.978"}, "agrees"),
        ("0.98", {"above": "0.97", "below": "0.98"}, "open"),
        ("0.98", {"above": "0.97"}, "open"),
        ("0.98", {"above": "0.985"}, "differs"),
        ("0.98", {"below": "0.975"}, "differs"),
        ("< 0.0001", {"below": "0.0001"}, "agrees"),
        ("< 0.0001", {"above": "0.0001"}, "differs"),
        ("< 0.0001", {"above": "0.00005"}, "open"),
        ("", {"above": "1"}, "lost"),
    ],
)
def test_bounds_agree_differ_or_do_not_decide(text: str, bounds: dict[str, str], word: str) -> None:
    item = made.item("inequality", "B", {"term": ["q", "1"], "values": {}, "printed": text, **bounds})
    claim = made.claim(parts=[{**made.claim()["parts"][0], "evidence": [item, item]}])
    (row,) = printed.printed(claim)
    assert (row.label, row.word) == ("shown by inequality", word)


def test_a_read_is_compared_coefficient_by_coefficient() -> None:
    data = {"writes": [], "query": [], "output": ["49/50", "0.9", "0.985"], "printed": "0.98"}
    claim = made.claim(parts=[{**made.claim()["parts"][0], "evidence": [made.item("delta-read", "E", data)]}])
    rows = printed.printed(claim)
    assert [row.word for row in rows] == ["agrees", "differs", "agrees"]
    assert rows[0].low == rows[0].high
    assert rows[1].label.endswith("coefficient 2")


def test_the_page_of_numbers_starts_with_what_is_printed(results: Path, tmp_path: Path) -> None:
    assert "What the articles print" not in Page(numbers_of(results, tmp_path / "none")).text
    data = {"term": ["q", "1/3"], "values": {}, "above": "0.33", "below": "0.34", "printed": "0.5"}
    lost = made.item("operation-count", "E", {"tokens": 4, "printed": ""})
    part = {**made.claim()["parts"][0], "evidence": [made.item("inequality", "E", data), lost]}
    certificate.write(results / "claims" / "one.third.json", made.claim("one.third", parts=[part]))
    page = Page(numbers_of(results, tmp_path / "some"))
    assert (
        page.text.index("What the articles print")
        < page.text.index("differs")
        < page.text.index("All bounded")
    )
    assert "printed value lost" in page.text


def numbers_of(results: Path, out: Path) -> Path:
    return site.write(results, out).parent / "numbers.html"


def test_a_printed_number_that_cannot_be_read_is_left_out_with_its_claim(
    results: Path, tmp_path: Path
) -> None:
    claim = made.claim("mal.formed")
    claim["parts"][0]["evidence"][2]["data"]["printed"] = "plenty"
    certificate.write(results / "claims" / "mal.formed.json", claim)
    assert "'plenty' cannot be read" in Page(site.write(results, tmp_path / "out")).text

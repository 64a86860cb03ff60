"""The page of numbers: every bounded number with its formula and bounds, long ones visibly rounded."""

from pathlib import Path

import pytest
import sealed_results as made
from test_report_site import Page

from verify.model import certificate
from verify.report import numbers, site


@pytest.mark.parametrize(
    ("fraction", "sign", "text"),
    [
        ("965/1000", "=", "0.965"),
        ("44/1000000", "=", "0.000044"),
        ("-3/16", "=", "-0.1875"),
        ("-1400000", "=", "-1400000"),
        ("1/3", "=", "1/3"),
        ("0", "=", "0"),
        (str(2**128), "≈", "3.40282e+38"),
        (f"-1/{2**149}", "≈", "-1.40130e-45"),
        (str(10**400), "≈", "1.00000e+400"),
    ],
)
def test_fractions_are_short_and_never_silently_rounded(fraction: str, sign: str, text: str) -> None:
    shown = numbers.number(fraction)
    assert (shown.sign, shown.text) == (sign, text)


def test_only_parts_with_a_bounded_number_are_listed() -> None:
    found = numbers.stated(made.claim())
    ((part, (row,)),) = found.parts
    assert part is found.claim["parts"][0]
    assert (row.label, row.latex, row.word) == ("0.98 to the power 10", "a^{10}", "proved")
    assert row.low is not None
    assert row.low.text == "0.817"
    assert row.high is None
    assert numbers.stated(made.claim(parts=[])).parts == ()


def test_the_page_shows_each_number_under_its_sentence(report: Path) -> None:
    page = Page(report / "numbers.html")
    assert "0.98 to the power 10" in page.text
    assert "0.817" in page.text
    assert "not asked for" in page.text
    assert page.text.index("Reading gives") < page.text.index("0.98 to the power 10")
    assert "(printed)" not in page.text
    assert "2 claims rest on" in Page(report / "index.html").text


def test_a_malformed_number_is_left_out_with_its_claim(results: Path, tmp_path: Path) -> None:
    claim = made.claim("mal.formed")
    claim["parts"][0]["evidence"][2]["data"]["above"] = "much"
    certificate.write(results / "claims" / "mal.formed.json", claim)
    index = site.write(results, tmp_path / "out")
    assert "malformed" in Page(index).text
    assert "mal.formed" not in Page(tmp_path / "out" / "numbers.html").text
    assert not (tmp_path / "out" / "claims" / "mal.formed.html").exists()

"""Plain numbers and what others' rules say, on a certificate's page and in the terminal."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import sealed_results as made

from verify.model import certificate
from verify.report import site
from verify.report.plain_numbers import COLUMNS, lines, refuted, rows

PLAIN = {
    "output": {
        "max_abs_error": {"value": 2.5e-7, "class": "gaussian"},
        "max_ulp": {"value": "inf", "class": "gate-zero"},
        "rms_ratio": {"value": 1e-7, "class": "gaussian"},
        "rms_block": {"value": 3e-7, "class": "gaussian"},
        "rms_token": {"value": 4e-7, "class": "gaussian"},
        "bias_share": {"value": -0.25, "class": "gaussian"},
        "nonfinite": {"value": 2, "class": "gate-zero"},
    },
    "gradient of q": {
        "max_abs_error": {"value": 0.5, "class": "gaussian"},
        "nonfinite": {"value": 0, "class": "gaussian"},
    },
}
RULES = [
    {"name": "theirs", "rule": "at most <1>", "passes": True, "inputs": 2, "failing": 0, "classes": []},
    {
        "name": "others",
        "rule": "entry by entry",
        "passes": False,
        "inputs": 9,
        "failing": 5,
        "classes": ["a", "b", "c", "d"],
    },
    {"name": "silent", "rule": "r", "passes": None, "inputs": 0, "failing": 0, "classes": []},
]


class Rows(HTMLParser):
    """The texts of all table rows, and the titles of their cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.titles: list[list[str]] = []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
            self.titles.append([])
        elif tag in ("td", "th"):
            self.inside = True
            self.rows[-1].append("")
            self.titles[-1].append(dict(attrs).get("title") or "")

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.rows[-1][-1] += data.strip()

    def handle_endtag(self, tag: str) -> None:
        self.inside = self.inside and tag not in ("td", "th")


def kernel(**changes: Any) -> dict[str, Any]:
    return made.kernel("refuted", plain=PLAIN, rules=RULES, **changes)


def test_the_terminal_shows_the_worst_and_every_rule() -> None:
    output, gradient, rules = lines(kernel())
    for said in ("output: max abs 2.5e-07", "max ulp ∞", "bias / RMS -0.25", "2 not finite"):
        assert said in output
    assert "RMS of 16 tokens 3e-07, of one 4e-07" in output
    assert gradient == "  plain     gradient of q: max abs 0.5"
    assert "theirs passes; others fails on 5 of 9 (a, b, c, …)" in rules
    assert "silent" not in rules


def test_the_output_comes_first_and_gradients_in_the_order_of_a_call() -> None:
    names = ["gradient of beta", "gradient of q", "output", "state"]
    ordered = rows({"plain": {key: {} for key in names}})
    assert [name for name, _ in ordered] == ["output", "state", "gradient of q", "gradient of beta"]


def test_every_gradient_a_certificate_may_have_is_shown() -> None:
    gradients = certificate.schema(certificate.KERNEL_FORMAT)["properties"]["gradients"]
    fields = gradients["items"]["properties"]["inputs"]["propertyNames"]["enum"]
    assert len(rows({"plain": {f"gradient of {field}": {} for field in fields}})) == len(fields)


def test_an_old_certificate_has_none() -> None:
    assert lines(made.kernel()) == []


def test_every_number_of_a_certificate_has_a_column() -> None:
    numbers = certificate.schema(certificate.KERNEL_FORMAT)["$defs"]["plain"]["properties"]
    shown = {name for name, _, _ in COLUMNS}
    assert shown == {*numbers, "max_abs_error", "rms_ratio", "nonfinite"} - {"zeros"}


def test_the_page_has_both_tables_and_our_word_beside_theirs(tmp_path: Path) -> None:
    certificate.write(tmp_path / "results" / "certify" / "bad" / "certificate.json", kernel())
    site.write(tmp_path / "results", tmp_path / "out")
    table = Rows((tmp_path / "out" / "certify" / "bad" / "index.html").read_text("utf-8"))
    by_name = dict(zip((row[0] for row in table.rows if row), table.rows, strict=False))
    names = [name for name, _, _ in COLUMNS]
    row = next(i for i, row in enumerate(table.rows) if row[:1] == ["output"])
    shown = dict(zip(names, table.rows[row][1:], strict=True))
    assert (shown["max_ulp"], shown["rms_token"], shown["at_zero"]) == ("∞", "4e-07", "–")
    titles = dict(zip(names, table.titles[row][1:], strict=True))
    assert (titles["max_ulp"], titles["rms_token"]) == ("gate-zero", "gaussian")
    assert by_name["theirs"] == ["theirs", "at most <1>", "passes", "0 of 2", ""]
    assert by_name["others"][2:] == ["fails", "5 of 9", "a, b, c, d"]
    assert by_name["silent"][2] == "nothing to judge"
    (own,) = (row for row in table.rows if row[:1] == ["attnproof"] and len(row) == 5)
    assert own[3:] == ["1 of 2", "gate-zero"]


def test_our_own_failures_are_counted_by_input() -> None:
    assert refuted(kernel()) == ["gate-zero"]
    wrong = [{"class": "x", "verdict": "refuted"}, {"class": "y", "verdict": "sampled"}]
    assert refuted({"cells": [], "gradients": wrong}) == ["x"]

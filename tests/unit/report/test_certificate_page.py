"""A certificate's page and text: gradients by class and input, the worst case, problems in words."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import sealed_results as made

from verify.cli.certify import _gradient_lines, _reference_lines, _worst_case_lines
from verify.model import certificate
from verify.report import gradients, site


def entry(name: str, ratios: dict[str, float | str], verdict: str, problem: str = "") -> dict[str, Any]:
    figures = {
        "max_abs_error": 1e-7,
        "max_abs_reference": 1.0,
        "worst_over_deviation": 1.5,
        "rms_ratio": 2e-7,
        "nonfinite": 0,
        "worst_at": None,
    }
    return {
        "class": name,
        "shape": {"B": 1, "T": 3, "H": 1, "HV": 1, "K": 4, "V": 4},
        "seed": 1,
        "initial_state": False,
        "verdict": verdict,
        "inputs": {field: {**figures, "worst_ratio": ratio} for field, ratio in ratios.items()},
        "problem": {"kind": "no-gradient", "message": problem} if problem else None,
        "seconds": 0.1,
    }


CELLS = [
    entry("gaussian", {"q": 0.25, "g": 0.5}, "sampled"),
    entry("gaussian", {"q": 0.75, "g": "nan"}, "refuted"),
    entry("gaussian", {"q": 0.125, "g": 3.0}, "refuted"),
    entry("gate-zero", {}, "refuted", "no gradient reaches <b>"),
]


class Cells(HTMLParser):
    """The rows of the table whose caption speaks of gradients."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.heats: list[str] = []
        self.feed(text[text.index("<h2>Gradients</h2>") : text.index("<h2>Properties</h2>")])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self.heats += [word for word in (dict(attrs).get("class") or "").split() if "heat" in word]

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.strip()


def test_rows_hold_the_worst_of_a_class() -> None:
    first, second = gradients.rows(CELLS)
    assert (first.name, first.cells, first.verdict) == ("gaussian", 3, "refuted")
    assert first.ratios == {"q": 0.75, "g": "nan"}
    assert (second.ratios, second.problem) == ({}, "no gradient reaches <b>")
    assert gradients.fields([first, second]) == ["q", "g"]


def test_the_page_and_the_terminal_show_them(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    certificate.write(
        folder / "certify" / "one" / "certificate.json", made.kernel("refuted", gradients=CELLS)
    )
    certificate.write(folder / "certify" / "two" / "certificate.json", made.kernel())
    site.write(folder, tmp_path / "out")
    page = tmp_path / "out" / "certify" / "one" / "index.html"
    table = Cells(page.read_text("utf-8"))
    head, first, second = table.rows
    assert head == ["class", "word", "cells", "q", "g", "problem"]
    assert [first[0], *first[2:]] == ["gaussian", "3", "0.75", "NaN", ""]
    assert [second[0], *second[2:]] == ["gate-zero", "1", "–", "–", "no gradient reaches <b>"]
    assert table.heats == ["heat-4", "heat-5"]
    assert "Gradients" not in (tmp_path / "out" / "certify" / "two" / "index.html").read_text("utf-8")
    lines = _gradient_lines(CELLS)
    assert [line.split()[0] for line in lines] == ["refuted", "refuted"]
    assert "q 0.75, g nan" in lines[0]
    assert lines[1].endswith("nothing to measure; no gradient reaches <b>")


def worst_case(**changes: Any) -> dict[str, Any]:
    entry = {
        "derived": True,
        "about": "claim one",
        "assumptions": ["sums in any order"],
        "worst_ratio": 0.125,
    }
    return {**entry, "met": True, **changes}


def test_the_worst_case_is_stated_or_said_to_be_unknown(tmp_path: Path) -> None:
    unknown = worst_case(
        derived=False, about="not derived for this", assumptions=[], worst_ratio=None, met=None
    )
    expected = {
        "met": (worst_case(), "0.125, met.", "worst-case bound met, worst error / bound 0.125"),
        "beyond": (
            worst_case(worst_ratio="inf", met=False),
            "∞, exceeded.",
            "bound exceeded, worst error / bound inf",
        ),
        "unknown": (unknown, "Rigorous bound: not derived for this.", "rigorous: not derived for this"),
        "silent": (worst_case(worst_ratio=None, met=None), "bound: –.", "rigorous: nothing to measure"),
    }
    for name, (entry, _, line) in expected.items():
        place = tmp_path / "results" / "certify" / name / "certificate.json"
        certificate.write(place, made.kernel(worst_case=entry, gradient_worst_case=entry))
        assert _worst_case_lines(entry)[0].endswith(line)
        assert _worst_case_lines(entry, " of gradients")[0].startswith("  rigorous of gradients: ")
    site.write(tmp_path / "results", tmp_path / "out")
    for name, (_, said, _) in expected.items():
        page = (tmp_path / "out" / "certify" / name / "index.html").read_text("utf-8")
        assert page.count(said) == 2, name
        assert page.index("<h2>Worst case</h2>") < page.index("<h2>Worst case of gradients</h2>")
        assert ("sums in any order" in page) is (name != "unknown")
    assert _worst_case_lines(None) == []


REFERENCE = {
    "asked": "mpmath",
    "about": "mpmath at two precisions",
    "used": {"ball": 2, "mpmath": 9},
    "notes": [{"cells": 2, "note": "too large for <mpmath>: 9 numbers"}],
    "most_digits": 31.9,
    "digits": {"gradient of k": {"fewest": 12.5, "median": 30.5}},
}


def test_the_reference_that_judged_and_its_digits_are_stated(tmp_path: Path) -> None:
    certificate.write(tmp_path / "results/certify/one/certificate.json", made.kernel(reference=REFERENCE))
    certificate.write(tmp_path / "results/certify/two/certificate.json", made.kernel())
    site.write(tmp_path / "results", tmp_path / "out")
    page, old = ((tmp_path / f"out/certify/{name}/index.html").read_text("utf-8") for name in ("one", "two"))
    assert "Inputs judged: 2 by ball, 9 by mpmath." in page
    assert "2 inputs: too large for &lt;mpmath&gt;: 9 numbers" in page
    assert "gradient of k" in page
    assert "12.5" in page
    assert "<h2>Reference</h2>" not in old
    lines = _reference_lines(REFERENCE)
    assert lines[0].endswith("mpmath at two precisions: 2 inputs by ball, 9 inputs by mpmath")
    assert lines[1].strip() == "2 inputs, too large for <mpmath>: 9 numbers"
    assert lines[2].strip() == (
        "gradient of k: at least 12.5 of 31.9 digits stand, half of the numbers have 30.5 or more"
    )
    assert _reference_lines(None) == _reference_lines({**REFERENCE, "asked": "float64"}) == []

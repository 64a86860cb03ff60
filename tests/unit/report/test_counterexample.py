"""The record of a counterexample on every face: page, terminal, LaTeX; and what a malformed one does."""

from pathlib import Path

import pytest
import sealed_results as made
from test_report_site import Page

from verify.model import certificate
from verify.report import counterexample, latex, site, text


def test_the_page_leads_with_what_fails_and_links_to_the_repair(report: Path) -> None:
    page = Page(report / "claims" / "delta.overwrite.html")
    for heading in counterexample.HEADINGS.values():
        assert heading in page.text
    assert page.text.index("The statement that fails") < page.text.index("Exactly") < page.text.index("Parts")
    assert "<b>ever</b>" in page.text
    source = (report / "claims" / "delta.overwrite.html").read_text(encoding="utf-8")
    assert 'href="../claims/softmax.simplex.html"' in source
    assert "softmax.fisher.html" not in source
    assert "<code>softmax.fisher</code>" in source
    assert "this claim" in page.text
    assert "attnproof refute delta.overwrite --search" in page.text
    assert "looked at 1 < 2" in page.text[: page.text.index("Parts")]
    assert source.index("<figure") < source.index('id="part-1"')
    other = (report / "claims" / "softmax.simplex.html").read_text(encoding="utf-8")
    assert "The statement that fails" not in other


def test_a_claim_without_a_record_has_no_view() -> None:
    assert counterexample.view(made.claim(), {"delta.overwrite"}) is None


def test_a_witness_made_by_hand_offers_no_search() -> None:
    claim = made.claim(counterexample={**made.RECORD, "search": None})
    assert "Search again" not in dict(counterexample.lines(claim))
    assert "--search" in dict(counterexample.lines(made.claim(counterexample=made.RECORD)))["Search again"]


def test_terminal_and_latex_tell_the_same() -> None:
    claim = made.claim(counterexample=made.RECORD)
    shown, typeset = text.claim(claim), latex.document(claim)
    assert "By how much it fails: Exactly $16/25$." in shown
    assert "Shown by: softmax.simplex, softmax.fisher, delta.overwrite" in shown
    assert r"\item[By how much it fails] Exactly $16/25$." in typeset
    assert "The catch" not in text.claim(made.claim())
    assert r"\begin{description}" not in latex.document(made.claim())


def test_a_record_that_names_a_missing_witness_is_left_out(results: Path, tmp_path: Path) -> None:
    claim = made.claim("mal.formed", counterexample={**made.RECORD, "witness": ["nowhere"]})
    certificate.write(results / "claims" / "mal.formed.json", claim)
    assert "malformed" in Page(site.write(results, tmp_path / "out")).text


@pytest.mark.parametrize("change", [{"gap": 3}, {"witness": "one"}, {"more": "text"}])
def test_the_schema_knows_the_record(results: Path, tmp_path: Path, change: dict[str, object]) -> None:
    claim = made.claim("mal.formed", counterexample={**made.RECORD, **change})
    certificate.write(results / "claims" / "mal.formed.json", claim)
    assert "does not fit its schema at counterexample" in Page(site.write(results, tmp_path / "out")).text


def test_the_record_survives_the_certificate() -> None:
    settled = certificate.settled(made.claim(counterexample=made.RECORD))
    record = settled.claim.counterexample
    assert record is not None
    assert record.repaired_by == tuple(made.RECORD["repaired_by"])
    again = certificate.of_claim(settled, "counterexamples", "0" * 64, {})
    assert again["counterexample"] == made.RECORD
    assert "counterexample" not in certificate.of_claim(
        certificate.settled(made.claim()), "counterexamples", "0" * 64, {}
    )

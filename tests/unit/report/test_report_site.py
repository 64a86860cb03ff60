"""The report as a whole: pages, links, words, escaping, broken files, and the same bytes twice."""

import json
import os
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
import sealed_results as made

from verify.model import certificate
from verify.model.errors import RequestError
from verify.model.verdict import Verdict
from verify.report import site, words

VOID = {"meta", "link", "img", "br", "hr", "input"}


class Page(HTMLParser):
    """A page's links, ids, text and elements; refuses tags that do not match."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.links: list[str] = []
        self.loads: list[str] = []
        self.ids: list[str] = []
        self.text = ""
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self._open: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        assert not self._open, f"{path}: {self._open} left open"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        assert len(found) == len(attrs), f"{self.path}: <{tag}> has an attribute twice"
        self.tags.append(tag)
        self.attributes.extend(found)
        if tag not in VOID:
            self._open.append(tag)
        if tag == "img":
            assert found.get("alt"), f"{self.path}: an image without alternative text"
        if found.get("id"):
            self.ids.append(str(found["id"]))
        if tag == "a":
            self.links.append(str(found["href"]))
        self.loads.extend(str(found[name]) for name in ("src", "srcset", "data") if name in found)
        if tag == "link":
            self.loads.append(str(found["href"]))

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"{self.path}: </{tag}> closes nothing"
        assert self._open.pop() == tag, f"{self.path}: </{tag}> out of order"

    def handle_data(self, data: str) -> None:
        self.text += data


def pages(out: Path) -> Iterator[Page]:
    """All pages of a report."""
    return (Page(path) for path in sorted(out.rglob("*.html")))


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_every_certificate_has_its_page(report: Path) -> None:
    index = report / "index.html"
    made = {str(path.relative_to(report)) for path in report.rglob("*.html")}
    assert made == {
        "index.html",
        "misprints.html",
        "numbers.html",
        "claims/delta.overwrite.html",
        "claims/softmax.simplex.html",
        "certify/good/index.html",
        "certify/bad kernel/index.html",
    }
    linked = {unquote(link) for link in Page(index).links}
    assert made - {"index.html"} <= linked


def test_every_link_and_image_leads_somewhere_in_the_report(report: Path) -> None:
    known = {page.path.resolve(): page for page in pages(report)}
    for page in known.values():
        assert len(page.ids) == len(set(page.ids)), f"{page.path}: an id occurs twice"
        for link in (*page.links, *page.loads):
            place, part = urldefrag(link)
            target = (page.path.parent / unquote(place)).resolve() if place else page.path.resolve()
            assert target.is_file(), f"{page.path}: {link} leads nowhere"
            assert not part or part in known[target].ids, f"{page.path}: {link} has no such place"


def test_nothing_is_loaded_from_the_network(report: Path) -> None:
    for page in pages(report):
        assert not any("//" in place for place in page.loads)
        assert "script" not in page.tags
        assert not any(name.startswith("on") for name in page.attributes)
    css = (report / "style.css").read_text(encoding="utf-8")
    assert "url(" not in css
    assert "@import" not in css


def test_every_word_and_letter_is_explained(report: Path) -> None:
    text = Page(report / "index.html").text
    for verdict in Verdict:
        assert f"{words.VERDICTS[verdict].sign} {verdict}" in text
    for name in ("kernel-checked", "two solvers", "exact witness", "ball arithmetic", "computer algebra"):
        assert name in text
    assert "kernel-checked: not yet" in text


def test_misprints_and_kernels_are_on_the_overview(report: Path) -> None:
    page = Page(report / "index.html")
    assert "Statements that are wrong as printed" in page.text
    assert "(printed)" in page.text
    assert "0.31" in page.text
    assert "1 of 2" in page.text


def test_misprints_have_their_witness_and_repair(report: Path) -> None:
    page = Page(report / "misprints.html")
    assert "(printed)" in page.text
    assert "refuted" in page.text
    assert "The repair" in page.text
    assert "claims/delta.overwrite.html" in page.path.read_text(encoding="utf-8")


def test_the_same_results_give_the_same_bytes(results: Path, tmp_path: Path) -> None:
    site.write(results, tmp_path / "one")
    moved = tmp_path / "elsewhere"
    os.rename(results, moved)
    for path in moved.rglob("*"):
        os.utime(path, (1, 1))
    site.write(moved, tmp_path / "two")
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_markup_in_results_stays_text(results: Path, tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    texts = dict.fromkeys(("title", "remark", "source", "scope"), f"{hostile} $\\text{{{hostile}}}$ \"' &lt;")
    variable = [{"latex": rf"\href{{javascript:alert(1)}}{{x}} {hostile}", "domain": hostile}]
    certificate.write(
        results / "claims" / "hostile.claim.json",
        made.claim("hostile.claim", variables=variable, **texts),
    )
    kernel = made.kernel(
        summary=hostile, convention={"name": hostile, "mechanism": "gdn", "form": "x", hostile: [[hostile]]}
    )
    certificate.write(results / "certify" / "<script>x" / "certificate.json", kernel)
    site.write(results, tmp_path / "out")
    for page in pages(tmp_path / "out"):
        assert "script" not in page.tags
        assert not any(link.startswith("javascript:") for link in page.links)
        assert "href" not in [name for name in page.attributes if name == "xlink:href"]
    assert hostile in Page(tmp_path / "out" / "claims" / "hostile.claim.html").text


def damaged(results: Path) -> dict[str, str]:
    """Write one file of every kind of damage; returns a word of the reason for each."""
    good = (results / "claims" / "delta.overwrite.json").read_text(encoding="utf-8")
    claims = results / "claims"
    (claims / "cut.off.json").write_text(good[: len(good) // 2], encoding="utf-8")
    (claims / "edited.claim.json").write_text(good.replace("proved", "vacuous"), encoding="utf-8")
    (claims / "newer.claim.json").write_text(
        json.dumps({**json.loads(good), "version": 99}), encoding="utf-8"
    )
    (claims / "a.list.json").write_text("[1, 2]", encoding="utf-8")
    (claims / "nan.claim.json").write_text(
        good.replace('"version": 1', '"version": 1, "x": NaN'), encoding="utf-8"
    )
    (claims / "deep.claim.json").write_text("[" * 100_000, encoding="utf-8")
    (claims / "wrong.name.json").write_text(good, encoding="utf-8")
    certificate.write(claims / "no.fit.json", {**made.claim("no.fit"), "verdict": "certain"})
    certificate.write(claims / "no.kernel.json", made.kernel())
    malformed = made.item("state-collision", "E", {"query": ["1"], "first": 3})
    part = {
        "statement": "x",
        "refutes": False,
        "verdict": "proved",
        "word": "proved",
        "evidence": [malformed],
    }
    certificate.write(claims / "mal.formed.json", made.claim("mal.formed", parts=[part]))
    (results / "certify" / "crashed").mkdir()
    (results / "certify" / "unfinished").mkdir()
    (results / "certify" / "unfinished" / certificate.JOURNAL).touch()
    return {
        "claims/cut.off.json": "cut off",
        "claims/edited.claim.json": "edited",
        "claims/newer.claim.json": "upgrade",
        "claims/a.list.json": "not an attnproof certificate",
        "claims/nan.claim.json": "not a certificate",
        "claims/deep.claim.json": "not a certificate",
        "claims/wrong.name.json": "rename",
        "claims/no.fit.json": "schema at verdict",
        "claims/no.kernel.json": "belongs here",
        "claims/mal.formed.json": "malformed",
        "certify/crashed/certificate.json": "cannot be read",
        "certify/unfinished/certificate.json": "not finished: run it again with --resume",
    }


def test_broken_files_are_listed_and_kill_nothing(results: Path, tmp_path: Path) -> None:
    expected = damaged(results)
    index = site.write(results, tmp_path / "out")
    text = Page(index).text
    rows = text[text.index("Files left out") : text.index("Words, strongest first")].split("\n")
    for file, reason in expected.items():
        assert any(file in row and reason in row for row in rows), f"{file}: no «{reason}» in {rows}"
    assert f"{len(expected)} result files left out" in text
    assert str(tmp_path) not in index.read_text(encoding="utf-8")
    assert (tmp_path / "out" / "claims" / "delta.overwrite.html").exists()
    assert not (tmp_path / "out" / "claims" / "mal.formed.html").exists()


def test_an_earlier_report_is_replaced_and_nothing_else(results: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    site.write(results, out)
    (results / "claims" / "softmax.simplex.json").unlink()
    site.write(results, out)
    assert not (out / "claims" / "softmax.simplex.html").exists()
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "index.html").write_text("<h1>mine</h1>", encoding="utf-8")
    with pytest.raises(RequestError, match="holds no attnproof report"):
        site.write(results, mine)
    assert (mine / "index.html").read_text(encoding="utf-8") == "<h1>mine</h1>"


def test_a_folder_without_results_is_a_wrong_request(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="does not exist"):
        site.write(tmp_path / "nowhere", tmp_path / "out")
    with pytest.raises(RequestError, match="holds no results"):
        site.write(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_place_that_cannot_be_written_is_a_wrong_request(results: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(RequestError, match="cannot be written"):
        site.write(results, tmp_path / "file" / "out")


def test_a_class_without_output_is_named(results: Path, tmp_path: Path) -> None:
    silent = {**made.class_row("hangs", 0.0, "refuted"), "worst_ratio": None}
    cell = {**made.cell("hangs", [0.0], 0.0, "refuted"), "output": None}
    cell["problem"] = {"kind": "timeout", "message": "no answer in 60 s"}
    kernel = made.kernel("refuted", classes=[silent], cells=[cell])
    certificate.write(results / "certify" / "good" / "certificate.json", kernel)
    site.write(results, tmp_path / "out")
    page = Page(tmp_path / "out" / "certify" / "good" / "index.html")
    assert "timeout: no answer in 60 s" in page.text
    assert 'class="n heat-5">–' in page.path.read_text(encoding="utf-8")


def test_progress_reaches_the_end(results: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    site.write(results, tmp_path / "out", lambda done, total: told.append((done, total)))
    assert told == [(count, 7) for count in range(1, 8)]


def test_the_reproducer_is_shown_and_stays_inside_its_folder(results: Path, tmp_path: Path) -> None:
    site.write(results, tmp_path / "out")
    page = Page(tmp_path / "out" / "certify" / "bad kernel" / "index.html")
    assert "print('<broken>')" in page.text
    assert (tmp_path / "out" / "certify" / "bad kernel" / "reproduce.py").exists()
    outside = {
        **made.kernel("refuted")["reproducer"],
        "script": "../../claims/delta.overwrite.json",
    }
    certificate.write(
        results / "certify" / "sly" / "certificate.json", made.kernel("refuted", reproducer=outside)
    )
    site.write(results, tmp_path / "out")
    assert "is not in the results folder" in Page(tmp_path / "out" / "certify" / "sly" / "index.html").text
    assert [path.name for path in (tmp_path / "out" / "certify" / "sly").iterdir()] == ["index.html"]

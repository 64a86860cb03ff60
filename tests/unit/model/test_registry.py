"""The registry: ids read off paths, nearest names, and faults it must notice."""

from pathlib import Path

import pytest

from verify.model import registry
from verify.model.errors import RequestError


def test_no_fault_in_the_registry() -> None:
    assert registry.faults() == []


def test_an_unknown_id_names_the_nearest() -> None:
    with pytest.raises(
        RequestError, match=r"unknown claim 'gdn\.exact-detla'; did you mean gdn\.exact-delta"
    ):
        registry.find("gdn.exact-detla")


def _room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **files: str) -> None:
    topic = tmp_path / "planted_room" / "topic"
    topic.mkdir(parents=True)
    for folder in (topic.parent, topic):
        (folder / "__init__.py").write_text("", encoding="utf-8")
    for name, text in files.items():
        (topic / f"{name}.py").write_text(f'"""Title of {name}."""\n{text}', encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "ROOMS", ("planted_room",))


CLAIM = """
from verify.model.claim import Claim, Status
CLAIM = Claim({!r}, "t", "s", "A", Status.NEW, "all", (), (), "C", lambda: (), ())
"""


def test_ids_and_titles_come_from_paths_and_docstrings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _room(tmp_path, monkeypatch, two_words="", definition="", _helper="")
    assert [(e.id, e.title, e.module) for e in registry.entries()] == [
        ("topic.two-words", "Title of two_words", "planted_room.topic.two_words")
    ]


def test_every_kind_of_fault_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _room(tmp_path, monkeypatch, empty="", stray=CLAIM.format("topic.other"), bare=CLAIM.format("topic.bare"))
    wrong = "\n".join(registry.faults())
    assert "empty.py defines no CLAIM" in wrong
    assert "defines topic.other, but its place says topic.stray" in wrong
    assert "topic.bare has no mutant" in wrong

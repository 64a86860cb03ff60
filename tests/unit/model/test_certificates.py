"""Certificates: sealing, tampering, cut-off files, newer versions."""

import json
from pathlib import Path

import pytest

from verify.model import certificate
from verify.model.errors import ResultFileError

CERTIFICATE = {"format": certificate.CLAIM_FORMAT, "version": 1, "title": "τ"}


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "one.json"
    certificate.write(path, CERTIFICATE)
    assert {k: v for k, v in certificate.read(path).items() if k != "digest"} == CERTIFICATE


def test_an_edit_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    certificate.write(path, CERTIFICATE)
    path.write_text(path.read_text(encoding="utf-8").replace("τ", "t"), encoding="utf-8")
    with pytest.raises(ResultFileError, match="edited after it was sealed"):
        certificate.read(path)


def test_a_cut_off_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    certificate.write(path, CERTIFICATE)
    path.write_text(path.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    with pytest.raises(ResultFileError, match="cut off or not JSON"):
        certificate.read(path)


@pytest.mark.parametrize("version", [2, "1", None])
def test_an_unknown_version_is_refused(tmp_path: Path, version: object) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps({**CERTIFICATE, "version": version}), encoding="utf-8")
    with pytest.raises(ResultFileError, match="schema version"):
        certificate.read(path)


@pytest.mark.parametrize("text", ["[]", "3", '{"format": "something else"}'])
def test_other_json_is_not_a_certificate(tmp_path: Path, text: str) -> None:
    path = tmp_path / "one.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ResultFileError, match="not an attnproof certificate"):
        certificate.read(path)


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ResultFileError, match="cannot be read"):
        certificate.read(tmp_path / "none.json")

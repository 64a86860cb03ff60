"""Explained conventions: complete, readable, and the same again when read back."""

import dataclasses
import json
from pathlib import Path

import pytest

from verify.audit.convention.convention import Convention
from verify.audit.convention.declaration import Declaration
from verify.audit.convention.explanation import Explanation, split
from verify.audit.convention.file import presets
from verify.cli.certify import certify
from verify.model.errors import RequestError

REQUESTS = [
    f"{preset}:{part}"
    for preset in presets()
    for part in {
        entry.get("mechanism", Convention.tables(preset)[0].get("mechanism"))
        for entry in (Convention.tables(preset)[1] or {"": {}}).values()
    }
    | {name for name in Convention.tables(preset)[1] if ":" not in name}
]


@pytest.mark.parametrize("requested", sorted(REQUESTS))
def test_what_is_printed_reads_back_the_same(requested: str, tmp_path: Path) -> None:
    explanation = Explanation.of(requested)
    path = tmp_path / "mine.toml"
    path.write_text(explanation.toml(), encoding="utf-8")
    for function, convention in explanation.conventions().items():
        name = function.partition(":")[2] or function
        back = Convention.load(str(path), convention.mechanism, name or None)
        assert dataclasses.replace(back, name=convention.name) == convention
    assert Explanation.of(str(path)).toml().splitlines()[1:] == explanation.toml().splitlines()[1:]


def test_every_field_is_documented_or_of_no_use() -> None:
    text = Explanation.of("flashkda").toml()
    lines = [line.removeprefix("# ") for line in text.splitlines()]
    shown = {line.split(" = ")[0] for line in lines if " = " in line} | {"arguments", "extra", "name"}
    assert {field.name for field in dataclasses.fields(Declaration)} <= shown
    assert max(map(len, (line for line in text.splitlines() if line.startswith("# ")))) <= 160


def test_what_no_source_states_is_marked() -> None:
    text = Explanation.of("vllm:chunk_kda").toml()
    before = {line: text.splitlines()[i - 1] for i, line in enumerate(text.splitlines())}
    assert "NOT STATED" not in before['gate_space = "ln"']
    paragraphs = {p.splitlines()[-1]: p for p in text.split("\n\n")}
    assert "NOT STATED" in paragraphs["chunk_size = 64"]
    assert "NOT STATED" in paragraphs["# supports_empty = true"]
    assert "NOT STATED" not in paragraphs['state_layout = "VK"']
    entry = Explanation.of("vllm:chunk_kda").data()["functions"][0]
    assert {"chunk_size", "supports_empty"} <= set(entry["not_stated"])
    assert not {"gate_space", "state_layout", "overwrites"} & set(entry["not_stated"])
    assert entry["fields"]["overwrites"] == ("v",)


def test_a_preset_of_several_mechanisms_lists_them() -> None:
    text = Explanation.of("fla").text()
    assert "kda          naive_recurrent_kda, naive_chunk_kda" in text
    assert "attnproof certify --explain-convention fla:kda" in text
    assert len(Explanation.of("fla").data()["functions"]) == len(Convention.tables("fla")[1])
    assert Explanation.of("flashkda").text().startswith("# flashkda: FlashKDA")


@pytest.mark.parametrize(
    ("requested", "said"),
    [
        ("flaa", "unknown convention 'flaa'; did you mean fla"),
        ("fla:kdaa", "unknown mechanism or function of convention fla 'kdaa'; did you mean kda"),
        ("fla:chunk_kdaa", "did you mean chunk_kda"),
        ("missing.toml", "cannot be read"),
    ],
)
def test_unknown_names_are_answered_with_near_ones(requested: str, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        Explanation.of(requested)


def test_a_file_without_a_mechanism_takes_any(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("state_layout = 'VK'\n")
    assert split(f"{path}:gdn") == (str(path), "gdn")
    assert next(iter(Explanation.of(f"{path}:gdn").conventions().values())).mechanism == "gdn"
    with pytest.raises(RequestError, match="names no mechanism; ask for"):
        Explanation.of(str(path))


def test_the_command_prints_it_without_a_target(capsys: pytest.CaptureFixture[str]) -> None:
    assert certify(explain_convention="fla:naive_chunk_kda") == 0
    assert "length_multiple = 64" in capsys.readouterr().out
    assert certify(explain_convention="fla:naive_chunk_kda", json_output=True) == 0
    assert json.loads(capsys.readouterr().out)["functions"][0]["fields"]["length_multiple"] == 64
    with pytest.raises(RequestError, match="Missing argument 'TARGET'"):
        certify()
    with pytest.raises(RequestError, match="Missing option '--mechanism'"):
        certify("module:function")

"""Target names are read, or refused in one sentence."""

from pathlib import Path

import pytest

from verify.audit.subject.target import Target
from verify.model.errors import RequestError


def test_module_and_attribute_path() -> None:
    target = Target.parse("package.module:function.__wrapped__")
    assert (target.location, target.is_file) == ("package.module", False)
    assert (target.attribute, target.function) == ("function.__wrapped__", "function")


def test_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kernel.py").write_text("")
    monkeypatch.chdir(tmp_path)
    target = Target.parse("kernel.py:f")
    assert (target.location, target.is_file) == (str(tmp_path / "kernel.py"), True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("package.module", "no function after a colon"),
        (":f", "no function after a colon"),
        ("module:", "no function after a colon"),
        ("module:a b", "'a b' is not a function name"),
        ("my-module:f", "'my-module' is not a module name"),
        ("missing.py:f", "there is no file 'missing.py'"),
        ("some/folder:f", "there is no file 'some/folder'"),
    ],
)
def test_other_forms_are_refused(text: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        Target.parse(text)

"""Scripts that show a failure: at most 30 lines of valid Python, for every mechanism and convention."""

from pathlib import Path

import pytest

from verify.audit.case import Shape
from verify.audit.convention.convention import Convention
from verify.audit.convention.file import presets
from verify.audit.failure.reproduce import Reproducer
from verify.audit.gradient.functional import cotangent
from verify.audit.inputs.cells import cell_of
from verify.audit.mechanism import MECHANISMS
from verify.audit.subject.target import Target
from verify.model.errors import RequestError


def conventions(mechanism: str) -> list[Convention]:
    """Every preset that knows the mechanism."""
    found = []
    for name in presets():
        try:
            found.append(Convention.load(name, mechanism))
        except RequestError:
            continue
    return found


@pytest.mark.parametrize("mechanism", list(MECHANISMS))
def test_scripts_are_short_and_valid(mechanism: str, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text("def function(): ...\n")
    target = Target.parse(f"{tmp_path / 'kernel.py'}:function")
    case = cell_of("random", mechanism, Shape(1, 3, 1, 1, 4, 4), "float32", True, 1)
    known = conventions(mechanism)
    assert known or MECHANISMS[mechanism].weights
    for convention in known:
        shown = [
            Reproducer(case, "x"),
            Reproducer(case, "x", other=case, cut=1),
            Reproducer(case, "x", mutates=True),
        ]
        if convention.gradients != "none":
            shown.append(Reproducer(case, "x", functional=cotangent(case, True)))
        for reproducer in shown:
            script = reproducer.script(target, convention)
            compile(script, "reproduce.py", "exec")
            assert len(script.splitlines()) <= 30, convention.name

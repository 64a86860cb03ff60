"""Finding a target, and saying which code it stands for."""

import functools
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch

from verify.audit.subject.worker.identity import reaches_triton, substitutes
from verify.audit.subject.worker.lookup import CannotStart, describe, find, load_module
from verify.audit.subject.worker.tensors import mutation

FAULTY = Path(__file__).with_name("misbehaving.py")


@pytest.fixture(scope="module")
def faulty() -> ModuleType:
    spec = importlib.util.spec_from_file_location("misbehaving", FAULTY)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("misbehav", "has no 'misbehav'; did you mean misbehave?"),
        ("replaced.__wraped__", "misbehaving:replaced has no '__wraped__'"),
        ("not_a_function", "not_a_function is a int, not a function"),
    ],
)
def test_an_attribute_that_cannot_be_called(faulty: ModuleType, attribute: str, message: str) -> None:
    with pytest.raises(CannotStart) as refused:
        find(faulty, "misbehaving", attribute)
    assert message in str(refused.value)
    assert refused.value.kind == "request"


@pytest.mark.parametrize(
    ("module", "kind", "message"),
    [
        ("no_such_module.inner", "request", "has no module 'no_such_module'"),
        ("json.no_such_part", "request", "has no module 'json.no_such_part'"),
    ],
)
def test_a_module_that_is_not_there(module: str, kind: str, message: str) -> None:
    with pytest.raises(CannotStart) as refused:
        load_module(module, is_file=False)
    assert message in str(refused.value)
    assert refused.value.kind == kind


def test_a_module_whose_dependency_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "needs_another.py").write_text("import no_such_dependency")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(CannotStart, match=r"importing needs_another failed: .*no_such_dependency") as refused:
        load_module("needs_another", is_file=False)
    assert refused.value.kind == "environment"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "import no_such_dependency",
            "ModuleNotFoundError: No module named 'no_such_dependency' (broken.py:1)",
        ),
        ("x = 1\nraise SystemExit(3)", "SystemExit: 3 (broken.py:2)"),
        ("def f(:", "SyntaxError"),
    ],
)
def test_a_file_that_cannot_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, message: str
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "broken.py"
    path.write_text(source)
    with pytest.raises(CannotStart) as refused:
        load_module(str(path), is_file=True)
    assert message in str(refused.value)
    assert refused.value.kind == "environment"


def test_a_wrapper_over_another_function_is_told_from_a_plain_one(faulty: ModuleType) -> None:
    assert substitutes(faulty.replaced) == [faulty.implementation]
    assert substitutes(faulty.decorated) == []
    assert substitutes(faulty.implementation) == []


def test_triton_is_found_behind_helpers_classes_and_wrappers() -> None:
    kernel_type = type("JITFunction", (), {"__module__": "triton.runtime.jit"})
    scope: dict[str, object] = {"__name__": "somewhere", "kernel": kernel_type(), "functools": functools}
    exec(
        "def launch(x):\n    return kernel[1](x)\n"
        "class Function:\n    @staticmethod\n    def forward(x):\n        return [launch(y) for y in x]\n"
        "def public(x):\n    return (lambda: Function.forward(x))()\n"
        "def torch_code(x):\n    return functools.reduce(max, x)\n"
        "def wrap(f):\n    @functools.wraps(torch_code)\n    def wrapper(x):\n        return f(x)\n"
        "    return wrapper\n"
        "wrapped = wrap(public)\n",
        scope,
    )
    assert reaches_triton(scope["public"])
    assert reaches_triton(scope["wrapped"])
    assert reaches_triton(functools.partial(scope["public"], 1))  # type: ignore[arg-type]
    assert not reaches_triton(scope["torch_code"])
    assert not reaches_triton(torch.nn.functional.softmax)


def test_the_first_changed_element_is_named() -> None:
    before = {"a": torch.zeros(2, 3), "b": torch.zeros(2, 3, 2, dtype=torch.bfloat16)}
    after = {name: tensor.clone() for name, tensor in before.items()}
    assert mutation(before, after) is None
    after["b"][1, 2, 0] = 1.5
    after["b"][1, 2, 1] = 2.5
    assert mutation(before, after) == (
        "the target wrote into its input 'b': element [1, 2, 0] went from 0.0 to 1.5"
    )


def test_negative_zero_and_nan_count_by_their_bits() -> None:
    nan = {"a": torch.full((2,), torch.nan)}
    assert mutation(nan, {"a": nan["a"].clone()}) is None
    assert "from 0.0 to -0.0" in str(mutation({"a": torch.zeros(1)}, {"a": -torch.zeros(1)}))


def test_an_error_without_text_shows_its_line(faulty: ModuleType) -> None:
    try:
        faulty.misbehave(*[torch.zeros(1, 1, 1, 1)] * 5, 1.0, None, True, "assert")
    except AssertionError as error:
        said = describe(error)
    assert said.startswith("AssertionError: assert v.shape[1] == 0 (misbehaving.py:")

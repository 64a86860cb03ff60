"""Import directions, and nothing heavy before it is needed."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from verify.model import registry

ROOT = Path(__file__).parents[2]
HEAVY = ("sympy", "torch", "flint", "mpmath", "z3", "cvc5", "matplotlib", "jinja2", "numpy", "transformers")


def test_import_directions_hold() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "module", ["verify.cli", "verify.model.registry", "verify.numbers", "verify.recheck"]
)
def test_nothing_heavy_is_imported_early(module: str) -> None:
    code = f"import sys, {module}; print([n for n in {HEAVY!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_kernels_are_reached_by_name_only() -> None:
    """The audit may not import kernels or definitions by statement: agreement must stay evidence."""
    for path in (ROOT / "verify" / "audit").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "import kernels" not in text, path
        assert "from derivations" not in text, path


def test_claims_import_no_other_claim() -> None:
    """A claim's cached result is found by its own file and by what is not a claim."""
    modules = {entry.module for entry in registry.entries()}
    for entry in registry.entries():
        for node in ast.walk(ast.parse(entry.path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                named = {node.module, *(f"{node.module}.{item.name}" for item in node.names)}
                assert not named & modules, f"{entry.id} imports {named & modules}"


def test_every_module_says_what_it_is_for() -> None:
    for room in ("verify", "kernels", "derivations", "counterexamples"):
        for path in (ROOT / room).rglob("*.py"):
            assert path.read_text(encoding="utf-8").lstrip().startswith('"""'), path

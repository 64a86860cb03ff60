"""Importing the package, the vocabulary or the formats loads no heavy library."""

import subprocess
import sys

import pytest

HEAVY = {"flint", "mpmath", "sympy", "numpy", "torch"}


@pytest.mark.parametrize(
    ("module", "loaded"),
    [
        ("verify.numbers", set()),
        ("verify.numbers.protocol", set()),
        ("verify.numbers.triangular", set()),
        ("verify.numbers.dual", set()),
        ("verify.numbers.formats", set()),
        ("verify.numbers.exact", {"flint"}),
        ("verify.numbers.ball", {"flint"}),
        ("verify.numbers.float64", {"numpy"}),
        ("verify.numbers.multiprecision", {"mpmath"}),
    ],
)
def test_only_its_own_library_is_loaded(module, loaded):
    code = f"import {module}, sys; print(*({HEAVY!r} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(result.stdout.split()) == loaded

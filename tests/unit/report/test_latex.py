"""LaTeX documents: escaping, signs, and (where pdflatex is there) that they compile."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verify.model import registry
from verify.report import latex


def test_prose_is_escaped_and_formulas_are_not() -> None:
    assert latex.prose(r"50% of $a_1$ & τ_x") == r"50\% of $a_1$ \& \ensuremath{\tau}\_x"


def test_signs_in_formulas_become_commands() -> None:
    assert latex.formula("τ ≥ x²") == r"\ensuremath{\tau} \ensuremath{\ge} x\ensuremath{{}^{2}}"


@pytest.mark.parametrize("claim_id", [entry.id for entry in registry.entries()])
def test_every_sign_of_every_claim_is_known(
    claim_id: str, certified: Callable[[str], dict[str, Any]], tmp_path: Path
) -> None:
    """Whatever is not ASCII must have a spelling, or pdflatex would stop."""
    document = latex.document(certified(claim_id))
    assert [sign for sign in dict.fromkeys(document) if ord(sign) > 126] == []
    assert document.count(r"\begin{") == document.count(r"\end{")
    if shutil.which("pdflatex"):
        (tmp_path / "claim.tex").write_text(document, encoding="utf-8")
        done = subprocess.run(
            ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "claim.tex"],
            cwd=tmp_path,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-2000:].decode(errors="replace")

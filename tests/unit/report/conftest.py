"""A results folder to report on, and its report."""

from pathlib import Path

import pytest
from sealed_results import RECORD, claim, kernel

from verify.model import certificate
from verify.report import site


def fill(folder: Path) -> Path:
    """Two claims, two kernels and a reproducer."""
    certificate.write(folder / "claims" / "delta.overwrite.json", claim(counterexample=RECORD))
    other = claim(
        "softmax.simplex", room="derivations", status="V", verdict="bounded", asked="C", reached="C"
    )
    certificate.write(folder / "claims" / "softmax.simplex.json", other)
    certificate.write(folder / "certify" / "good" / "certificate.json", kernel())
    certificate.write(folder / "certify" / "bad kernel" / "certificate.json", kernel("refuted"))
    (folder / "certify" / "bad kernel" / "reproduce.py").write_text("print('<broken>')\n", encoding="utf-8")
    return folder


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A results folder to change."""
    return fill(tmp_path / "results")


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report on an unchanged results folder; to be read only."""
    folder = tmp_path_factory.mktemp("report")
    return site.write(fill(folder / "results"), folder / "out").parent

"""Certificates of the claims, settled once per test session and shared by all its processes."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from verify import prove

# Triton decides when it is imported whether kernels run on its interpreter, that is without a GPU.
os.environ["TRITON_INTERPRET"] = "1"


@pytest.fixture(scope="session")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Any]]:
    """The certificate of a claim, by id: computed anew in this session, then taken from its cache."""
    base = tmp_path_factory.getbasetemp()
    shared: Path = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def certificate(claim_id: str) -> dict[str, Any]:
        return prove.certify_claim(claim_id, shared / "claims")[0]

    return certificate

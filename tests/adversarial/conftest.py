"""Shared by the adversarial tests: one cache of predictions, one way to certify."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from verify.audit.certify import certify
from verify.audit.convention.convention import Convention

BROKEN = Path(__file__).parent / "broken"
CHUNK = 64
"""Tokens per chunk of the broken kernels that say nothing else."""


def as_broken(convention: Convention, **changes: Any) -> Convention:
    """Our convention for a broken kernel: chunks of its own size, no argument for it, no packed sequences.

    Nor gates of -inf, which would show another fault of kernels that subtract sums.
    """
    size = CHUNK if convention.form == "chunked" else convention.chunk_size
    return dataclasses.replace(
        convention,
        **{"cu_seqlens": "", "chunk_argument": "", "chunk_size": size, "gate_infinite": False} | changes,
    )


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """Predictions are thousands of small operations: more threads only wait for one another."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("predictions")


@pytest.fixture
def certified(cache: Path, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """``certify`` with the shared cache, writing reproducers to ``tmp_path``."""

    def run(target: str, mechanism: str, convention: Any = "ours", **options: Any) -> dict[str, Any]:
        return certify(target, mechanism, convention, cache=cache, folder=tmp_path, **options)

    return run

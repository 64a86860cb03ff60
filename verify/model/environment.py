"""Where a result was made: versions, platform and commit, for certificates."""

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

PACKAGES = (
    "sympy",
    "mpmath",
    "python-flint",
    "z3-solver",
    "cvc5",
    "numpy",
    "torch",
    "transformers",
    "flash-linear-attention",
    "triton",
)
"""Distributions whose versions are recorded when they are installed."""


def version(distribution: str) -> str | None:
    """The installed version of a distribution, or ``None``."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def describe(seed: int) -> dict[str, Any]:
    """Versions, platform, commit of the working copy (``None`` outside one) and the seed."""
    packages = {name: version(name) for name in PACKAGES}
    return {
        "attnproof": version("attnproof"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: found for name, found in packages.items() if found},
        "commit": _commit(),
        "seed": seed,
    }


def _commit() -> str | None:
    here = Path(__file__).parent
    command = ["git", "-C", str(here), "rev-parse", "--short=12", "HEAD"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None


def cache_folder() -> Path:
    """Where earlier results are kept: ``ATTNPROOF_CACHE``, or ``attnproof`` in the user's cache folder."""
    given = os.environ.get("ATTNPROOF_CACHE")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "attnproof"


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

"""Options that several commands share, and where results and caches live by default."""

import os
from pathlib import Path
from typing import Annotated

import typer

Results = Annotated[Path, typer.Option(help="Folder the certificates are written to or read from.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of text.")]
Cores = Annotated[int, typer.Option("-j", "--jobs", min=1, help="Processes to use.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Compute everything anew; ignore the cache.")]

RESULTS = Path("attnproof-results")
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""Processors this process may use."""


def cache_folder() -> Path:
    """Where earlier results are kept: ``ATTNPROOF_CACHE``, or ``attnproof`` in the user's cache folder."""
    given = os.environ.get("ATTNPROOF_CACHE")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "attnproof"

"""Options that several commands share, and where results and caches live by default."""

from pathlib import Path
from typing import Annotated

import typer

from verify.model.environment import processors

Results = Annotated[Path, typer.Option(help="Folder the certificates are written to or read from.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of text.")]
Cores = Annotated[int, typer.Option("-j", "--jobs", min=1, help="Processes to use.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Compute everything anew; ignore the cache.")]

RESULTS = Path("attnproof-results")
CORES = processors()

"""``attnproof report``: turn a folder of certificates into a static site."""

from pathlib import Path
from typing import Annotated

import typer

from verify.cli.options import RESULTS, Results
from verify.model.errors import RequestError

Out = Annotated[Path, typer.Option(help="Folder the site is written to.")]


def report(results: Results = RESULTS, out: Out = Path("attnproof-report")) -> int:
    """Write the report: one folder with an index.html that opens from disk, without network.

    A pure function of the certificates under --results: a page per claim, per counterexample and per
    certified kernel, and an overview of what is proved how.
    """
    if not results.is_dir():
        raise RequestError(f"{results} is not a folder; run attnproof prove, refute or certify first")
    from verify.report import site

    print(f"report: {site.write(results, out)}")
    return 0

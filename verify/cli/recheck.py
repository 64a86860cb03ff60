"""``attnproof recheck``: verify certificates again, without the engines that made them."""

from pathlib import Path
from typing import Annotated

import typer

from verify.cli.options import CORES, Cores
from verify.model.errors import RequestError, ResultFileError

Paths = Annotated[
    list[Path] | None,
    typer.Argument(help="Certificates, or folders of certificates; attnproof-results when omitted."),
]


def recheck(paths: Paths = None, jobs: Cores = CORES) -> int:
    """Re-verify certificates without the engines.

    Checks that a file is whole and unedited, fits its schema, that its verdicts follow from its evidence and
    its sentences are those of the claim, and lets the small independent checkers judge the evidence again.
    Exit code 1 if any certificate fails.
    """
    from verify.recheck import recheck_all

    files = _files(paths or [Path("attnproof-results")])
    failed = broken = 0
    for path, outcome in recheck_all(files, jobs):
        if isinstance(outcome, ResultFileError):
            print(f"unusable  {outcome}")
            broken += 1
            continue
        failed += bool(outcome.faults)
        print(f"{'FAILS' if outcome.faults else 'holds':<9} {path}: {outcome.summary}")
        for fault in outcome.faults:
            print(f"          {fault}")
    counted = f"{len(files)} certificate{'s' * (len(files) != 1)}"
    print(f"{counted}: {len(files) - failed - broken} hold, {failed} fail, {broken} unusable")
    return 1 if failed else 2 if broken else 0


def _files(paths: list[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(
                file
                for file in path.rglob("*.json")
                if file.resolve().parent.name == "claims" or file.name == "certificate.json"
            )
        elif path.exists():
            found.append(path)
        else:
            raise RequestError(f"{path} does not exist; give a certificate or a folder of certificates")
    if not found:
        places = ", ".join(map(str, paths))
        raise RequestError(f"no certificates under {places}; run attnproof prove, refute or certify first")
    return found

"""Finished certificates, found again as long as nothing they depend on has changed."""

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verify.audit.certify import certification
from verify.audit.failure.reproduce import DATA, SCRIPT
from verify.audit.record.depends import depends
from verify.audit.record.journal import NAME, Say
from verify.audit.request import Request
from verify.audit.steps import Progress
from verify.audit.subject.worker.sources import fingerprint
from verify.model import certificate, digest
from verify.model.errors import ResultFileError
from verify.model.verdict import Verdict

_CERTIFICATE, _SOURCES = "certificate.json", "sources.json"
_PASSING_TROUBLE = ("timeout", "memory", "killed")
"""Problems that a busy machine may cause: a certificate with one is not kept."""


def certified(
    request: Request,
    folder: Path,
    *,
    cache: Path | None,
    resume: bool = False,
    jobs: int = 1,
    progress: Progress | None = None,
    say: Say = lambda sentence: None,
) -> tuple[dict[str, Any], bool]:
    """The sealed certificate, written to ``folder``, and whether it was made earlier.

    Args:
        request: what is asked for.
        folder: where certificate, reproducer and, until it is finished, the journal lie.
        cache: folder of earlier certificates and predictions; None to compute everything anew.
        resume: whether to take over what an interrupted certification left in ``folder``.
        jobs: see `verify.audit.certify.certification`.
        progress: told about every step.
        say: told what the user should know.

    Raises:
        RequestError: an unknown name, or a class the convention has no cells for.
        EnvironmentProblem: the kernel cannot be imported or cannot run on this machine.
    """
    kept = cache / "certificates" / digest.of_json(depends(request)) if cache else None
    if kept is not None and (data := _unchanged(kept)) is not None:
        _place(kept, folder, data)
        return data, True
    made = certification(
        request,
        cache=cache,
        folder=folder,
        journal=folder / NAME,
        resume=resume,
        jobs=jobs,
        progress=progress,
        say=say,
    )
    data = certificate.seal(made.data)
    certificate.write(folder / _CERTIFICATE, data)
    if data["reproducer"] is None:
        _remove_reproducer(folder)
    if kept is not None and made.sources is not None and _lasting(data):
        _keep(kept, folder, made.sources)
    made.journal.discard()
    return data, False


def _unchanged(kept: Path) -> dict[str, Any] | None:
    """The certificate kept there, when every file the kernel was read from is as it was."""
    try:
        sources = json.loads((kept / _SOURCES).read_text("utf-8"))
        data = certificate.read(kept / _CERTIFICATE)
    except (OSError, ValueError, ResultFileError):
        return None
    named = data["reproducer"] is None or all((kept / name).is_file() for name in (SCRIPT, DATA))
    return data if named and all(fingerprint(path) == mark for path, mark in sources.items()) else None


def _lasting(data: Mapping[str, Any]) -> bool:
    """Whether the same run would give the same certificate: nothing undecided, no trouble that passes."""
    found = [cell["problem"]["kind"] for cell in (*data["cells"], *data["gradients"]) if cell["problem"]]
    return data["verdict"] != Verdict.UNDECIDED and not any(kind in _PASSING_TROUBLE for kind in found)


def _keep(kept: Path, folder: Path, sources: Mapping[str, str]) -> None:
    """Copy certificate and reproducer; never seen half done."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=kept.parent))
    for name in (_CERTIFICATE, SCRIPT, DATA):
        if (folder / name).is_file():
            shutil.copyfile(folder / name, partial / name)
    (partial / _SOURCES).write_text(json.dumps(sources), encoding="utf-8")
    shutil.rmtree(kept, ignore_errors=True)
    try:
        os.replace(partial, kept)
    except OSError:
        # Another process kept the same one in between.
        shutil.rmtree(partial)


def _place(kept: Path, folder: Path, data: dict[str, Any]) -> None:
    certificate.write(folder / _CERTIFICATE, data)
    _remove_reproducer(folder)
    for name in (SCRIPT, DATA) if data["reproducer"] is not None else ():
        shutil.copyfile(kept / name, folder / name)


def _remove_reproducer(folder: Path) -> None:
    """A script of an earlier certification shows nothing of this one."""
    for name in (SCRIPT, DATA):
        (folder / name).unlink(missing_ok=True)

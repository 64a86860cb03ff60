"""Where Coq's compiled modules are, and how ``coqc`` is run: shared by the engine and the checker."""

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from verify.model import registry
from verify.model.environment import cache_folder
from verify.model.errors import EnvironmentProblem

TIME_LIMIT_S = 900
"""Seconds for one run of Coq; the whole build takes a few minutes at most."""


@cache
def version() -> str:
    """The version of the Coq that is installed.

    Raises:
        EnvironmentProblem: there is none.
    """
    if shutil.which("coqc") is None or shutil.which("coq_makefile") is None:
        raise EnvironmentProblem(
            "Coq is not installed, so this claim is not kernel-checked; on Debian run: apt-get install coq "
            "libcoq-mathcomp-algebra libcoq-coquelicot libcoq-flocq libcoq-interval"
        )
    done = subprocess.run(["coqc", "--print-version"], capture_output=True, text=True, check=True)
    return done.stdout.split()[0]


def sources() -> dict[str, Path]:
    """Every Coq source of the claims, by its path from the folder above the rooms."""
    found = {}
    for room in registry.ROOMS:
        place = registry.room_path(room)
        for path in sorted(place.rglob("*.v")):
            found[f"{room}/{path.relative_to(place).as_posix()}"] = path
    return found


@cache
def sources_digest() -> str:
    """Hash of all Coq sources, names included."""
    total = hashlib.sha256()
    for name, path in sources().items():
        total.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def folder() -> Path:
    """The build folder of this copy of the claims with this version of Coq."""
    place = hashlib.sha256(str(registry.room_path(registry.ROOMS[0]).resolve()).encode()).hexdigest()[:12]
    return cache_folder() / "coq" / f"{version()}-{place}"


def path_of(module: str) -> str:
    """The path of a module, without suffix, from the folder above the rooms."""
    return module.split(".", 1)[1].replace(".", "/")


@contextmanager
def locked() -> Iterator[Path]:
    """The build folder, held by one process at a time."""
    place = folder()
    place.mkdir(parents=True, exist_ok=True)
    with (place / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield place


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run one of Coq's tools; its output is text."""
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=TIME_LIMIT_S)

"""Claims found by walking the folders: no list to edit, and a check that ids and files agree both ways."""

import importlib
import importlib.util
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from verify.model.claim import Claim
from verify.model.errors import EnvironmentProblem, unknown_name

ROOMS = ("derivations", "counterexamples")
"""The packages whose ``TOPIC/name.py`` files are claims."""


@dataclass(frozen=True)
class Entry:
    """A claim's place, known without importing it.

    Attributes:
        id: ``topic.name``, read off the path.
        title: first line of the module's docstring.
        room: the package it lives in.
        path: the file.
    """

    id: str
    title: str
    room: str
    path: Path

    @property
    def module(self) -> str:
        """Dotted name to import."""
        return f"{self.room}.{self.path.parent.name}.{self.path.stem}"


def room_path(room: str) -> Path:
    """The folder of one of the top-level packages."""
    spec = importlib.util.find_spec(room)
    if spec is None or not spec.submodule_search_locations:
        raise EnvironmentProblem(f"the package {room!r} is not importable; reinstall attnproof")
    return Path(next(iter(spec.submodule_search_locations)))


def entries(room: str | None = None) -> list[Entry]:
    """Every claim of a room (or of all), by id. Files whose name starts with ``_`` are not claims."""
    found = []
    for name in [room] if room else ROOMS:
        for path in sorted(room_path(name).glob("*/*.py")):
            if path.stem != "definition" and not path.stem.startswith("_"):
                found.append(_entry(name, path))
    return sorted(found, key=lambda entry: entry.id)


@cache
def _entry(room: str, path: Path) -> Entry:
    # Parsing each file would make `attnproof list` slow; every module starts with its docstring.
    with path.open(encoding="utf-8") as file:
        title = file.readline().strip().strip('"').rstrip(".")
    return Entry(f"{path.parent.name}.{path.stem.replace('_', '-')}", title, room, path)


def find(claim_id: str) -> Entry:
    """The entry of one claim.

    Raises:
        RequestError: no claim has that id; names the nearest ones.
    """
    known = {entry.id: entry for entry in entries()}
    if claim_id not in known:
        raise unknown_name("claim", claim_id, known)
    return known[claim_id]


@cache
def load(claim_id: str) -> Claim:
    """Import one claim."""
    module = importlib.import_module(find(claim_id).module)
    claim: Claim = module.CLAIM
    return claim


def faults() -> list[str]:
    """What is wrong with the registry: ids used twice, files without their claim, claims without mutants."""
    listed = entries()
    count = Counter(entry.id for entry in listed)
    wrong = [f"{claim_id} is the id of {times} files" for claim_id, times in count.items() if times > 1]
    for entry in listed:
        claim = getattr(importlib.import_module(entry.module), "CLAIM", None)
        if not isinstance(claim, Claim):
            wrong.append(f"{entry.path} defines no CLAIM")
        elif claim.id != entry.id:
            wrong.append(f"{entry.path} defines {claim.id}, but its place says {entry.id}")
        elif not claim.mutants:
            wrong.append(f"{claim.id} has no mutant")
    return wrong

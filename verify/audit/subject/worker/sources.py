"""Which files the running code was read from, and whether they are still the same."""

from __future__ import annotations

import hashlib
import os
import sys

_OWN = "_attnproof_worker"
_BESIDE = {
    ".cu",
    ".cuh",
    ".c",
    ".cc",
    ".cpp",
    ".h",
    ".hpp",
    ".hip",
    ".inl",
    ".metal",
    ".ptx",
    ".cubin",
    ".so",
}


def fingerprint(path: str) -> str:
    """A hash of a Python source; size and time of change of any other file; ``""`` where there is none."""
    try:
        if path.endswith(".py"):
            with open(path, "rb") as file:
                return hashlib.sha256(file.read()).hexdigest()
        found = os.stat(path)
    except OSError:
        return ""
    return f"{found.st_size} bytes, {found.st_mtime_ns}"


def sources(home: str) -> dict[str, str]:
    """By file, the fingerprints of everything imported so far but the standard library.

    With it the interpreter, and what the folder ``home`` holds in other languages, to be compiled later.
    """
    files = {os.path.realpath(sys.executable)}
    for name, loaded in list(sys.modules.items()):
        file = getattr(loaded, "__file__", None)
        top = name.split(".")[0]
        if isinstance(file, str) and top not in sys.stdlib_module_names and top != _OWN:
            files.add(os.path.abspath(file))
    files.update(os.path.join(home, name) for name in os.listdir(home) if _is_source(name))
    return {file: mark for file in sorted(files) if (mark := fingerprint(file))}


def _is_source(name: str) -> bool:
    return os.path.splitext(name)[1] in _BESIDE

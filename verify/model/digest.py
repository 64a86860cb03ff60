"""Content hashes: canonical JSON, files and folders."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def canonical(value: Any) -> str:
    """JSON text with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def of_json(value: Any) -> str:
    """SHA-256 of a JSON value, in hexadecimal."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def of_file(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def of_sources(roots: Iterable[Path]) -> str:
    """SHA-256 over the Python sources and data files below some folders, names included."""
    total = hashlib.sha256()
    for root in roots:
        files = [root] if root.is_file() else sorted(root.rglob("*"))
        for path in files:
            if path.suffix in {".py", ".json", ".toml", ".smt2"} and "__pycache__" not in path.parts:
                total.update(f"{path.name}\0{of_file(path)}\n".encode())
    return total.hexdigest()

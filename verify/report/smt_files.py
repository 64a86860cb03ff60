"""The statements of a claim that SMT solvers decide, one SMT-LIB 2 file each: the very text they read."""

from pathlib import Path
from typing import Any


def write(data: dict[str, Any], folder: Path) -> list[Path]:
    """Write ``CLAIM-NUMBER.smt2`` for every SMT statement of a certificate, in its order."""
    found = [item for part in data["parts"] for item in part["evidence"] if item["kind"] == "smt"]
    paths = []
    for number, item in enumerate(found, 1):
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{data['id']}-{number}.smt2"
        path.write_text(_header(data, item) + item["data"]["smtlib"], encoding="utf-8")
        paths.append(path)
    return paths


def _header(data: dict[str, Any], item: dict[str, Any]) -> str:
    told = (
        f"claim: {data['id']}, {data['title']}",
        f"statement: {item['label']}",
        f"expected: {item['data']['expect']}",
    )
    return "".join(f"; {' '.join(line.split())}\n" for line in told)

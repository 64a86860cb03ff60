"""Every claim of the registry has its row on the overview and its page in the report."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from verify.model import certificate, registry
from verify.report import site


def test_every_claim_has_a_row_and_a_page(certified: Callable[[str], dict[str, Any]], tmp_path: Path) -> None:
    ids = [entry.id for entry in registry.entries()]
    for claim_id in ids:
        certificate.write(tmp_path / "results" / "claims" / f"{claim_id}.json", certified(claim_id))
    overview = site.write(tmp_path / "results", tmp_path / "out").read_text(encoding="utf-8")
    assert [name for name in ids if f'href="claims/{name}.html"' not in overview] == []
    assert [name for name in ids if not (tmp_path / "out" / "claims" / f"{name}.html").is_file()] == []

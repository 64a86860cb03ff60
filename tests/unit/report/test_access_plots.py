"""The figure of counted reads shows the runs of the certificate, and nothing that was refuted."""

from collections.abc import Callable
from typing import Any

import pytest
import sealed_results as made

from verify.report import access_plots


def counted(label: str, *reads: int, **change: int) -> dict[str, Any]:
    one = {"generated": 1, "branches": 0, "draft": 1, "kept": 0, "written": 0, **change}
    runs = [{**one, "prompt": 10**place - 1, "read": read} for place, read in enumerate(reads, start=1)]
    data = {"scheme": "cache", "sizes": {"token": 1}, "runs": runs}
    return {**made.item("access-count", "E", data), "label": label}


def holding(*items: dict[str, Any]) -> dict[str, Any]:
    part = {**made.claim()["parts"][0], "evidence": list(items)}
    return made.claim("memory.access-model", parts=[part])


def test_every_kind_is_told_with_its_last_count() -> None:
    (plot,) = access_plots.reads(holding(counted("cache: one token", 10, 100), counted("state: one", 7, 8)))
    assert plot.alt == "Numbers read per token: cache: 100 at 100; state: 8 at 100."
    assert "access-count" in plot.caption
    assert "cache" in plot.svg
    assert "state" in plot.svg


@pytest.mark.parametrize("change", [{"generated": 2}, {"branches": 1}, {"draft": 2}], ids=str)
def test_longer_runs_are_not_drawn(change: dict[str, int]) -> None:
    assert access_plots.reads(holding(counted("cache: one token", 10, 100, **change))) == []


def test_what_was_refuted_is_not_drawn() -> None:
    refuted = {**counted("cache: one token", 10, 100), "verdict": "refuted"}
    assert access_plots.reads(holding(refuted)) == []
    assert access_plots.reads(holding(counted("cache: one token", 10))) == []


def test_the_claim_still_has_what_the_figure_needs(certified: Callable[[str], dict[str, Any]]) -> None:
    (plot,) = access_plots.reads(certified("memory.access-model"))
    for kind in ("cache", "window", "top-k", "pooled", "state", "cache of width 6"):
        assert f"{kind}: " in plot.alt
    assert "state: 64 at 4096" in plot.alt

"""A slice of the soundness campaign, and that it notices what lies beyond the bound."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

import bench_soundness as bench
from soundness_page import page

SEED = 11


def test_two_hundred_cells_lie_within_the_rigorous_bound() -> None:
    entries = []
    while sum(entry["cells"] for entry in entries) < 200:
        number = len(entries)
        entries.append(bench.check(bench.plan(SEED, number, batch=8), sigma=number == 2))
    assert all(entry["contradicted"] == entry["undecided"] == entry["unbounded"] == 0 for entry in entries)
    assert all(entry["confirmed"] == rows(entry) for entry in entries)
    assert max(x for entry in entries for x in entry["directed"] or [0]) <= 1
    assert len({(entry["mechanism"], entry["form"]) for entry in entries}) > 6
    text = page(entries, SEED)
    assert "beyond it: **0**; left open: 0" in text
    assert f"{sum(entry['cells'] for entry in entries)} cells" in text


def rows(entry: dict) -> int:
    return entry["cells"] * (entry["shape"]["T"] + bench.named(entry["mechanism"]).stateful)


def test_a_kernel_beyond_the_bound_is_contradicted() -> None:
    plans = (bench.plan(SEED, number, batch=2) for number in range(99))
    plans = (p for p in plans if p.algorithm.form == "chunked" and p.dtype == "float32")
    # With a scale of 0 what is beyond the bound is still too small for the balls' precision.
    batch = next(p for p in plans if p.kind.scale)

    def wrong(case, algorithm):
        output, state = bench.ours(case, algorithm)
        bound = bench.worst_case(case, bench.float64_reference(case), algorithm)
        output[1, -1, 0, 0] += 2.1 * bound.output[1, -1, 0]
        return output, state

    entry = bench.check(batch, wrong, sigma=False)
    assert (entry["contradicted"], entry["confirmed"]) == (1, rows(entry) - 1)
    assert max(entry["over_bound"]) > 1
    assert "beyond it: **1**" in page([entry], SEED)


def test_batches_that_are_done_are_not_run_again(tmp_path, monkeypatch) -> None:
    first = bench.campaign(20, SEED, tmp_path)
    monkeypatch.setattr(bench, "check", lambda *_, **__: (_ for _ in ()).throw(AssertionError("ran again")))
    assert bench.campaign(20, SEED, tmp_path) == first
    assert all(np.isfinite(entry["over_bound"]).all() for entry in first)

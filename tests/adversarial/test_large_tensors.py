"""Index arithmetic: refuted where an offset wraps, checked, or not checked with the reason."""

import dataclasses
from pathlib import Path

import pytest
from conftest import BROKEN

from verify.audit.bench import Bench
from verify.audit.convention.convention import Convention
from verify.audit.laboratory import Laboratory
from verify.audit.properties.basic import Property
from verify.audit.properties.large_tensors import index_arithmetic
from verify.audit.subject.process import Subject
from verify.audit.subject.target import Target
from verify.model.verdict import Verdict


def looked_at(target: str, mechanism: str, convention: str | Convention = "ours") -> Property:
    if not isinstance(convention, Convention):
        convention = Convention.load(convention, mechanism, target)
    with Subject(Target.parse(target), convention) as subject:
        return index_arithmetic(Laboratory(subject, Bench(convention, 1), "float32"))


BODY = """
def attend(query, key, value, *, scale, is_causal, enable_gqa, fault):
    if fault == "looks":
        assert query.abs().max().item() < 9
    n = (2**31 - 1) // value[0].numel() if fault == "cut" else len(query)
    return value[:n] * scale
"""


def test_shapes_are_checked_without_memory(tmp_path: Path) -> None:
    """A batch cut where 32 bits end is a risk; a kernel that looks at numbers cannot be asked."""
    (tmp_path / "large.py").write_text(BODY)
    sdpa = dataclasses.replace(Convention.load("sdpa", "softmax"), grouped_heads=False)
    found = {}
    with Subject(Target.parse(f"{tmp_path / 'large.py'}:attend"), sdpa) as subject:
        for fault in ("none", "cut", "looks"):
            subject.convention = dataclasses.replace(sdpa, extra={**sdpa.extra, "fault": fault})
            found[fault] = index_arithmetic(Laboratory(subject, Bench(sdpa, 1), "float32"))
    assert found["none"].verdict is Verdict.SAMPLED
    assert found["none"].detail.startswith("shapes alone, on tensors without memory, B = ")
    assert found["cut"].verdict is None
    assert found["cut"].detail.startswith("at risk: shapes alone")
    assert found["looks"].verdict is None
    assert "does not run on tensors without memory" in found["looks"].detail
    assert "item" in found["looks"].detail


@pytest.mark.peers
def test_offsets_of_our_triton_kernels_are_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    ours = looked_at("kernels.softmax.triton_tiled:triton_softmax", "softmax")
    assert ours.verdict is Verdict.SAMPLED
    assert "Triton functions that calls launch read" in ours.detail


SCALED = f"""
import sys
sys.path.insert(0, "{BROKEN}")
from narrow_rows import scaled

def attend(query, key, value, *, scale, is_causal, enable_gqa):
    return scaled(value, scale)
"""


@pytest.mark.peers
def test_a_narrow_offset_is_refuted_where_it_first_wraps(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """512 sequences of 512 tokens and 64 heads of 128 are 2^31 elements: the last one still has a number."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    (tmp_path / "scaled.py").write_text(SCALED)
    sdpa = dataclasses.replace(Convention.load("sdpa", "softmax"), grouped_heads=False)
    found = looked_at(f"{tmp_path / 'scaled.py'}:attend", "softmax", sdpa)
    assert found.verdict is Verdict.REFUTED
    assert found.finding is not None
    assert found.detail.startswith("B = 512, T = 513, H = 64, K = 128, V = 128, 16.0 GiB in the tensors")
    assert "broken/narrow_rows.py:21 (q + place) gives" in found.detail
    assert found.finding.evidence.endswith("at T = 512 nothing wraps")
    last = 513 * 512 * 64 * 128 - 1
    assert f"loads q at element {last:,}, which is there" in found.detail
    assert found.detail.endswith(f"gives {last - 2**32:,}")

"""Index arithmetic is checked, at risk or not checked, with the reason; it refutes nothing."""

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
def test_triton_source_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    ours = looked_at("kernels.gdn.triton_recurrent:triton_recurrent_gdn", "gdn")
    assert ours.verdict is Verdict.SAMPLED
    assert "Triton functions read" in ours.detail
    convention = Convention.load("ours", "gdn", "x:recurrent_gdn")
    planted = looked_at(f"{BROKEN / 'narrow_offsets'}.py:recurrent_gdn", "gdn", convention)
    assert planted.verdict is None
    assert planted.detail.startswith("at risk: 32-bit offsets may overflow in broken/narrow_offsets.py:")
    assert planted.detail.count("narrow_offsets.py") == 1
    assert "x + tl.program_id(0) * stride" in planted.detail

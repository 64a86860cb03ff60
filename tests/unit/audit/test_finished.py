"""Finished certificates: found again while nothing changed, made anew when anything did."""

import dataclasses
import json
import os
import sys
from pathlib import Path

import pytest

from verify.audit.certify import Certification
from verify.audit.convention.convention import Convention
from verify.audit.failure.reproduce import DATA, SCRIPT
from verify.audit.inputs.probes import probe
from verify.audit.record import depends as dependencies
from verify.audit.record import finished
from verify.audit.record.journal import Journal
from verify.audit.request import Request
from verify.audit.subject.process import Subject
from verify.audit.subject.target import Target
from verify.audit.subject.worker.sources import fingerprint, sources

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))
import sealed_results as made

REQUEST = Request("kernels.gdn.chunked:chunked_gdn", "gdn")


@pytest.fixture
def certify(monkeypatch, tmp_path):
    """`certified` with a certification that only counts; its kernel is one file, ``kernel.py``."""
    kernel = tmp_path / "kernel.py"
    kernel.write_text("one")
    state = {
        "runs": 0,
        "data": made.kernel(gradients=[]),
        "sources": lambda: {str(kernel): fingerprint(str(kernel))},
    }

    def certification(request, *, folder, **options):
        state["runs"] += 1
        if state["data"]["reproducer"]:
            folder.mkdir(parents=True, exist_ok=True)
            for name in (SCRIPT, DATA):
                (folder / name).write_text(name)
        return Certification(state["data"], state["sources"](), Journal(None, {}, False, print))

    monkeypatch.setattr(finished, "certification", certification)

    def go(request=REQUEST, folder="out", cache="cache"):
        runs = state["runs"]
        where = tmp_path / cache if cache else None
        data, cached = finished.certified(request, tmp_path / folder, cache=where)
        assert cached == (state["runs"] == runs)
        assert json.loads((tmp_path / folder / "certificate.json").read_text()) == data
        return cached

    go.state, go.kernel, go.folder = state, kernel, tmp_path
    return go


def test_the_second_time_nothing_runs(certify):
    assert [certify(), certify(), certify(folder="elsewhere")] == [False, True, True]


def test_a_changed_source_is_certified_again(certify):
    certify()
    certify.kernel.write_text("two")
    assert [certify(), certify()] == [False, True]
    certify.kernel.unlink()
    assert not certify()


def test_a_source_with_a_new_date_is_the_same(certify):
    certify()
    os.utime(certify.kernel, (1, 1))
    assert certify()


@pytest.mark.parametrize(
    "change",
    [
        {"target": "kernels.gdn.chunked:chunked_gdn.__wrapped__"},
        {"dtype": "bfloat16"},
        {"budget": "standard"},
        {"seed": 1},
        {"python": sys.executable},
        {"time_limit_s": 61.0},
        {"memory_limit_gib": 7.0},
        {"classes": ("integer",)},
        {"gradients": True},
    ],
)
def test_another_request_is_another_certificate(certify, change):
    certify()
    assert not certify(dataclasses.replace(REQUEST, **change))
    assert certify()


def test_a_convention_counts_by_what_it_says(certify):
    convention = Convention.load("ours", "gdn", REQUEST.target)
    certify()
    assert certify(dataclasses.replace(REQUEST, convention=convention))
    assert not certify(
        dataclasses.replace(
            REQUEST, convention=dataclasses.replace(convention, form="recurrent", chunk_size=None)
        )
    )


def test_every_part_of_a_request_is_in_its_hash():
    # A loaded convention: one that is named is read for one mechanism and function alone.
    request = dataclasses.replace(REQUEST, convention=REQUEST.loaded())
    other = {
        "target": "a:b",
        "mechanism": "kda",
        "convention": dataclasses.replace(REQUEST.loaded(), summary="other"),
        "dtype": "float16",
        "budget": "thorough",
        "seed": 5,
        "python": "p",
        "time_limit_s": 1.0,
        "memory_limit_gib": 1.0,
        "classes": ("small",),
        "gradients": True,
        "reference": "ball",
    }
    assert {field.name for field in dataclasses.fields(Request)} == other.keys()
    hashes = {dataclasses.replace(request, **{name: value}).digest() for name, value in other.items()}
    assert len(hashes | {request.digest()}) == len(other) + 1
    assert request.digest() == REQUEST.digest()


def test_this_tool_and_the_settings_count(certify, monkeypatch):
    certify()
    monkeypatch.setenv("TRITON_INTERPRET", "maybe")
    assert not certify()
    monkeypatch.undo()


def test_the_tools_own_sources_count(monkeypatch):
    before = dependencies.depends(REQUEST)
    monkeypatch.setattr(dependencies.digest, "of_sources", lambda rooms: str(len(list(rooms))))
    dependencies._tool.cache_clear()
    after = dependencies.depends(REQUEST)
    dependencies._tool.cache_clear()
    assert {name for name in before if before[name] != after[name]} == {"attnproof"}


def test_without_a_cache_nothing_is_kept(certify):
    assert [certify(cache=None), certify(cache=None), certify()] == [False] * 3


@pytest.mark.parametrize("kind", ["timeout", "memory", "killed"])
def test_trouble_that_passes_is_not_kept(certify, kind):
    cell = dict(made.kernel()["cells"][0], problem={"kind": kind, "message": "m"})
    certify.state["data"] = made.kernel("refuted", cells=[cell], gradients=[])
    assert not certify()
    assert not certify()


def test_what_was_undecided_is_tried_again(certify):
    certify.state["data"] = made.kernel(verdict="undecided", gradients=[])
    assert not certify()
    assert not certify()


def test_a_kernel_that_changed_meanwhile_is_not_kept(certify):
    certify.state["sources"] = lambda: None
    assert not certify()
    assert not certify()


def test_a_damaged_entry_is_made_again(certify):
    certify()
    (entry,) = (certify.folder / "cache" / "certificates").iterdir()
    for name, text in (("certificate.json", "{"), ("sources.json", "["), ("certificate.json", "{}")):
        (entry / name).write_text(text)
        assert [certify(), certify()] == [False, True]


def test_the_reproducer_comes_with_it_and_a_stale_one_goes(certify):
    certify.state["data"] = made.kernel("refuted", gradients=[])
    certify()
    assert certify(folder="elsewhere")
    assert {p.name for p in (certify.folder / "elsewhere").iterdir()} == {SCRIPT, DATA, "certificate.json"}
    certify.state["data"] = made.kernel(gradients=[])
    certify.kernel.write_text("mended")
    assert not certify()
    assert {p.name for p in (certify.folder / "out").iterdir()} == {"certificate.json"}


def test_the_worker_names_every_file_the_kernel_was_read_from(tmp_path):
    """Helpers, also ones imported only when called, and sources in other languages beside it."""
    (tmp_path / "helper_of_kernel.py").write_text("factor = 1")
    (tmp_path / "late_of_kernel.py").write_text("term = 0")
    (tmp_path / "beside.cu").write_text("// nothing")
    (tmp_path / "data.bin").write_text("no source")
    (tmp_path / "kernel.py").write_text(
        "import helper_of_kernel\n"
        "def recurrent_linear(q, k, v, **_):\n    import late_of_kernel\n    return q, k\n"
    )
    target = Target.parse(f"{tmp_path / 'kernel.py'}:recurrent_linear")
    request = Request(target.requested, "linear", classes=("integer",))
    with Subject(target, request.loaded()) as subject:
        before = subject.sources()
        subject.run(probe(request.loaded(), "float32", 4))
        after = subject.sources()
        (tmp_path / "helper_of_kernel.py").write_text("factor = 2")
        assert subject.sources() is None
    found = {Path(path).name for path in before}
    assert {"kernel.py", "helper_of_kernel.py", "beside.cu", "version.py"} <= found
    assert not {"data.bin", "late_of_kernel.py", "json.py", "serve.py"} & found
    assert {Path(p).name for p in after.keys() - before.keys()} >= {"late_of_kernel.py"}


def test_a_worker_that_cannot_tell_its_sources_is_replaced(tmp_path):
    (tmp_path / "kernel.py").write_text("def recurrent_linear(q, k, v, **_):\n    return q, k\n")
    target = Target.parse(f"{tmp_path / 'kernel.py'}:recurrent_linear")
    convention = Request(target.requested, "linear").loaded()
    with Subject(target, convention) as subject:
        subject._worker.end()
        assert subject.sources() is None
        assert subject.run(probe(convention, "float32", 4)).output is not None


def test_fingerprints(tmp_path):
    source, other = tmp_path / "a.py", tmp_path / "a.so"
    source.write_text("1")
    other.write_text("1")
    before = fingerprint(str(source)), fingerprint(str(other))
    os.utime(source, ns=(1, 1))
    os.utime(other, ns=(1, 1))
    assert fingerprint(str(source)) == before[0]
    assert fingerprint(str(other)) != before[1]
    assert fingerprint(str(tmp_path / "none.py")) == ""
    assert str(Path(sys.executable).resolve()) in sources(str(tmp_path))

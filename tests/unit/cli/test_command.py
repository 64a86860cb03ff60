"""The command from outside: exit codes, one-sentence errors, JSON, and nothing lost."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("attnproof")


def run(*words: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "ATTNPROOF_CACHE": str(cwd / "cache"), **env}
    return subprocess.run(
        [COMMAND, *words], cwd=cwd, capture_output=True, text=True, check=False, env=environment
    )


def error(done: subprocess.CompletedProcess[str]) -> str:
    """The single sentence on standard error."""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("attnproof: ")
    return lines[0]


def test_help_teaches(tmp_path: Path) -> None:
    done = run("--help", cwd=tmp_path)
    assert done.returncode == 0
    for command in ("prove", "refute", "certify", "report", "recheck", "list", "show", "doctor"):
        assert command in done.stdout
    assert "Exit codes" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("prove", "gdn.exact-detla"), "unknown claim 'gdn.exact-detla'; did you mean gdn.exact-delta"),
        (("show", "zzz"), "unknown claim 'zzz'; known: "),
        (("prove", "--nonsense"), "No such option: --nonsense"),
        (("recheck", "missing.json"), "missing.json does not exist"),
        (("recheck",), "attnproof-results does not exist"),
        (("report",), "attnproof-results is not a folder; run attnproof prove"),
        (("certify", "nowhere"), "Missing option '--mechanism'"),
    ],
)
def test_a_wrong_request_is_one_sentence_and_code_2(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in error(done)


def test_results_that_cannot_be_written_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = run("prove", "gdn.exact-delta", "--results", "file", cwd=tmp_path)
    assert done.returncode == 2
    assert "file/claims cannot be used: Not a directory" in error(done)


def test_prove_writes_a_certificate_that_rechecks(tmp_path: Path) -> None:
    first = run("prove", "gdn.exact-delta", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("proved    gdn.exact-delta")
    again = run("prove", "gdn.exact-delta", "--json", cwd=tmp_path)
    assert json.loads(again.stdout)[0]["verdict"] == "proved"
    checked = run("recheck", cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout
    assert "1 certificate: 1 hold, 0 fail, 0 unusable" in checked.stdout


def test_broken_certificates_are_named_and_the_others_still_checked(tmp_path: Path) -> None:
    run("prove", "gdn.exact-delta", cwd=tmp_path)
    good = tmp_path / "attnproof-results" / "claims" / "gdn.exact-delta.json"
    text = good.read_text(encoding="utf-8")
    good.with_name("cut.json").write_text(text[: len(text) // 2], encoding="utf-8")
    good.with_name("edited.json").write_text(text.replace('"proved"', '"cited"', 1), encoding="utf-8")
    newer = {**json.loads(text), "version": 2}
    good.with_name("newer.json").write_text(json.dumps(newer), encoding="utf-8")
    done = run("recheck", cwd=tmp_path)
    assert done.returncode == 2
    for part in ("cut off or not JSON", "edited after it was sealed", "schema version 2", "1 hold, 0 fail"):
        assert part in done.stdout


def test_a_missing_engine_is_undecided_and_says_what_to_install(tmp_path: Path) -> None:
    """cvc5 is hidden by a module of that name that cannot be imported."""
    (tmp_path / "cvc5.py").write_text("raise ImportError('hidden')\n", encoding="utf-8")
    done = run("refute", "kda.no-shear", "--fresh", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert done.returncode == 3, done.stdout + done.stderr
    assert done.stdout.startswith("undecided kda.no-shear")
    stored = tmp_path / "attnproof-results" / "claims" / "kda.no-shear.json"
    assert "pip install cvc5" in stored.read_text(encoding="utf-8")


def test_a_damaged_cache_entry_is_computed_again(tmp_path: Path) -> None:
    run("prove", "gdn.exact-delta", cwd=tmp_path)
    (kept,) = (tmp_path / "cache").glob("*.json")
    kept.write_text("{", encoding="utf-8")
    done = run("prove", "gdn.exact-delta", cwd=tmp_path)
    assert done.returncode == 0
    assert "[cached]" not in done.stdout


def test_show_prints_every_step(tmp_path: Path) -> None:
    done = run("show", "gdn.exact-delta", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "step checker" in done.stdout
    assert "mutant killed" in done.stdout


def test_certify_prints_and_writes_what_it_found(tmp_path: Path) -> None:
    """The float64 reference kernel: one property does not apply to it, which must not stop the rest."""
    target = "kernels.gdn.reference:reference_gdn"
    done = run("certify", target, "--mechanism", "gdn", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"{target}: Held on all" in done.stdout
    assert "not asked split and resume" in done.stdout
    for said in ("plain     output: max abs", "plain     state: max abs", "others' rules on these inputs: "):
        assert said in done.stdout
    assert "[cached]" not in done.stdout
    written = (tmp_path / "attnproof-results/certify").rglob("certificate.json")
    before = {path: path.read_bytes() for path in written}
    again = run("certify", target, "--mechanism", "gdn", cwd=tmp_path)
    assert again.stdout.splitlines()[0].endswith("[cached]")
    assert {path: path.read_bytes() for path in before} == before
    assert run("recheck", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere.module:f", "--mechanism", "gdn"), "has no module 'nowhere'"),
        (("kernels.kda.chunked:chunked_kd", "--mechanism", "kda"), "did you mean chunked_kda"),
        (("kernels.kda.chunked:chunked_kda", "--mechanism", "kad"), "unknown mechanism 'kad'"),
        (("f:f", "--mechanism", "kda", "--convention", "flaa"), "unknown convention 'flaa'"),
        (("f:f", "--mechanism", "kda", "--dtype", "tf32"), "unknown dtype 'tf32'; --dtype takes float64"),
        (("f:f", "--mechanism", "kda", "--dtype", "float32,fp8"), "unknown dtype 'fp8'"),
        (("f:f", "--mechanism", "kda", "--budget", "huge"), "unknown budget 'huge'"),
        (("f:f", "--mechanism", "kda", "--python", "/no/python"), "there is no Python interpreter"),
        (("f", "--mechanism", "kda"), "f"),
    ],
)
def test_a_wrong_certification_is_one_sentence_and_code_2(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    done = run("certify", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in error(done)

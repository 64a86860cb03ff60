"""What Coq is asked, and the falsehoods that engine and checker must not let through."""

import dataclasses
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from verify.checkers import coq_assumptions
from verify.engines import coq_engine
from verify.model import coq_build
from verify.model.errors import ClaimFileError, EnvironmentProblem
from verify.model.evidence import Evidence, Obligation
from verify.model.kernel_proof import KernelProof, of_claim, statements_digest
from verify.model.verdict import Verdict

needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed")

STATEMENTS = "(** toy.sum *)\nDefinition sum : Prop := forall n : nat, n + 0 = n.\n"
HEADER = "From Attnproof.derivations.toy Require Import statements.\n"
PROOF = HEADER + "Theorem sum_proof : sum.\nProof. intro n; symmetry; apply plus_n_O. Qed.\n"

Judge = Callable[..., Evidence]


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    """Builds a topic of one claim in a folder of its own and asks engine and checker about it."""

    def ask(
        proof: str, statements: str = STATEMENTS, written: str = STATEMENTS, axioms: str = "none"
    ) -> Evidence:
        topic = tmp_path / "derivations" / "toy"
        topic.mkdir(parents=True)
        (topic / "statements.v").write_text(statements, encoding="utf-8")
        (topic / "sum.v").write_text(proof, encoding="utf-8")
        names = {f"derivations/toy/{path.name}": path for path in topic.glob("*.v")}
        monkeypatch.setattr(coq_build, "sources", lambda: names)
        monkeypatch.setattr(coq_build, "folder", lambda: tmp_path / "build")
        monkeypatch.setattr(coq_build, "sources_digest", coq_build.sources_digest.__wrapped__)
        claim = KernelProof("toy.sum", axioms, (), "all", statements_digest(written), topic).obligation()
        return Evidence(claim, (coq_engine.judge(claim), coq_assumptions.judge(claim)))

    return ask


@needs_coq
def test_a_proof_without_axioms_is_proved(judge: Judge) -> None:
    found = judge(PROOF)
    assert found.verdict is Verdict.PROVED
    assert "no axiom" in found.checks[1].detail


@needs_coq
@pytest.mark.parametrize(
    ("proof", "said"),
    [
        (HEADER + "Theorem sum_proof : sum.\nAdmitted.\n", "sum_proof"),
        (HEADER + "Axiom cheat : False.\nTheorem sum_proof : sum.\nProof. destruct cheat. Qed.\n", "cheat"),
        (HEADER + "Theorem sum_proof : True.\nProof. exact I. Qed.\n", "states something else"),
        (
            HEADER + "Definition sum := True.\nTheorem sum_proof : sum.\nProof. exact I. Qed.\n",
            "something else",
        ),
        (HEADER + "Theorem other : sum.\nProof. intro n; symmetry; apply plus_n_O. Qed.\n", "missing"),
        (
            "Require Import Reals.\n" + HEADER + "Theorem sum_proof : sum.\nProof.\n"
            "intro n; destruct (Rle_dec 0 0) as [H|H]; symmetry; apply plus_n_O.\nQed.\n",
            "does not allow",
        ),
        (
            "#[bypass_check(guard)] Fixpoint loop (n : nat) {struct n} : False := loop n.\n"
            + HEADER
            + "Theorem sum_proof : sum.\nProof. destruct (loop 0). Qed.\n",
            "loop",
        ),
    ],
    ids=[
        "admitted",
        "axiom",
        "weaker theorem",
        "shadowed statement",
        "missing",
        "reals where none",
        "unguarded",
    ],
)
def test_a_proof_that_proves_nothing_is_refuted(judge: Judge, proof: str, said: str) -> None:
    found = judge(proof)
    assert found.verdict is Verdict.REFUTED
    assert said in found.checks[1].detail


@needs_coq
def test_a_false_statement_does_not_compile(judge: Judge) -> None:
    false = STATEMENTS.replace("n + 0 = n", "n + 1 = n")
    found = judge(PROOF, statements=false, written=false)
    assert found.verdict is Verdict.REFUTED
    assert "does not compile" in found.checks[0].detail


@needs_coq
def test_an_emptied_statement_is_refuted_though_its_proof_compiles(judge: Judge) -> None:
    emptied = STATEMENTS.replace("n + 0 = n", "n = n")
    proof = HEADER + "Theorem sum_proof : sum.\nProof. intro n; reflexivity. Qed.\n"
    found = judge(proof, statements=emptied)
    assert [check.verdict for check in found.checks] == [Verdict.PROVED, Verdict.REFUTED]
    assert "not those of the manifest" in found.checks[1].detail


@needs_coq
def test_of_theorems_asked_about_together_only_the_bad_ones_are_refuted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run accepts all that stand; an axiom, another type and a name that is none are found one by one."""
    good = {
        name: PROOF.removeprefix(HEADER).replace("sum_proof", f"{name}_proof") for name in ("good1", "good2")
    }
    bad = {
        "cheat": "Axiom cheat : False.\nTheorem cheat_proof : sum.\nProof. destruct cheat. Qed.\n",
        "weak": "Theorem weak_proof : True.\nProof. exact I. Qed.\n",
    }
    topic = tmp_path / "derivations" / "toy"
    topic.mkdir(parents=True)
    (topic / "statements.v").write_text(STATEMENTS, encoding="utf-8")
    for name, text in (good | bad).items():
        (topic / f"{name}.v").write_text(HEADER + text, encoding="utf-8")
    names = {f"derivations/toy/{path.name}": path for path in topic.glob("*.v")}
    monkeypatch.setattr(coq_build, "sources", lambda: names)
    monkeypatch.setattr(coq_build, "folder", lambda: tmp_path / "build")
    monkeypatch.setattr(coq_build, "sources_digest", coq_build.sources_digest.__wrapped__)
    runs: list[int] = []
    ask = coq_assumptions._ask

    def counted(place: Path, theorems: Sequence[Mapping[str, Any]]) -> tuple[int, str]:
        runs.append(len(theorems))
        return ask(place, theorems)

    monkeypatch.setattr(coq_assumptions, "_ask", counted)

    def claim(name: str, axioms: str = "none", **changed: str) -> Obligation:
        made = KernelProof(
            f"toy.{name}", axioms, (), "all", statements_digest(STATEMENTS), topic
        ).obligation()
        data = {**made.data, "statement": "Attnproof.derivations.toy.statements.sum", **changed}
        return dataclasses.replace(made, data=data)

    together = [claim("good1"), claim("good2"), claim("good1", "reals")]
    coq_engine.build([str(claim(name).data["module"]) for name in good | bad])
    assert {word.verdict for word in coq_assumptions.judge_together(together)} == {Verdict.PROVED}
    assert runs == [2, 1]
    mixed = [
        *together,
        *map(claim, bad),
        claim("good1", theorem="I : True) I.\nFail Check (nothing"),
        claim("missing"),
    ]
    words = [word.verdict for word in coq_assumptions.judge_together(mixed)]
    assert words == [Verdict.PROVED] * 3 + [Verdict.REFUTED] * 3 + [Verdict.UNDECIDED]


def test_comments_and_layout_do_not_count_as_statements() -> None:
    text = "(* one (* nested *) *)\nDefinition  sum :\n  Prop := True."
    assert statements_digest(text) == statements_digest("Definition sum : Prop := True.")
    assert statements_digest(text) != statements_digest("Definition sum : Prop := False.")


def test_without_coq_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(EnvironmentProblem, match=r"not kernel-checked.*apt-get install coq"):
        coq_build.version.__wrapped__()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("statements = ", "not a manifest"),
        ('statements = "0"\n[claims.sum]\naxioms = "none"\npremises = []\n', "covers"),
        (
            'statements = "0"\n[claims.sum]\naxioms = "choice"\npremises = []\ncovers = "all"\n',
            "none or reals",
        ),
    ],
)
def test_a_broken_manifest_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "coq.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ClaimFileError, match=said):
        of_claim("toy.sum", tmp_path / "sum.py")

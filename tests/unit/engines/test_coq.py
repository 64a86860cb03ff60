"""What Coq is asked, and the falsehoods that engine and checker must not let through."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from verify.checkers import coq_assumptions
from verify.engines import coq_engine
from verify.model import coq_build
from verify.model.errors import ClaimFileError, EnvironmentProblem
from verify.model.evidence import Evidence
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

"""The gate behind a Coq proof: the theorem has the stated type, and rests on allowed axioms only."""

import re
import tempfile
from pathlib import Path

from verify.model import coq_build
from verify.model.evidence import Check, Obligation
from verify.model.kernel_proof import AXIOMS, KIND, statements_digest, statements_text
from verify.model.verdict import Verdict

NAME = "coq-assumptions"
KINDS = frozenset({KIND})
CLOSED = "Closed under the global context"


def judge(obligation: Obligation) -> Check:
    """What ``Check`` and ``Print Assumptions`` say of the compiled theorem.

    Raises:
        EnvironmentProblem: Coq is not installed.
    """
    data = obligation.data
    place = coq_build.folder()
    compiled = f"{coq_build.path_of(data['module'])}.vo"
    if not (place / compiled).exists():
        return Check(NAME, "checker", Verdict.UNDECIDED, f"{compiled} is not built; run attnproof prove")
    statements = place / compiled.rpartition("/")[0] / "statements.v"
    for text in (data["statements"], statements_text(place, statements)):
        if (found := statements_digest(text)) != data["statements_sha256"]:
            return _refuted(f"the statements are not those of the manifest: read them, then state {found}")
    code, said = _ask(place, data["module"], data["statement"], data["theorem"])
    if code != 0:
        return _refuted(f"the theorem is missing or states something else: {' '.join(said.split())[:300]}")
    return _axioms(said, data["axioms"])


def _ask(place: Path, module: str, statement: str, theorem: str) -> tuple[int, str]:
    """Coq's answer; modules are required but not imported, so no notation can change a meaning."""
    needed = f"Require {module} {statement.rpartition('.')[0]}."
    query = f"{needed}\nCheck ({theorem} : {statement}).\nPrint Assumptions {theorem}.\n"
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "query.v"
        file.write_text(query, encoding="utf-8")
        done = coq_build.run("coqc", "-q", "-Q", str(place), "Attnproof", str(file), cwd=Path(scratch))
    return done.returncode, done.stdout if done.returncode == 0 else done.stderr


def _axioms(said: str, allowed: str) -> Check:
    """The word on the printed assumptions; whatever is not understood counts as forbidden."""
    if said.rstrip().endswith(CLOSED):
        return Check(NAME, "checker", Verdict.PROVED, "closed: no axiom at all")
    _, mark, listed = said.partition("\nAxioms:\n")
    used = re.findall(r"^(\S+)(?:\s*:|$)", listed, flags=re.MULTILINE)
    if not mark or not used:
        return _refuted(f"the printed assumptions are not understood: {' '.join(said.split())[:300]}")
    forbidden = [name for name in used if name not in AXIOMS[allowed]]
    if forbidden:
        return _refuted(f"rests on {', '.join(forbidden[:5])}, which «{allowed}» does not allow")
    return Check(NAME, "checker", Verdict.PROVED, f"axioms: {', '.join(used)}")


def _refuted(why: str) -> Check:
    return Check(NAME, "checker", Verdict.REFUTED, why)

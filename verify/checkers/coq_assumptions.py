"""The gate behind a Coq proof: the theorem has the stated type, and rests on allowed axioms only."""

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from verify.model import coq_build
from verify.model.evidence import Check, Obligation
from verify.model.kernel_proof import AXIOMS, KIND, statements_digest, statements_text
from verify.model.verdict import Verdict

NAME = "coq-assumptions"
KINDS = frozenset({KIND})
CLOSED = "Closed under the global context"


def judge(obligation: Obligation) -> Check:
    """What Coq says of the type and the assumptions of the compiled theorem.

    Raises:
        EnvironmentProblem: Coq is not installed.
    """
    return judge_together([obligation])[0]


def judge_together(obligations: Sequence[Obligation]) -> list[Check]:
    """The words on several theorems, in one run of Coq for each set of axioms where all of them stand.

    Most of the time goes into walking through the libraries below a proof, which one run does once. Where a
    run does not accept all its theorems, each half of them is asked about alone, down to single ones.

    Raises:
        EnvironmentProblem: Coq is not installed.
    """
    place = coq_build.folder()
    words = {i: word for i, item in enumerate(obligations) if (word := _without_coq(place, item))}
    for axioms in AXIOMS:
        alike = [i for i, item in enumerate(obligations) if i not in words and item.data["axioms"] == axioms]
        words |= zip(alike, _judged(place, [obligations[i] for i in alike], axioms), strict=True)
    return [words[i] for i in range(len(obligations))]


def _without_coq(place: Path, obligation: Obligation) -> Check | None:
    """The word on a theorem about which Coq need not be asked."""
    data = obligation.data
    if data["axioms"] not in AXIOMS:
        return _refuted(f"there is no set of axioms «{data['axioms']}»")
    for name in ("module", "theorem", "statement"):
        if not re.fullmatch(r"[A-Za-z_][\w']*(\.[A-Za-z_][\w']*)+", data[name]):
            return _refuted(f"{name} {data[name]!r} is not a full name")
    compiled = f"{coq_build.path_of(data['module'])}.vo"
    if not (place / compiled).exists():
        return Check(NAME, "checker", Verdict.UNDECIDED, f"{compiled} is not built; run attnproof prove")
    statements = place / compiled.rpartition("/")[0] / "statements.v"
    for text in (data["statements"], statements_text(place, statements)):
        if (found := statements_digest(text)) != data["statements_sha256"]:
            return _refuted(f"the statements are not those of the manifest: read them, then state {found}")
    return None


def _judged(place: Path, obligations: Sequence[Obligation], axioms: str) -> list[Check]:
    """Coq's words on theorems of one set of axioms."""
    if not obligations:
        return []
    code, said = _ask(place, [item.data for item in obligations])
    if code == 0:
        word = _axioms(said, axioms)
    else:
        word = _refuted(f"the theorem is missing or states something else: {' '.join(said.split())[:300]}")
    if len(obligations) == 1 or word.verdict is Verdict.PROVED:
        return [word] * len(obligations)
    half = len(obligations) // 2
    return [*_judged(place, obligations[:half], axioms), *_judged(place, obligations[half:], axioms)]


def _ask(place: Path, theorems: Sequence[Mapping[str, Any]]) -> tuple[int, str]:
    """Coq's answer; modules are required but not imported, so no notation can change a meaning.

    The theorems, each with the type it should have, become one term, which rests on what any of them does.
    """
    names = [name for data in theorems for name in (data["module"], data["statement"].rpartition(".")[0])]
    term = "I"
    for data in theorems:
        term = f"conj ({data['theorem']} : {data['statement']})\n ({term})"
    needed = f"Require {' '.join(dict.fromkeys(names))}."
    query = f"{needed}\nDefinition asked :=\n {term}.\nPrint Assumptions asked.\n"
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "query.v"
        file.write_text(query, encoding="utf-8")
        done = coq_build.run("coqc", "-q", "-Q", str(place), "Attnproof", str(file), cwd=Path(scratch))
    return done.returncode, done.stdout if done.returncode == 0 else done.stderr


def _axioms(said: str, allowed: str) -> Check:
    """The word on the printed assumptions; whatever is not understood counts as forbidden."""
    if said.strip() == CLOSED:
        return Check(NAME, "checker", Verdict.PROVED, "closed: no axiom at all")
    mark, _, listed = said.partition("\n")
    used = re.findall(r"^(\S+)(?:\s*:|$)", listed, flags=re.MULTILINE)
    if mark != "Axioms:" or not used:
        return _refuted(f"the printed assumptions are not understood: {' '.join(said.split())[:300]}")
    forbidden = [name for name in used if name not in AXIOMS[allowed]]
    if forbidden:
        return _refuted(f"rests on {', '.join(forbidden[:5])}, which «{allowed}» does not allow")
    return Check(NAME, "checker", Verdict.PROVED, f"axioms: {', '.join(used)}")


def _refuted(why: str) -> Check:
    return Check(NAME, "checker", Verdict.REFUTED, why)

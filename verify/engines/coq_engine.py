"""Coq: compiles the proofs that changed, in the order of what they import, on all cores."""

import shutil
from functools import cache
from pathlib import Path

from verify.model import coq_build
from verify.model.environment import processors
from verify.model.evidence import Check, Obligation
from verify.model.kernel_proof import KIND
from verify.model.verdict import Verdict

NAME = "coq"
KINDS = frozenset({KIND})


def judge(obligation: Obligation) -> Check:
    """Whether Coq accepts the file of the theorem, with all it imports.

    Raises:
        EnvironmentProblem: Coq is not installed.
    """
    by = f"coq {coq_build.version()}"
    said, place = build()
    module = str(obligation.data["module"]).split(".", 1)[1].replace(".", "/")
    if (place / f"{module}.vo").exists():
        return Check(by, "engine", Verdict.PROVED, f"{module}.v compiles")
    return Check(by, "engine", Verdict.REFUTED, f"{module}.v does not compile: {_error(said, module)}")


@cache
def build() -> tuple[str, Path]:
    """Compile what changed; what Coq said, and the folder with the compiled modules."""
    with coq_build.locked() as place:
        stamp, digest = place / ".built", coq_build.sources_digest()
        if stamp.exists() and (done := stamp.read_text(encoding="utf-8")).startswith(digest):
            return done.partition("\n")[2], place
        names = _copy_sources(place)
        (place / "_CoqProject").write_text("\n".join(["-Q . Attnproof", "-arg -w -arg none", *names, ""]), encoding="utf-8")
        coq_build.run("coq_makefile", "-f", "_CoqProject", "-o", "Makefile", cwd=place)
        said = coq_build.run("make", "-k", f"-j{processors()}", cwd=place)
        text = said.stdout + said.stderr
        stamp.write_text(f"{digest}\n{text}", encoding="utf-8")
        return text, place


def _copy_sources(place: Path) -> list[str]:
    """Bring the sources to the build folder, untouched where equal, so that make sees what changed."""
    wanted = coq_build.sources()
    for stale in place.rglob("*.v"):
        if stale.relative_to(place).as_posix() not in wanted:
            for left in stale.parent.glob(f"{stale.stem}.*"):
                left.unlink()
    for name, path in wanted.items():
        copy = place / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.exists() or copy.read_bytes() != path.read_bytes():
            copy.with_suffix(".vo").unlink(missing_ok=True)
            shutil.copyfile(path, copy)
    return list(wanted)


def _error(said: str, module: str) -> str:
    """What Coq said about one file, or about whatever stopped it from being reached."""
    lines = said.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("File ")]
    own = [i for i in starts if f"{module}.v" in lines[i]] or starts
    return " ".join(" ".join(lines[own[0] : own[0] + 6]).split()) if own else "something it imports fails"

"""Coq: compiles the proofs that are asked for, after all they import, where something changed."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from verify.model import coq_build
from verify.model.environment import processors
from verify.model.evidence import Check, Obligation
from verify.model.kernel_proof import KIND
from verify.model.verdict import Verdict

NAME = "coq"
KINDS = frozenset({KIND})
STAMP = "built.json"
"""Records for which sources the modules were last built, which ones, and what Coq said."""


def judge(obligation: Obligation) -> Check:
    """Whether Coq accepts the file of the theorem, with all it imports.

    Raises:
        EnvironmentProblem: Coq is not installed.
    """
    by = f"coq {coq_build.version()}"
    module = str(obligation.data["module"])
    said = build([module])
    path = coq_build.path_of(module)
    if (coq_build.folder() / f"{path}.vo").exists():
        return Check(by, "engine", Verdict.PROVED, f"{path}.v compiles")
    return Check(by, "engine", Verdict.REFUTED, f"{path}.v does not compile: {_error(said, path)}")


def build(modules: Iterable[str]) -> str:
    """Compile some modules and what they import, on all cores; what Coq said about those that fail."""
    with coq_build.locked() as place:
        digest = coq_build.sources_digest()
        stamp = place / STAMP
        known = json.loads(stamp.read_text(encoding="utf-8")) if stamp.exists() else {}
        if known.get("sources") != digest:
            known = {"sources": digest, "said": {}}
            _prepare(place)
        missing = [module for module in modules if module not in known["said"]]
        if missing:
            targets = [f"{coq_build.path_of(module)}.vo" for module in missing]
            done = coq_build.run("make", "-k", f"-j{processors()}", *targets, cwd=place)
            known["said"] |= dict.fromkeys(missing, done.stdout + done.stderr)
            stamp.write_text(json.dumps(known), encoding="utf-8")
        return "\n".join(known["said"][module] for module in modules)


def _prepare(place: Path) -> None:
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
    project = ["-Q . Attnproof", "-arg -w -arg none", *wanted, ""]
    (place / "_CoqProject").write_text("\n".join(project), encoding="utf-8")
    coq_build.run("coq_makefile", "-f", "_CoqProject", "-o", "Makefile", cwd=place)


def _error(said: str, path: str) -> str:
    """What Coq said about one file, or about whatever stopped it from being reached."""
    lines = said.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("File ")]
    own = [i for i in starts if f"{path}.v" in lines[i]] or starts
    return " ".join(" ".join(lines[own[0] : own[0] + 6]).split()) if own else "something it imports fails"


def check_again(modules: list[str]) -> str:
    """Let Coq's stand-alone checker read compiled modules again, and those of this project below them.

    The distribution's libraries are taken as they are; to read them again takes Coq's checker many minutes.

    Returns:
        What is wrong; empty when nothing is.
    """
    build(modules)
    place = coq_build.folder()
    names = [path.removesuffix(".v").replace("/", ".") for path in coq_build.sources()]
    built = [name for name in names if (place / f"{name.replace('.', '/')}.vo").exists()]
    asked = [word for name in built for word in ("-norec", f"Attnproof.{name}")]
    done = coq_build.run("coqchk", "-silent", "-o", "-Q", ".", "Attnproof", *asked, cwd=place)
    return "" if done.returncode == 0 else (done.stdout + done.stderr).strip()[-2000:]

"""``attnproof prove`` and ``attnproof refute``: settle claims and write their certificates."""

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from verify.cli.options import CORES, RESULTS, AsJson, Cores, Fresh, Results
from verify.model import certificate, registry
from verify.model.environment import cache_folder
from verify.model.errors import ClaimFileError
from verify.model.verdict import Verdict, exit_code

Latex = Annotated[Path | None, typer.Option(help="Also write one LaTeX file per claim into this folder.")]
Engine = Annotated[
    str | None,
    typer.Option(help="coq: check the kernel proofs alone, of both rooms; coqchk: with its own checker."),
]
Smt = Annotated[
    Path | None, typer.Option(help="Also write one SMT-LIB 2 file per solver statement into this folder.")
]
Ids = Annotated[list[str] | None, typer.Argument(metavar="[CLAIM]...", help="Claim ids; all when omitted.")]


def prove(
    ids: Ids = None,
    results: Results = RESULTS,
    json_output: AsJson = False,
    jobs: Cores = CORES,
    fresh: Fresh = False,
    latex: Latex = None,
    smt: Smt = None,
    engine: Engine = None,
) -> int:
    """Re-derive theorems: every step of every derivation is checked by a machine.

    Without ids, all claims under derivations/. Each result is written as a certificate as soon as it is
    there. Example: attnproof prove gdn.exact-delta
    """
    if engine is not None:
        from verify.cli import kernel

        return kernel.check(engine, ids)
    return _settle("derivations", ids, results, json_output, jobs, fresh, latex, smt)


def refute(
    ids: Ids = None,
    results: Results = RESULTS,
    json_output: AsJson = False,
    jobs: Cores = CORES,
    fresh: Fresh = False,
    latex: Latex = None,
    smt: Smt = None,
    search: Annotated[
        bool,
        typer.Option("--search", help="Run the searches that found the witnesses again, and nothing else."),
    ] = False,
) -> int:
    """Settle the counterexamples of the registry (what refute does without a command).

    Without ids, all claims under counterexamples/. Exit code 0 means that every counterexample stands.
    Example: attnproof refute delta.overwrite
    """
    if search:
        return _search_again(ids, json_output)
    return _settle("counterexamples", ids, results, json_output, jobs, fresh, latex, smt)


def _settle(
    room: str,
    ids: list[str] | None,
    results: Path,
    json_output: bool,
    jobs: int,
    fresh: bool,
    latex: Path | None,
    smt: Path | None,
) -> int:
    from verify.prove import certify_claims

    wanted = [registry.find(name).id for name in ids] if ids else [e.id for e in registry.entries(room)]
    width = max(map(len, wanted))
    started = time.monotonic()
    made: dict[str, dict[str, Any]] = {}

    def done(data: dict[str, Any], cached: bool) -> None:
        certificate.write(results / "claims" / f"{data['id']}.json", data)
        made[data["id"]] = data
        if not json_output:
            print(_line(data, cached, width), flush=True)
        if sys.stderr.isatty() and len(made) < len(wanted):
            print(f"\r{len(made)}/{len(wanted)} settled …", end="\r", file=sys.stderr, flush=True)

    broken = ""
    try:
        certify_claims(wanted, None if fresh else cache_folder(), jobs, done)
    except ClaimFileError as problem:
        broken = str(problem)
    ordered = [made[name] for name in wanted if name in made]
    if latex:
        _write_latex(ordered, latex)
    written = _write_smt(ordered, smt) if smt else ""
    if json_output:
        print(json.dumps([_summary(data) for data in ordered], indent=1, ensure_ascii=False))
    else:
        print(_total(ordered, results, time.monotonic() - started) + written)
    if broken:
        raise ClaimFileError(broken)
    return exit_code(Verdict(data["verdict"]) for data in ordered)


def _write_latex(made: list[dict[str, Any]], folder: Path) -> None:
    from verify.report import latex

    folder.mkdir(parents=True, exist_ok=True)
    for data in made:
        (folder / f"{data['id']}.tex").write_text(latex.document(data), encoding="utf-8")


def _write_smt(made: list[dict[str, Any]], folder: Path) -> str:
    from verify.report import smt_files

    count = sum(len(smt_files.write(data, folder)) for data in made)
    return f" SMT-LIB files: {count} in {folder}"


def _search_again(ids: list[str] | None, json_output: bool) -> int:
    """Run the searches of the named counterexamples, or all there are; 1 when one finds something else."""
    from verify.model.search import again

    claims = [registry.load(name) for name in ids or [e.id for e in registry.entries("counterexamples")]]
    if not ids:
        claims = [claim for claim in claims if claim.counterexample and claim.counterexample.search]
    answers = []
    for claim in claims:
        for found in again(claim):
            answers.append({"id": claim.id, "found": dict(found.data), "witness_of": list(found.labels)})
            if not json_output:
                said = f"found again: {'; '.join(found.labels)}" if found.labels else "found something else"
                print(f"{claim.id}: {said}", flush=True)
    if json_output:
        print(json.dumps(answers, indent=1, ensure_ascii=False))
    return 0 if all(answer["witness_of"] for answer in answers) else 1


def _line(data: dict[str, Any], cached: bool, width: int) -> str:
    killed = sum(mutant["rejected"] for mutant in data["mutants"])
    printed = "  (as printed: refuted)" if any(part["refutes"] for part in data["parts"]) else ""
    note = "  [cached]" if cached else ""
    strength = f"{data['reached']} of {data['asked']}"
    return (
        f"{data['verdict']:<9} {data['id']:<{width}} strength {strength:<13} "
        f"mutants killed {killed}/{len(data['mutants'])}{printed}{note}"
    )


def _total(made: list[dict[str, Any]], results: Path, seconds: float) -> str:
    words = [data["verdict"] for data in made]
    counts = ", ".join(f"{words.count(word)} {word}" for word in Verdict if word in words)
    total = f"{len(made)} claims in {seconds:.1f} s: {counts}. Certificates: {results / 'claims'}"
    unasked = [data for data in made if "kernel" in data and data["kernel"]["verdict"] == Verdict.UNDECIDED]
    if unasked:
        why = unasked[0]["kernel"]["checks"][0]["detail"]
        total += f"\n{len(unasked)} claims not kernel-checked: {why}"
    return total


def _summary(data: dict[str, Any]) -> dict[str, Any]:
    kept = ("id", "title", "status", "verdict", "asked", "reached", "scope", "digest")
    return {name: data[name] for name in kept}

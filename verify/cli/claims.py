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
from verify.model.errors import ClaimFileError, RequestError
from verify.model.verdict import Verdict, exit_code

Latex = Annotated[Path | None, typer.Option(help="Also write one LaTeX file per claim into this folder.")]
Engine = Annotated[
    str | None,
    typer.Option(help="coq: check the kernel proofs alone, of both rooms, and show what they state."),
]
Ids = Annotated[list[str] | None, typer.Argument(metavar="[CLAIM]...", help="Claim ids; all when omitted.")]


def prove(
    ids: Ids = None,
    results: Results = RESULTS,
    json_output: AsJson = False,
    jobs: Cores = CORES,
    fresh: Fresh = False,
    latex: Latex = None,
    engine: Engine = None,
) -> int:
    """Re-derive theorems: every step of every derivation is checked by a machine.

    Without ids, all claims under derivations/. Each result is written as a certificate as soon as it is
    there. Example: attnproof prove gdn.exact-delta
    """
    if engine is not None:
        return _engine_alone(engine, ids)
    return _settle("derivations", ids, results, json_output, jobs, fresh, latex)


def _engine_alone(engine: str, ids: list[str] | None) -> int:
    if engine != "coq":
        raise RequestError(f"--engine knows coq only, not {engine!r}; without it every engine is asked")
    from verify.cli import kernel

    return kernel.check(ids)


def refute(
    ids: Ids = None,
    results: Results = RESULTS,
    json_output: AsJson = False,
    jobs: Cores = CORES,
    fresh: Fresh = False,
    latex: Latex = None,
) -> int:
    """Settle the counterexamples of the registry (what refute does without a command).

    Without ids, all claims under counterexamples/. Exit code 0 means that every counterexample stands.
    Example: attnproof refute delta.overwrite
    """
    return _settle("counterexamples", ids, results, json_output, jobs, fresh, latex)


def _settle(
    room: str,
    ids: list[str] | None,
    results: Path,
    json_output: bool,
    jobs: int,
    fresh: bool,
    latex: Path | None,
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
    if json_output:
        print(json.dumps([_summary(data) for data in ordered], indent=1, ensure_ascii=False))
    else:
        print(_total(ordered, results, time.monotonic() - started))
    if broken:
        raise ClaimFileError(broken)
    return exit_code(Verdict(data["verdict"]) for data in ordered)


def _write_latex(made: list[dict[str, Any]], folder: Path) -> None:
    from verify.report import latex

    folder.mkdir(parents=True, exist_ok=True)
    for data in made:
        (folder / f"{data['id']}.tex").write_text(latex.document(data), encoding="utf-8")


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

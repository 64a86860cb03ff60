"""Re-verify certificate files: schema, verdicts from evidence, prose, and every checkable obligation."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema

from verify.checkers import coq_assumptions, kernel_certificate
from verify.model import certificate, kernel_proof, registered, registry
from verify.model.claim import Settled
from verify.model.errors import EnvironmentProblem, ResultFileError
from verify.model.evidence import Check, Evidence
from verify.model.judges import ask
from verify.model.verdict import Verdict

Proofs = Mapping[str, Check]
"""What Coq says of the proofs beside claims, by the claims' ids."""


@dataclass(frozen=True)
class Outcome:
    """What a re-check found.

    Attributes:
        summary: one line on what was looked at.
        faults: what does not hold; empty when everything does.
    """

    summary: str
    faults: tuple[str, ...]


def recheck(path: Path) -> Outcome:
    """Re-verify one certificate file.

    Raises:
        ResultFileError: it is cut off, edited, of a newer version, or not a certificate.
    """
    (found,) = (outcome for _, outcome in recheck_all([path]))
    if isinstance(found, ResultFileError):
        raise found
    return found


def recheck_all(paths: Sequence[Path], cores: int = 1) -> Iterator[tuple[Path, Outcome | ResultFileError]]:
    """Re-verify certificate files, in order; Coq is asked about the proofs of all of them together.

    Args:
        paths: the files.
        cores: processes to use; 1 stays in this one.
    """
    read = [_read(path) for path in paths]
    proofs = _proofs(data["id"] for data in read if isinstance(data, dict) and "kernel" in data)
    again = partial(_recheck, proofs=proofs)
    if cores == 1 or len(paths) < 2:
        yield from zip(paths, map(again, read), strict=True)
        return
    with ProcessPoolExecutor(min(cores, len(paths))) as pool:
        yield from zip(paths, pool.map(again, read), strict=True)


def _read(path: Path) -> dict[str, Any] | Outcome | ResultFileError:
    """A certificate that fits its schema, or what is wrong with the file."""
    try:
        data = certificate.read(path)
    except ResultFileError as problem:
        return problem
    problems = [
        f"schema: {error.message[:200]} at {'/'.join(map(str, error.path)) or 'the top'}"
        for error in jsonschema.Draft202012Validator(certificate.schema(data["format"])).iter_errors(data)
    ]
    return Outcome("does not fit its schema", tuple(problems[:5])) if problems else data


def _recheck(data: dict[str, Any] | Outcome | ResultFileError, proofs: Proofs) -> Outcome | ResultFileError:
    if not isinstance(data, dict):
        return data
    if data["format"] == certificate.KERNEL_FORMAT:
        faults = kernel_certificate.recheck(data)
        return Outcome(f"{data['verdict']}, {len(data['cells'])} cells", tuple(faults))
    return _claim(data, proofs)


def _claim(data: dict[str, Any], proofs: Proofs) -> Outcome:
    settled = certificate.settled(data)
    faults, again, left = [], 0, 0
    for part in settled.parts:
        for item in part.evidence:
            words = ask("verify.checkers", item.obligation)
            left += not words
            again += bool(words)
            faults += _changed(item, words) if words else []
    faults += _derived(data, settled)
    note = f", {left} rest on the solvers' word" if left else ""
    try:
        faults += registered.differences(settled, data["room"], data["source_sha256"])
    except ModuleNotFoundError as missing:
        # Claims are written with a computer algebra system; checkers do without.
        note += f"; its sentences not compared with the claim's, as {missing.name} is not installed"
    if settled.kernel and data["id"] in proofs:
        word = proofs[data["id"]]
        if Verdict.UNDECIDED in (word.verdict, settled.kernel.verdict):
            note += f"; Coq proof not checked again ({word.detail})"
        else:
            note += "; Coq proof checked again"
            faults += _changed(settled.kernel, [word])
    return Outcome(f"{data['verdict']}, {again} obligations judged again{note}", tuple(faults))


def _proofs(claim_ids: Iterable[str]) -> Proofs:
    """What Coq says now of the proofs of some claims, as far as they are registered."""
    known = {entry.id: entry.path for entry in registry.entries()}
    found = {name: kernel_proof.of_claim(name, known[name]) for name in claim_ids if name in known}
    asked = {name: proof.obligation() for name, proof in found.items() if proof}
    try:
        words = coq_assumptions.judge_together(list(asked.values())) if asked else []
    except EnvironmentProblem as problem:
        words = [Check(coq_assumptions.NAME, "checker", Verdict.UNDECIDED, str(problem)) for _ in asked]
    return dict(zip(asked, words, strict=True))


def _derived(data: dict[str, Any], settled: Settled) -> list[str]:
    """What is stated but does not follow: verdicts, words, strengths reached, fates of mutants."""
    again = certificate.of_claim(settled, data["room"], data["source_sha256"], data["environment"])
    return [
        f"{name}: what is stated does not follow from the evidence"
        for name, value in again.items()
        if value != data[name]
    ]


def _changed(item: Evidence, words: Sequence[Check]) -> list[str]:
    """What is wrong with one piece of evidence: checkers say something else now than is recorded."""
    recorded = [check.verdict for check in item.checks if check.role == "checker"]
    if recorded == [word.verdict for word in words]:
        return []
    said = ", ".join(f"{word.verdict} ({word.detail})" for word in words)
    return [f"«{item.obligation.label}»: {', '.join(recorded) or 'no checker'} is recorded, now {said}"]

"""Re-verify a whole certificate file: schema, verdicts from evidence, and every checkable obligation."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema

from verify.checkers import kernel_certificate
from verify.model import certificate
from verify.model.claim import Settled
from verify.model.evidence import Evidence
from verify.model.judges import ask
from verify.model.verdict import Verdict


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
    data = certificate.read(path)
    problems = [
        f"schema: {error.message[:200]} at {'/'.join(map(str, error.path)) or 'the top'}"
        for error in jsonschema.Draft202012Validator(certificate.schema(data["format"])).iter_errors(data)
    ]
    if problems:
        return Outcome("does not fit its schema", tuple(problems[:5]))
    if data["format"] == certificate.KERNEL_FORMAT:
        faults = kernel_certificate.recheck(data)
        return Outcome(f"{data['verdict']}, {len(data['cells'])} cells", tuple(faults))
    return _claim(data)


def _claim(data: dict[str, Any]) -> Outcome:
    settled = certificate.settled(data)
    faults, again, left = [], 0, 0
    for part in settled.parts:
        for item in part.evidence:
            fault = _obligation(item)
            if fault is None:
                left += 1
            else:
                again += 1
                faults += [fault] if fault else []
    faults += _derived(data, settled)
    note = f", {left} rest on the solvers' word" if left else ""
    if settled.kernel:
        fault, said = _kernel(settled.kernel, f"Attnproof.{data['room']}.{data['id'].replace('-', '_')}")
        faults += [fault] if fault else []
        note += f"; {said}"
    return Outcome(f"{data['verdict']}, {again} obligations judged again{note}", tuple(faults))


def _kernel(item: Evidence, module: str) -> tuple[str, str]:
    """What is wrong with a kernel-checked proof, and what could be looked at: Coq may not be here."""
    if item.obligation.data.get("module") != module:
        return "the Coq proof recorded is not that of this claim", "Coq proof of another claim"
    words = ask("verify.checkers", item.obligation)
    if any(word.verdict is Verdict.UNDECIDED for word in words) or item.verdict is Verdict.UNDECIDED:
        return "", f"Coq proof not checked again ({'; '.join(word.detail for word in words)})"
    return _obligation(item) or "", "Coq proof checked again"


def _derived(data: dict[str, Any], settled: Settled) -> list[str]:
    """What is stated but does not follow: verdicts, words, strengths reached, fates of mutants."""
    again = certificate.of_claim(settled, data["room"], data["source_sha256"], data["environment"])
    return [
        f"{name}: what is stated does not follow from the evidence"
        for name, value in again.items()
        if value != data[name]
    ]


def _obligation(item: Evidence) -> str | None:
    """What is wrong with one piece of evidence; ``None`` when no checker treats its kind."""
    words = ask("verify.checkers", item.obligation)
    if not words:
        return None
    recorded = [check.verdict for check in item.checks if check.role == "checker"]
    if recorded != [word.verdict for word in words]:
        said = ", ".join(f"{word.verdict} ({word.detail})" for word in words)
        return f"«{item.obligation.label}»: {', '.join(recorded) or 'no checker'} is recorded, now {said}"
    return ""

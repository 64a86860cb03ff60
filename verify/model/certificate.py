"""Certificates: results as sealed JSON files that anyone can read and check again."""

import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from verify.model import digest
from verify.model.claim import Assumption, Claim, Counterexample, Settled, Status, Variable
from verify.model.errors import ResultFileError
from verify.model.evidence import Check, Evidence, MutantOutcome, Obligation, Part, SettledPart
from verify.model.verdict import Verdict

VERSION = 1
"""Version of both formats; a reader refuses anything newer."""
CLAIM_FORMAT = "attnproof/claim"
KERNEL_FORMAT = "attnproof/kernel"
JOURNAL = "journal.jsonl"
"""What lies beside the place of a kernel's certificate until it is finished: the steps judged so far."""
SCHEMAS = {CLAIM_FORMAT: "claim.schema.json", KERNEL_FORMAT: "kernel.schema.json"}


def schema(format_name: str) -> dict[str, Any]:
    """The published JSON Schema of a certificate format."""
    path = Path(__file__).parent / "schemas" / SCHEMAS[format_name]
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def of_claim(settled: Settled, room: str, source_sha256: str, environment: dict[str, Any]) -> dict[str, Any]:
    """The certificate of a settled claim, not yet sealed.

    Args:
        settled: the claim with its evidence.
        room: the package the claim lives in.
        source_sha256: hash of the claim's file.
        environment: versions, platform, commit and seed.
    """
    claim = settled.claim
    record = {"counterexample": _record(claim.counterexample)} if claim.counterexample else {}
    kernel = {"kernel": _evidence(settled.kernel)} if settled.kernel else {}
    return {
        "format": CLAIM_FORMAT,
        "version": VERSION,
        "id": claim.id,
        "room": room,
        "title": claim.title,
        "statement": claim.statement,
        "remark": claim.remark,
        **record,
        "source": claim.source,
        "status": str(claim.status),
        "scope": claim.scope,
        "variables": [{"latex": item.latex, "domain": item.domain} for item in claim.variables],
        "assumptions": [{"text": item.text, "cited": item.cited} for item in claim.assumptions],
        "asked": claim.asked,
        "reached": settled.reached,
        "verdict": str(settled.verdict),
        "parts": [_part(part) for part in settled.parts],
        **kernel,
        "mutants": [
            {
                "name": item.name,
                "description": item.description,
                "verdict": str(item.verdict),
                "rejected": item.rejected,
                "detail": item.detail,
            }
            for item in settled.mutants
        ],
        "source_sha256": source_sha256,
        "environment": environment,
    }


def _record(counterexample: Counterexample) -> dict[str, Any]:
    fields = asdict(counterexample)
    return {**fields, "witness": list(fields["witness"]), "repaired_by": list(fields["repaired_by"])}


def _part(settled: SettledPart) -> dict[str, Any]:
    part: Part = settled.part
    return {
        "statement": part.statement,
        "refutes": part.refutes,
        "verdict": str(settled.verdict),
        "word": str(settled.word),
        "evidence": [_evidence(item) for item in settled.evidence],
    }


def _evidence(item: Evidence) -> dict[str, Any]:
    obligation: Obligation = item.obligation
    return {
        "kind": obligation.kind,
        "label": obligation.label,
        "strength": obligation.strength,
        "best": str(obligation.best),
        "sizes": obligation.sizes,
        "verdict": str(item.verdict),
        "checks": [
            {"by": check.by, "role": check.role, "verdict": str(check.verdict), "detail": check.detail}
            for check in item.checks
        ],
        "data": dict(obligation.data),
    }


def seal(data: dict[str, Any]) -> dict[str, Any]:
    """The certificate with the hash of its content, which shows later edits."""
    content = {name: value for name, value in data.items() if name != "digest"}
    return {**content, "digest": digest.of_json(content)}


def write(path: Path, data: dict[str, Any]) -> None:
    """Seal and write a certificate; a crash half-way leaves the old file whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        json.dump(seal(data), file, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
        file.write("\n")
    try:
        os.replace(file.name, path)
    except OSError:
        os.unlink(file.name)
        raise


def read(path: Path) -> dict[str, Any]:
    """A sealed certificate.

    Raises:
        ResultFileError: it cannot be read, is cut off, edited, of a newer version, or something else.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise ResultFileError(f"{path} cannot be read: {problem.strerror}") from problem
    except (json.JSONDecodeError, UnicodeDecodeError) as problem:
        raise ResultFileError(f"{path} is cut off or not JSON ({problem}); make it again") from problem
    if not isinstance(data, dict) or data.get("format") not in SCHEMAS:
        raise ResultFileError(f"{path} is not an attnproof certificate (formats: {', '.join(SCHEMAS)})")
    version = data.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise ResultFileError(
            f"{path} has schema version {version!r}; this attnproof reads up to {VERSION}: upgrade attnproof"
        )
    if seal(data)["digest"] != data.get("digest"):
        raise ResultFileError(f"{path} was edited after it was sealed: its content does not match its digest")
    return data


def settled(data: dict[str, Any]) -> Settled:
    """The settled claim a certificate records: what its verdicts are computed from."""
    claim = Claim(
        id=data["id"],
        title=data["title"],
        statement=data["statement"],
        source=data["source"],
        status=Status(data["status"]),
        scope=data["scope"],
        variables=tuple(Variable(**item) for item in data["variables"]),
        assumptions=tuple(Assumption(**item) for item in data["assumptions"]),
        asked=data["asked"],
        parts=lambda: (),
        mutants=(),
        remark=data["remark"],
        counterexample=_counterexample(data["counterexample"]) if "counterexample" in data else None,
    )
    parts = tuple(_settled_part(part) for part in data["parts"])
    mutants = tuple(
        MutantOutcome(item["name"], item["description"], Verdict(item["verdict"]), item["detail"])
        for item in data["mutants"]
    )
    return Settled(claim, parts, mutants, _settled_evidence(data["kernel"]) if "kernel" in data else None)


def _counterexample(data: dict[str, Any]) -> Counterexample:
    tuples = {name: tuple(data[name]) for name in ("witness", "repaired_by")}
    return Counterexample(**{**data, **tuples})


def _settled_part(data: dict[str, Any]) -> SettledPart:
    evidence = tuple(_settled_evidence(item) for item in data["evidence"])
    obligations = tuple(item.obligation for item in evidence)
    return SettledPart(Part(data["statement"], obligations, data["refutes"]), evidence)


def _settled_evidence(item: dict[str, Any]) -> Evidence:
    obligation = Obligation(
        item["kind"], item["label"], item["strength"], item["data"], Verdict(item["best"]), item["sizes"]
    )
    checks = tuple(
        Check(check["by"], check["role"], Verdict(check["verdict"]), check["detail"])
        for check in item["checks"]
    )
    return Evidence(obligation, checks)

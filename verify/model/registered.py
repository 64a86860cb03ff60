"""What a certificate says, compared with what the claim registered under its id says: prose and evidence."""

from collections.abc import Iterator

from verify.model import digest, kernel_proof, registry
from verify.model.claim import Settled
from verify.model.errors import RequestError
from verify.model.evidence import Obligation, Part

REQUESTS = "requests"
"""The room of answers to requests: their sentences are about a user's object, and registered nowhere."""
_PROSE = (
    "title",
    "statement",
    "source",
    "status",
    "scope",
    "variables",
    "assumptions",
    "asked",
    "remark",
    "counterexample",
)


def differences(settled: Settled, room: str, source_sha256: str) -> list[str]:
    """What a certificate says that its claim does not; empty for what every engine and checker was asked.

    Args:
        settled: what the certificate records.
        room: the package it names.
        source_sha256: the hash of the claim's file it names, which tells an old certificate.
    """
    claim_id = settled.claim.id
    if room == REQUESTS:
        return [] if claim_id.startswith("request.") else [f"{claim_id} is not the name of a request"]
    try:
        entry = registry.find(claim_id)
    except RequestError:
        return [f"no claim {claim_id} is registered: its sentences cannot be compared"]
    found = [*_room(room, entry.room), *_differences(settled)]
    if found and digest.of_file(entry.path) != source_sha256:
        found.append("the claim's file has changed since, or is not this one: settle the claim again")
    return found


def _room(said: str, registered: str) -> Iterator[str]:
    if said != registered:
        yield f"room: {said}, but the claim is registered under {registered}"


def _differences(settled: Settled) -> Iterator[str]:
    registered = registry.load(settled.claim.id)
    for name in _PROSE:
        if getattr(settled.claim, name) != getattr(registered, name):
            yield f"{name}: not that of the claim registered as {registered.id}"
    parts = registered.parts()
    if len(parts) != len(settled.parts):
        yield f"parts: {len(settled.parts)}, but the claim has {len(parts)}"
    for place, (said, part) in enumerate(zip((p.part for p in settled.parts), parts, strict=False), 1):
        yield from (f"part {place}: {what}" for what in _part(said, part))
    named = [(mutant.name, mutant.description) for mutant in registered.mutants]
    if [(mutant.name, mutant.description) for mutant in settled.mutants] != named:
        yield "mutants: not those of the claim"
    proof = kernel_proof.of_claim(registered.id, registry.find(registered.id).path)
    if settled.kernel and not (proof and _text(settled.kernel.obligation) == _text(proof.obligation())):
        yield "the Coq proof recorded is not that of this claim"


def _part(said: Part, part: Part) -> Iterator[str]:
    if said.statement != part.statement:
        yield "its sentence is not that of the claim"
    if said.refutes != part.refutes:
        yield "whether it refutes its sentence is not as in the claim"
    recorded, asked = (
        {_text(item): item for item in items} for items in (said.obligations, part.obligations)
    )
    for text in recorded.keys() - asked.keys():
        yield f"«{recorded[text].label}» is not what the claim asks to be shown"
    for text in asked.keys() - recorded.keys():
        yield f"«{asked[text].label}», which the claim asks to be shown, is missing or changed"


def _text(item: Obligation) -> str:
    """All of an obligation, its data included, as text that is equal where they are."""
    return digest.canonical(
        [item.kind, item.label, item.strength, str(item.best), item.sizes, dict(item.data)]
    )

"""Settle claims: engines and checkers speak on every obligation, mutants are tried, results are cached."""

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from verify.model import certificate, digest, environment, registry
from verify.model.claim import Claim, Mutant, Settled
from verify.model.errors import ResultFileError
from verify.model.evidence import Evidence, MutantOutcome, Obligation, SettledPart
from verify.model.judges import ask
from verify.model.verdict import Verdict, weakest

SEED = 20260101
"""Seed of every random point, kept in ``verify.engines.points`` too; recorded in certificates."""


def evidence(obligation: Obligation) -> Evidence:
    """Every engine's and checker's word on one obligation."""
    return Evidence(obligation, (*ask("verify.engines", obligation), *ask("verify.checkers", obligation)))


def settle(claim: Claim) -> Settled:
    """All evidence of a claim, and what the same checks say of its mutants."""
    parts = tuple(
        SettledPart(part, tuple(evidence(item) for item in part.obligations)) for part in claim.parts()
    )
    return Settled(claim, parts, tuple(try_mutant(mutant) for mutant in claim.mutants))


def try_mutant(mutant: Mutant) -> MutantOutcome:
    """What the checks say of a deliberately wrong variant, up to the first that refutes it."""
    verdicts, detail = [], ""
    for obligation in mutant.obligations():
        found = evidence(obligation)
        verdicts.append(found.verdict)
        if found.verdict is Verdict.REFUTED:
            first = next(check for check in found.checks if check.verdict is Verdict.REFUTED)
            detail = f"{first.by}: {first.detail}"
            break
    return MutantOutcome(mutant.name, mutant.description, weakest(verdicts), detail)


def cache_key(entry: registry.Entry) -> str:
    """Hash of all that a claim's result depends on: its topic's sources, the engine room, the libraries."""
    verify_room = Path(__file__).parent
    rooms = [verify_room / name for name in ("model", "numbers", "derive", "engines", "checkers")]
    definitions = sorted(registry.room_path("derivations").glob("*/definition.py"))
    sources = digest.of_sources([entry.path.parent, *rooms, Path(__file__), *definitions])
    versions = {name: environment.version(name) for name in environment.PACKAGES}
    return digest.of_json({"claim": entry.id, "sources": sources, "versions": versions})


def certify_claim(claim_id: str, cache: Path | None) -> tuple[dict[str, Any], bool]:
    """The certificate of one claim, and whether it came from the cache."""
    entry = registry.find(claim_id)
    kept = cache / f"{cache_key(entry)}.json" if cache else None
    if kept and kept.exists():
        try:
            return certificate.read(kept), True
        except ResultFileError:
            kept.unlink()
    settled = settle(registry.load(claim_id))
    made = certificate.of_claim(settled, entry.room, digest.of_file(entry.path), environment.describe(SEED))
    if kept:
        certificate.write(kept, made)
    return certificate.seal(made), False


def certify_claims(
    claim_ids: Iterable[str], cache: Path | None, cores: int, done: Callable[[dict[str, Any], bool], None]
) -> None:
    """Settle many claims on several cores; ``done`` gets each certificate as soon as it is there.

    Args:
        claim_ids: which claims.
        cache: folder of earlier results, or ``None`` to compute everything anew.
        cores: processes to use; 1 stays in this one.
        done: called with the certificate and whether it came from the cache.
    """
    wanted = list(claim_ids)
    fresh = [name for name in wanted if not _cached(name, cache)]
    for name in wanted:
        if name not in fresh:
            done(*certify_claim(name, cache))
    if cores == 1 or len(fresh) < 2:
        for name in fresh:
            done(*certify_claim(name, cache))
        return
    with ProcessPoolExecutor(max_workers=min(cores, len(fresh))) as pool:
        for future in as_completed([pool.submit(certify_claim, name, cache) for name in fresh]):
            done(*future.result())


def _cached(claim_id: str, cache: Path | None) -> bool:
    return cache is not None and (cache / f"{cache_key(registry.find(claim_id))}.json").exists()

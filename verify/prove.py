"""Settle claims: engines and checkers speak on every obligation, mutants are tried, results are cached."""

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache as once
from functools import partial
from pathlib import Path
from typing import Any

from verify.engines import coq_engine
from verify.engines.points import SEED
from verify.model import certificate, coq_build, digest, environment, kernel_proof, registry
from verify.model.claim import Claim, Mutant, Settled
from verify.model.errors import ClaimFileError, EnvironmentProblem, ResultFileError
from verify.model.evidence import Evidence, MutantOutcome, Obligation, SettledPart
from verify.model.judges import ask
from verify.model.kernel_proof import KernelProof
from verify.model.verdict import Verdict, weakest


def evidence(obligation: Obligation) -> Evidence:
    """Every engine's and checker's word on one obligation."""
    return Evidence(obligation, (*ask("verify.engines", obligation), *ask("verify.checkers", obligation)))


def settle(claim: Claim, proof: KernelProof | None = None) -> Settled:
    """All evidence of a claim, what the same checks say of its mutants, and what Coq says of its proof."""
    parts = tuple(
        SettledPart(part, tuple(evidence(item) for item in part.obligations)) for part in claim.parts()
    )
    kernel = evidence(proof.obligation()) if proof else None
    return Settled(claim, parts, tuple(try_mutant(mutant) for mutant in claim.mutants), kernel)


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
    """Hash of all that a claim's result depends on: its own file, its proof, and what claims share."""
    parts: dict[str, Any] = {"claim": entry.id, "source": digest.of_file(entry.path), "shared": _shared()}
    if kernel_proof.of_claim(entry.id, entry.path):
        manifest = digest.of_file(entry.path.parent / "coq.toml")
        parts["coq"] = {"version": _coq(), "manifest": manifest, "sources": coq_build.sources_digest()}
    return digest.of_json(parts)


def _coq() -> str:
    try:
        return coq_build.version()
    except EnvironmentProblem:
        return "not installed"


@once
def _shared() -> dict[str, Any]:
    """What any claim's result may depend on: the engine room, definitions and helpers, the libraries."""
    verify_room = Path(__file__).parent
    rooms = [verify_room / name for name in ("model", "numbers", "derive", "engines", "checkers")]
    listed = {entry.path for entry in registry.entries()}
    claims_rooms = (registry.room_path(name) for name in registry.ROOMS)
    helpers = [path for room in claims_rooms for path in sorted(room.rglob("*.py")) if path not in listed]
    sources = digest.of_sources([*rooms, Path(__file__), *helpers])
    return {"sources": sources, "versions": {n: environment.version(n) for n in environment.PACKAGES}}


def certify_claim(claim_id: str, cache: Path | None) -> tuple[dict[str, Any], bool]:
    """The certificate of one claim, and whether it came from the cache."""
    entry = registry.find(claim_id)
    kept = cache / f"{cache_key(entry)}.json" if cache else None
    if kept and kept.exists():
        try:
            return certificate.read(kept), True
        except ResultFileError:
            kept.unlink()
    settled = _settled(entry)
    made = certificate.of_claim(settled, entry.room, digest.of_file(entry.path), environment.describe(SEED))
    if kept:
        certificate.write(kept, made)
    return certificate.seal(made), False


def _settled(entry: registry.Entry) -> Settled:
    try:
        return settle(registry.load(entry.id), kernel_proof.of_claim(entry.id, entry.path))
    except Exception as problem:
        where = f"{entry.room}/{entry.path.parent.name}/{entry.path.name}"
        sentence = f"{entry.id} could not be settled: {where} raises {type(problem).__name__}: {problem}"
        raise ClaimFileError(sentence) from problem


def certify_claims(
    claim_ids: Iterable[str], cache: Path | None, cores: int, done: Callable[[dict[str, Any], bool], None]
) -> None:
    """Settle many claims on several cores; ``done`` gets each certificate as soon as it is there.

    Args:
        claim_ids: which claims.
        cache: folder of earlier results, or ``None`` to compute everything anew.
        cores: processes to use; 1 stays in this one.
        done: called with the certificate and whether it came from the cache.

    Raises:
        ClaimFileError: some claim's file is broken; raised after all others are done.
    """
    wanted = list(claim_ids)
    fresh = [name for name in wanted if not _cached(name, cache)]
    kept = [name for name in wanted if name not in fresh]
    broken: list[str] = []

    def finish(result: Callable[[], tuple[dict[str, Any], bool]]) -> None:
        try:
            done(*result())
        except ClaimFileError as problem:
            broken.append(str(problem))

    _build_proofs(fresh)
    alone = cores == 1 or len(fresh) < 2
    for name in [*kept, *fresh] if alone else kept:
        finish(partial(certify_claim, name, cache))
    if not alone:
        with ProcessPoolExecutor(max_workers=min(cores, len(fresh))) as pool:
            for future in as_completed([pool.submit(certify_claim, name, cache) for name in fresh]):
                finish(future.result)
    if broken:
        raise ClaimFileError("; ".join(broken))


def _build_proofs(claim_ids: Iterable[str]) -> None:
    """Compile all kernel proofs in one go: one by one they would wait for each other."""
    entries = (registry.find(name) for name in claim_ids)
    proofs = [proof for entry in entries if (proof := kernel_proof.of_claim(entry.id, entry.path))]
    if len(proofs) > 1 and _coq() != "not installed":
        coq_engine.build([proof.obligation().data["module"] for proof in proofs])


def _cached(claim_id: str, cache: Path | None) -> bool:
    return cache is not None and (cache / f"{cache_key(registry.find(claim_id))}.json").exists()

"""``attnproof prove --engine coq``: ask Coq alone, and show what it accepted."""

from pathlib import Path

from verify.model import kernel_proof, registry
from verify.model.errors import RequestError
from verify.model.kernel_proof import KernelProof
from verify.model.verdict import Verdict, exit_code


def check(ids: list[str] | None) -> int:
    """Settle the kernel-checked proofs of some claims (of all when ``ids`` is empty) and print each."""
    entries = [registry.find(name) for name in ids] if ids else registry.entries()
    proofs = {entry: kernel_proof.of_claim(entry.id, entry.path) for entry in entries}
    without = [entry.id for entry, proof in proofs.items() if proof is None]
    if ids and without:
        raise RequestError(f"no proof for Coq stands beside {', '.join(without)}; see attnproof list")
    words = [_show(proof, entry.path) for entry, proof in proofs.items() if proof]
    count = ", ".join(f"{words.count(word)} {word}" for word in Verdict if word in words)
    print(f"{len(words)} kernel-checked proofs: {count or 'none'}")
    return exit_code(words)


def _show(proof: KernelProof, path: Path) -> Verdict:
    from verify.prove import evidence

    found = evidence(proof.obligation())
    print(f"{found.verdict:<9} {proof.claim}: {path.with_suffix('.v')}")
    print(f"          states: {proof.covers}")
    print(f"          premises: {'; '.join(proof.premises) or 'none'}")
    for judge in found.checks:
        print(f"          {judge.by}: {judge.detail}", flush=True)
    return found.verdict

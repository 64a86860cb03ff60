"""``attnproof prove --engine coq`` and ``coqchk``: ask Coq alone, and show what it accepted."""

from pathlib import Path

from verify.model import kernel_proof, registry
from verify.model.errors import RequestError
from verify.model.kernel_proof import KernelProof
from verify.model.verdict import Verdict, exit_code

ENGINES = ("coq", "coqchk")


def check(engine: str, ids: list[str] | None) -> int:
    """Settle the kernel-checked proofs of some claims (of all when ``ids`` is empty) and print each.

    ``coqchk`` lets Coq's stand-alone checker read the compiled proofs again.
    """
    if engine not in ENGINES:
        raise RequestError(
            f"--engine knows {' and '.join(ENGINES)}, not {engine!r}; without it all are asked"
        )
    entries = [registry.find(name) for name in ids] if ids else registry.entries()
    proofs = {entry: kernel_proof.of_claim(entry.id, entry.path) for entry in entries}
    without = [entry.id for entry, proof in proofs.items() if proof is None]
    if ids and without:
        raise RequestError(f"no proof for Coq stands beside {', '.join(without)}; see attnproof list")
    if engine == "coqchk":
        return _check_again([proof for proof in proofs.values() if proof])
    words = [_show(proof, entry.path) for entry, proof in proofs.items() if proof]
    count = ", ".join(f"{words.count(word)} {word}" for word in Verdict if word in words)
    print(f"{len(words)} kernel-checked proofs: {count or 'none'}")
    return exit_code(words)


def _check_again(proofs: list[KernelProof]) -> int:
    from verify.engines import coq_engine

    print(f"coqchk reads {len(proofs)} compiled proofs again", flush=True)
    wrong = coq_engine.check_again([proof.obligation().data["module"] for proof in proofs])
    print(wrong or f"coqchk accepts {len(proofs)} proofs, the distribution's libraries taken as they are")
    return 1 if wrong else 0


def _show(proof: KernelProof, path: Path) -> Verdict:
    from verify.prove import evidence

    found = evidence(proof.obligation())
    print(f"{found.verdict:<9} {proof.claim}: {path.with_suffix('.v')}")
    print(f"          states: {proof.covers}")
    print(f"          premises: {'; '.join(proof.premises) or 'none'}")
    for judge in found.checks:
        print(f"          {judge.by}: {judge.detail}", flush=True)
    return found.verdict

"""Which claims have a proof that Coq's kernel checks: read from the manifest ``coq.toml`` of each topic.

Beside a claim's file ``TOPIC/name.py`` stand ``TOPIC/statements.v`` with ``Definition name : Prop`` and
``TOPIC/name.v`` with ``Theorem name_proof : name``. The manifest says which axioms the proof may use, which
premises the statement has, and the hash of the statements, so that none of it changes unnoticed.
"""

import hashlib
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verify.model.errors import ClaimFileError
from verify.model.evidence import Obligation

KIND = "coq-theorem"
AXIOMS: dict[str, tuple[str, ...]] = {
    "none": (),
    "reals": (
        "ClassicalDedekindReals.sig_not_dec",
        "ClassicalDedekindReals.sig_forall_dec",
        "FunctionalExtensionality.functional_extensionality_dep",
        "Classical_Prop.classic",
    ),
}
"""The sets of axioms a proof may rest on: none at all, or those of the standard library's reals."""


@dataclass(frozen=True)
class KernelProof:
    """One entry of a manifest.

    Attributes:
        claim: the claim's id.
        axioms: name of a set in ``AXIOMS``.
        premises: every hypothesis of the statement, in plain words.
        covers: what of the claim the theorem states; ``"all"`` when it is the whole claim.
        statements_sha256: hash of the topic's statements, comments and layout aside.
        folder: the topic's folder.
    """

    claim: str
    axioms: str
    premises: tuple[str, ...]
    covers: str
    statements_sha256: str
    folder: Path

    @property
    def name(self) -> str:
        """The base name of the claim's file, which names statement and theorem too."""
        return self.claim.partition(".")[2].replace("-", "_")

    @property
    def prefix(self) -> str:
        """The logical path of the topic in Coq."""
        return f"Attnproof.{self.folder.parent.name}.{self.folder.name}"

    def obligation(self) -> Obligation:
        """What engine and checker judge: the theorem by its full name, and the text a reader checks."""
        statements = statements_text(self.folder.parent.parent, self.folder / "statements.v")
        data: dict[str, Any] = {
            "module": f"{self.prefix}.{self.name}",
            "theorem": f"{self.prefix}.{self.name}.{self.name}_proof",
            "statement": f"{self.prefix}.statements.{self.name}",
            "axioms": self.axioms,
            "premises": list(self.premises),
            "covers": self.covers,
            "statements": statements,
            "statements_sha256": self.statements_sha256,
        }
        return Obligation(KIND, f"Coq accepts {self.name}_proof : {self.name}", "K", data)


def statements_text(root: Path, file: Path) -> str:
    """The statements of a topic after everything of this project that they are written in.

    Args:
        root: the folder above the rooms: of the sources, or of their compiled copies.
        file: the topic's ``statements.v``.
    """
    text = file.read_text(encoding="utf-8")
    needed = []
    for path, names in re.findall(r"From Attnproof\.(\S+) Require (?:Import|Export) ([\w\s]+)\.", text):
        needed += [root / path.replace(".", "/") / f"{name}.v" for name in names.split()]
    return "\n".join([*(statements_text(root, other) for other in needed), text])


def statements_digest(text: str) -> str:
    """SHA-256 of Coq text without its comments and with single blanks."""
    plain = text
    while (shorter := re.sub(r"\(\*(?:(?!\(\*|\*\)).)*\*\)", " ", plain, flags=re.DOTALL)) != plain:
        plain = shorter
    return hashlib.sha256(" ".join(plain.split()).encode()).hexdigest()


def of_claim(claim_id: str, path: Path) -> KernelProof | None:
    """The proof of the claim in ``path``, or ``None`` when its topic's manifest has none.

    Raises:
        ClaimFileError: the manifest cannot be read or its entry is incomplete.
    """
    manifest = path.parent / "coq.toml"
    if not manifest.exists():
        return None
    try:
        read = tomllib.loads(manifest.read_text(encoding="utf-8"))
        entry = read["claims"].get(claim_id.partition(".")[2])
        if entry is None:
            return None
        proof = KernelProof(
            claim_id,
            entry["axioms"],
            tuple(entry["premises"]),
            entry["covers"],
            read["statements"],
            path.parent,
        )
    except (tomllib.TOMLDecodeError, KeyError, AttributeError) as problem:
        raise ClaimFileError(f"{manifest} is not a manifest of Coq proofs: {problem}") from problem
    if proof.axioms not in AXIOMS:
        raise ClaimFileError(
            f"{manifest}: axioms of {claim_id} must be {' or '.join(AXIOMS)}, not {proof.axioms!r}"
        )
    return proof

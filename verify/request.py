"""Answers to requests: claims about the user's own objects, settled by the same engines and checkers."""

from pathlib import Path
from typing import Any

from verify.engines.points import SEED
from verify.model import certificate, digest, environment
from verify.model.claim import Claim
from verify.model.registered import REQUESTS
from verify.prove import settle


def answer(claim: Claim, given: Any) -> dict[str, Any]:
    """The sealed certificate of a claim built for one request.

    Args:
        claim: its id is ``request.NAME``; like every claim it brings mutants, made from the user's object.
        given: what the user gave, as JSON data; its hash stands where a claim of the registry has that of
            its file.
    """
    made = certificate.of_claim(settle(claim), REQUESTS, digest.of_json(given), environment.describe(SEED))
    return certificate.seal(made)


def save(data: dict[str, Any], results: Path) -> Path:
    """Write the certificate where ``recheck`` and ``report`` find it; an earlier one is replaced."""
    path = results / "claims" / f"{data['id']}.json"
    certificate.write(path, data)
    return path

"""What every request ends with: its certificate is settled, written and summed up on the terminal."""

import json
import re
from pathlib import Path
from typing import Any

from verify.model.claim import Claim
from verify.model.errors import RequestError
from verify.model.verdict import Verdict, exit_code

LONGEST_NAME = 100
"""Letters of a certificate's name: file systems take 255 bytes, and the name is not the whole file name."""


def certificate_name(given: str, *words: str) -> str:
    """The name the user gave, or one made of the command and its object: letters, digits and dashes.

    Raises:
        RequestError: the given name holds something else, or is too long.
    """
    if given and not re.fullmatch(r"[a-z0-9-]+", given):
        raise RequestError(f"the name {given!r} may hold small letters, digits and dashes only")
    if len(given) > LONGEST_NAME:
        raise RequestError(f"the name has {len(given)} letters; give at most {LONGEST_NAME}")
    return given or re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower())[:LONGEST_NAME].strip("-")


def finish(claim: Claim, given: Any, results: Path, json_output: bool) -> int:
    """Settle the claim of a request, write its certificate, print what it says, and give the exit code."""
    from verify import request

    data = request.answer(claim, given)
    path = request.save(data, results)
    print(json.dumps(data, indent=1, ensure_ascii=False) if json_output else _text(data, path))
    return exit_code([Verdict(data["verdict"])])


def _text(data: dict[str, Any], path: Path) -> str:
    killed = sum(mutant["rejected"] for mutant in data["mutants"])
    lines = [f"{data['verdict']}: {data['title']}"]
    for part in data["parts"]:
        lines.append(f"  [{part['word']}] {part['statement']}")
        lines += [
            f"      {check['by']}: {check['detail']}" for item in part["evidence"] for check in item["checks"]
        ]
    lines.append(f"planted falsehoods noticed: {killed} of {len(data['mutants'])}. Certificate: {path}")
    return "\n".join(lines)

"""Searches kept with their counterexamples: run again, and compared with the witness in the claim."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from verify.model.claim import Claim
from verify.model.errors import RequestError


@dataclass(frozen=True)
class Found:
    """One thing that a search found.

    Attributes:
        data: what it is, as (part of) the data of an obligation.
        labels: the witness obligations of the claim whose data hold all of it; none when the search found
            something else than the claim states.
    """

    data: Mapping[str, Any]
    labels: tuple[str, ...]


def again(claim: Claim) -> tuple[Found, ...]:
    """Run the search behind a counterexample again.

    Raises:
        RequestError: the claim has no search: its witness was made by hand, or it is no counterexample.
    """
    record = claim.counterexample
    if record is None or record.search is None:
        why = "is no counterexample" if record is None else "has a witness made by hand"
        raise RequestError(f"{claim.id} {why}: there is no search to run again")
    module, _, function = record.search.partition(":")
    witnesses = [item for part in claim.parts() for item in part.obligations if item.label in record.witness]
    found: list[Mapping[str, Any]] = getattr(importlib.import_module(module), function)()
    return tuple(
        Found(
            data, tuple(dict.fromkeys(item.label for item in witnesses if data.items() <= item.data.items()))
        )
        for data in found
    )

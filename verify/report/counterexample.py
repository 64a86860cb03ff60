"""What a counterexample's page leads with: what fails, by how much, who checked it, and what repairs it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

HEADINGS = {
    "fails": "The statement that fails",
    "believed": "Why one would believe it",
    "catch": "The catch",
    "gap": "By how much it fails",
    "smallest": "The smallest witness known",
    "repair": "The repair",
}
"""Field of the record to its heading, in the order in which they are read."""


@dataclass(frozen=True)
class View:
    """A claim's record of its counterexample.

    Attributes:
        record: the texts, as in the certificate.
        checks: the obligations that hold the witness, each with every word on it.
        repairs: ids of the repairing claims, each with whether the report has a page for it.
    """

    record: dict[str, Any]
    checks: tuple[dict[str, Any], ...]
    repairs: tuple[tuple[str, bool], ...]

    @property
    def headings(self) -> dict[str, str]:
        """Field of the record to its heading."""
        return HEADINGS


def view(claim: dict[str, Any], pages: Collection[str]) -> View | None:
    """The record of a claim's certificate, ``None`` where it has none.

    Args:
        claim: the certificate.
        pages: ids of the claims that have a page.
    """
    record = claim.get("counterexample")
    if record is None:
        return None
    items = {item["label"]: item for part in claim["parts"] for item in part["evidence"]}
    checks = tuple(items[label] for label in record["witness"])
    return View(record, checks, tuple((name, name in pages) for name in record["repaired_by"]))


def lines(claim: dict[str, Any]) -> list[tuple[str, str]]:
    """Headings and texts of the record in a claim's certificate, for faces without links."""
    record = claim["counterexample"]
    found = [(heading, record[field]) for field, heading in HEADINGS.items()]
    found.append(("Shown by", ", ".join(record["repaired_by"])))
    if record["search"]:
        found.append(("Search again", f"attnproof refute {claim['id']} --search"))
    return found

"""What figures take from a claim's certificate: its formulas, and the places where they were checked."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from verify.report import terms

POINTS = 201


@dataclass(frozen=True)
class Checked:
    """A formula that was bounded: ``labels`` and ``values`` of its obligations, in their order."""

    term: list[Any]
    labels: tuple[str, ...]
    values: tuple[dict[str, float], ...]

    def at(self, **values: float) -> float:
        """The formula, with the first obligation's values but for those given."""
        return terms.value(self.term, {**self.values[0], **values})

    def points(self, name: str) -> list[tuple[float, float]]:
        """Every value of one variable that was tried, with the formula's value there."""
        return [(values[name], terms.value(self.term, values)) for values in self.values]

    def split(self) -> "tuple[Checked, Checked]":
        """A difference as its two sides: the summands above 0 at the first values, and minus the others."""
        summands = self.term[1:] if self.term[0] == "+" else [self.term]
        above = [item for item in summands if terms.value(item, self.values[0]) > 0]
        below = [["*", ["q", "-1"], item] for item in summands if item not in above]
        first, second = (Checked(["+", *side], self.labels, self.values) for side in (above, below))
        return first, second


def evidence(certificate: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All obligations that were not refuted."""
    for part in certificate["parts"]:
        yield from (item for item in part["evidence"] if item["verdict"] != "refuted")


def goals(certificate: dict[str, Any], names: set[str]) -> list[dict[str, Any]]:
    """Derived statements whose right sides need no other names than these, and all of them."""
    chains = [item["data"]["goal"] for item in evidence(certificate) if item["kind"] == "derivation"]
    return [goal for goal in chains if names_of(goal["rhs"]) == names]


def checked(certificate: dict[str, Any], names: set[str]) -> list[Checked]:
    """Bounded formulas in exactly these variables, by order of appearance."""
    found: dict[str, list[dict[str, Any]]] = {}
    for item in evidence(certificate):
        if item["kind"] == "inequality" and names_of(item["data"]["term"]) == names:
            found.setdefault(str(item["data"]["term"]), []).append(item)
    return [_checked(items) for items in found.values()]


def _checked(items: list[dict[str, Any]]) -> Checked:
    unique = {str(item["data"]["values"]): item for item in reversed(items)}
    kept = [item for item in items if unique[str(item["data"]["values"])] is item]
    values = ({name: number(value) for name, value in item["data"]["values"].items()} for item in kept)
    return Checked(items[0]["data"]["term"], tuple(item["label"] for item in kept), tuple(values))


def names_of(term: list[Any]) -> set[str]:
    """The variables and families of a formula."""
    head, *rest = term
    if head in ("v", "at"):
        return {rest[0]}
    return set().union(*(names_of(item) for item in rest if terms.is_term(item)))


def grid(low: float, high: float) -> list[float]:
    """Equal steps from one end to the other."""
    return [low + (high - low) * place / (POINTS - 1) for place in range(POINTS)]


def ratios(low: float, high: float) -> list[float]:
    """Equal ratios from one end to the other, for log axes."""
    return [low * (high / low) ** (place / (POINTS - 1)) for place in range(POINTS)]


def number(value: Any) -> float:
    """A fraction of a certificate."""
    return float(Fraction(value))

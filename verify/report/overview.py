"""What the overview shows: everything at a glance, and each row behind it."""

from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from verify.model.digest import canonical
from verify.report import evidence
from verify.report.results import Kernel, Results
from verify.report.words import ROOMS, STRENGTHS, VERDICTS


@dataclass(frozen=True)
class ClaimRow:
    """A claim's line; ``strengths`` pairs each letter with reached, missing, extra or nothing."""

    data: dict[str, Any]
    strengths: tuple[tuple[str, str], ...]
    steps: int
    killed: int


@dataclass(frozen=True)
class Topic:
    """Claims of one topic, with how often each verdict occurs, strongest first."""

    room: str
    name: str
    rows: tuple[ClaimRow, ...]
    words: tuple[tuple[str, int], ...]


def topics(claims: tuple[dict[str, Any], ...]) -> list[Topic]:
    """Claims by room and topic."""
    order = [*ROOMS]
    ordered = sorted(claims, key=lambda item: (order.index(item["room"]), item["id"]))
    grouped = groupby(ordered, key=lambda item: (item["room"], item["id"].split(".")[0]))
    return [_topic(room, name, list(found)) for (room, name), found in grouped]


def _topic(room: str, name: str, claims: list[dict[str, Any]]) -> Topic:
    return Topic(room, name, tuple(claim_row(item) for item in claims), words(claims))


def words(certificates: list[dict[str, Any]]) -> tuple[tuple[str, int], ...]:
    """How often each verdict occurs, strongest first, zeros included."""
    count = Counter(item["verdict"] for item in certificates)
    return tuple((word, count[word]) for word in VERDICTS)


def claim_row(claim: dict[str, Any]) -> ClaimRow:
    """One claim's figures."""
    items = [item for part in claim["parts"] for item in part["evidence"]]
    killed = sum(mutant["rejected"] for mutant in claim["mutants"])
    return ClaimRow(claim, strengths(claim), sum(evidence.steps(item["data"]) for item in items), killed)


def strengths(claim: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Each letter with what became of it: reached, missing (asked for), extra (not asked for), or nothing."""
    asked, reached = claim["asked"], claim["reached"]
    states = {(True, True): "reached", (True, False): "missing", (False, True): "extra", (False, False): ""}
    return tuple((letter, states[letter in asked, letter in reached]) for letter in STRENGTHS)


@dataclass(frozen=True)
class Misprint:
    """A claim whose printed form is wrong: the printed sentences, each with labelled evidence against it."""

    claim: dict[str, Any]
    printed: tuple[tuple[dict[str, Any], tuple[tuple[str, evidence.Body], ...]], ...]


def misprints(claims: tuple[dict[str, Any], ...]) -> list[Misprint]:
    """Claims whose printed form is wrong, by article and section."""
    found = [Misprint(claim, _printed(claim)) for claim in claims if claim["status"] == "X"]
    return sorted(found, key=lambda item: (item.claim["source"], item.claim["id"]))


def _printed(
    claim: dict[str, Any],
) -> tuple[tuple[dict[str, Any], tuple[tuple[str, evidence.Body], ...]], ...]:
    return tuple(
        (part, tuple((item["label"], evidence.body(item["kind"], item["data"])) for item in part["evidence"]))
        for part in claim["parts"]
        if part["refutes"]
    )


@dataclass(frozen=True)
class KernelRow:
    """A kernel's line: its certificate, and the ratio and verdict of every class of inputs (or ``None``)."""

    kernel: Kernel
    classes: tuple[dict[str, Any] | None, ...]

    @property
    def name(self) -> str:
        """The function that was asked for."""
        return str(self.kernel.data["target"]["requested"].rpartition(":")[2])

    @property
    def place(self) -> str:
        """The module or file it is in."""
        return str(self.kernel.data["target"]["requested"].rpartition(":")[0])


def heat_map(kernels: tuple[Kernel, ...]) -> tuple[list[str], list[KernelRow]]:
    """Names of all classes in order of appearance, and one row per kernel."""
    names = list(dict.fromkeys(item["name"] for kernel in kernels for item in kernel.data["classes"]))
    rows = []
    for kernel in kernels:
        known = {item["name"]: item for item in kernel.data["classes"]}
        rows.append(KernelRow(kernel, tuple(known.get(name) for name in names)))
    return names, rows


def environments(results: Results) -> list[tuple[dict[str, Any], list[str]]]:
    """The different environments (seed aside), each with the results made there."""
    found: dict[str, tuple[dict[str, Any], list[str]]] = {}
    named = [(item["id"], item) for item in results.claims]
    named += [(kernel.slug, kernel.data) for kernel in results.kernels]
    for name, data in named:
        plain = {key: value for key, value in data["environment"].items() if key != "seed"}
        found.setdefault(canonical(plain), (plain, []))[1].append(name)
    return list(found.values())

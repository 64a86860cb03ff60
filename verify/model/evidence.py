"""Statement, evidence and check, kept apart: obligations are plain data that engines and checkers judge."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from verify.model.verdict import Verdict, weakest


@dataclass(frozen=True)
class Obligation:
    """One thing to be shown, as JSON-ready data that a checker can judge without the code that made it.

    Attributes:
        kind: names the checker and the engines that can judge it, e.g. ``"derivation"`` or ``"smt"``.
        label: the thing to be shown, in plain words.
        strength: the letter of the kind of evidence: C computer algebra, S two SMT solvers, E exact
            witness, B balls, M a seeded measurement.
        data: everything a checker needs, JSON values only; rationals as strings ``"3/4"``.
        best: the strongest word that passing supports (``bounded`` for a check at fixed sizes).
        sizes: for which sizes it holds, when not for all.
    """

    kind: str
    label: str
    strength: str
    data: Mapping[str, Any]
    best: Verdict = Verdict.PROVED
    sizes: str = ""


@dataclass(frozen=True)
class Check:
    """One engine's or checker's word on an obligation.

    Attributes:
        by: who judged, with its version.
        role: ``"engine"`` (finds, is not trusted) or ``"checker"`` (small, convinces).
        verdict: its word.
        detail: what it looked at, or why it said no.
    """

    by: str
    role: str
    verdict: Verdict
    detail: str


@dataclass(frozen=True)
class Evidence:
    """An obligation together with every word spoken on it."""

    obligation: Obligation
    checks: tuple[Check, ...]

    @property
    def verdict(self) -> Verdict:
        """Refuted if anybody refutes it; otherwise what those whose word counts agree on, at most ``best``.

        A checker's word counts whenever there is one. Where there is none (SMT queries) at least two
        engines must agree, and every engine asked must have answered.
        """
        if any(check.verdict is Verdict.REFUTED for check in self.checks):
            return Verdict.REFUTED
        checkers = [check.verdict for check in self.checks if check.role == "checker"]
        if checkers:
            return weakest([*checkers, self.obligation.best])
        if len(self.checks) < 2:
            return Verdict.UNDECIDED
        return weakest([*(check.verdict for check in self.checks), self.obligation.best])


@dataclass(frozen=True)
class Part:
    """One sentence of a claim with the obligations that settle it.

    Attributes:
        statement: the sentence; text between dollar signs is LaTeX.
        obligations: all must hold.
        refutes: the obligations, when they hold, show that the sentence is false (a printed statement).
    """

    statement: str
    obligations: tuple[Obligation, ...]
    refutes: bool = False


@dataclass(frozen=True)
class SettledPart:
    """A part with its evidence."""

    part: Part
    evidence: tuple[Evidence, ...]

    @property
    def verdict(self) -> Verdict:
        """The word on the obligations: for a part that refutes its sentence, how well it is refuted."""
        return weakest(item.verdict for item in self.evidence)

    @property
    def word(self) -> Verdict:
        """The word on the sentence itself: ``refuted`` where the obligations show that it is false."""
        refuted = self.part.refutes and self.verdict.holds
        return Verdict.REFUTED if refuted else self.verdict


@dataclass(frozen=True)
class MutantOutcome:
    """What the check said of a deliberately wrong variant; it must have refuted it."""

    name: str
    description: str
    verdict: Verdict
    detail: str = field(default="")

    @property
    def rejected(self) -> bool:
        """Whether the check noticed the fault."""
        return self.verdict is Verdict.REFUTED

"""A claim: an id, a statement with its hypotheses and scope, evidence to be checked, and mutants."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from verify.model.evidence import MutantOutcome, Obligation, Part, SettledPart
from verify.model.verdict import Verdict, weakest


class Status(StrEnum):
    """How the claim stands to the article it comes from."""

    AS_PRINTED = "V"
    """Holds as printed, with its hypotheses made explicit."""
    CORRECTED = "X"
    """The printed statement is refuted and a corrected one proved."""
    NEW = "N"
    """In no article."""


@dataclass(frozen=True)
class Variable:
    """A free variable of the statement: its name in LaTeX and the set it ranges over."""

    latex: str
    domain: str


@dataclass(frozen=True)
class Assumption:
    """A hypothesis of the statement, or a named theorem the proof rests on (``cited``)."""

    text: str
    cited: bool = False


@dataclass(frozen=True)
class Mutant:
    """A deliberately wrong variant of the claim's own evidence, which the same checks must refute.

    Attributes:
        name: short, e.g. ``"sign flipped"``.
        description: what was broken.
        obligations: builds the broken obligations; at least one of them must be refuted.
    """

    name: str
    description: str
    obligations: Callable[[], tuple[Obligation, ...]]


@dataclass(frozen=True)
class Claim:
    """A statement and what settles it.

    Attributes:
        id: permanent; ``topic.name`` where the file is ``topic/name.py`` with ``-`` written as ``_``.
        title: one line.
        statement: the corrected statement in full; text between dollar signs is LaTeX.
        source: where it comes from (article and section).
        status: as printed, corrected, or new.
        scope: for which sizes and values it holds.
        variables: free variables with their domains.
        assumptions: every hypothesis, and every named theorem the evidence rests on.
        asked: letters of the strengths to reach (K kernel-checked, S, E, B, C, M measured).
        parts: builds the parts; called only when the claim is checked.
        mutants: deliberately wrong variants; never empty.
        remark: why one would believe the wrong version, and where the catch is.
    """

    id: str
    title: str
    statement: str
    source: str
    status: Status
    scope: str
    variables: tuple[Variable, ...]
    assumptions: tuple[Assumption, ...]
    asked: str
    parts: Callable[[], tuple[Part, ...]]
    mutants: tuple[Mutant, ...]
    remark: str = ""


@dataclass(frozen=True)
class Settled:
    """A claim with the evidence for every part and the outcome of every mutant."""

    claim: Claim
    parts: tuple[SettledPart, ...]
    mutants: tuple[MutantOutcome, ...]

    @property
    def verdict(self) -> Verdict:
        """The weakest part, or ``vacuous`` when there is no mutant or one survives."""
        word = weakest(part.verdict for part in self.parts)
        if word is Verdict.REFUTED:
            return word
        killed = bool(self.mutants) and all(mutant.rejected for mutant in self.mutants)
        if not killed:
            return Verdict.VACUOUS
        cited = any(assumption.cited for assumption in self.claim.assumptions)
        return weakest([word, Verdict.CITED]) if cited else word

    @property
    def reached(self) -> str:
        """Letters of the strengths whose evidence holds, in the order K S E B C M."""
        letters = {
            item.obligation.strength for part in self.parts for item in part.evidence if item.verdict.holds
        }
        return "".join(letter for letter in "KSEBCM" if letter in letters)

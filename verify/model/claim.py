"""A claim: an id, a statement with its hypotheses and scope, evidence to be checked, and mutants."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from verify.model.evidence import Evidence, MutantOutcome, Obligation, Part, SettledPart
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
class Counterexample:
    """What readers of a counterexample want to know; text between dollar signs is LaTeX.

    Attributes:
        fails: the statement that fails.
        believed: why one would believe it.
        catch: where that goes wrong.
        gap: by how much the statement fails: an exact number, or a ball.
        witness: labels of the obligations that hold the witness, or what stands for one in a proof of
            impossibility.
        smallest: the smallest witness known, and how that was established.
        repair: what holds instead.
        repaired_by: ids of the claims that show the repair; this claim's own id where it does.
        search: ``"package.module:function"``, which takes nothing and finds the witness again: a list of
            mappings, each part of the data of an obligation. ``None`` where no search was needed.
    """

    fails: str
    believed: str
    catch: str
    gap: str
    witness: tuple[str, ...]
    smallest: str
    repair: str
    repaired_by: tuple[str, ...]
    search: str | None = None


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
        remark: what else a reader should know.
        counterexample: what fails and how; every claim under ``counterexamples`` has it, no other.
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
    counterexample: Counterexample | None = None


@dataclass(frozen=True)
class Settled:
    """A claim with the evidence for every part, the outcome of every mutant, and its kernel-checked proof.

    ``kernel`` is ``None`` where no proof for Coq stands beside the claim. It is settled apart from the
    parts: a machine without Coq proves the parts all the same, and says that the kernel was not asked.
    """

    claim: Claim
    parts: tuple[SettledPart, ...]
    mutants: tuple[MutantOutcome, ...]
    kernel: Evidence | None = None

    @property
    def verdict(self) -> Verdict:
        """The weakest part, or ``vacuous`` when there is no mutant or one survives.

        A named theorem that is only cited caps the word, unless Coq's kernel accepts the whole claim.
        """
        word = weakest(part.verdict for part in self.parts)
        if word is Verdict.REFUTED or (self.kernel and self.kernel.verdict is Verdict.REFUTED):
            return Verdict.REFUTED
        killed = bool(self.mutants) and all(mutant.rejected for mutant in self.mutants)
        if not killed:
            return Verdict.VACUOUS
        whole = (
            self._kernel_checked
            and self.kernel is not None
            and self.kernel.obligation.data["covers"] == "all"
        )
        cited = any(assumption.cited for assumption in self.claim.assumptions) and not whole
        return weakest([word, Verdict.CITED]) if cited else word

    @property
    def _kernel_checked(self) -> bool:
        return self.kernel is not None and self.kernel.verdict is Verdict.PROVED

    @property
    def reached(self) -> str:
        """Letters of the strengths whose evidence holds, in the order K S E B C M."""
        letters = {
            item.obligation.strength for part in self.parts for item in part.evidence if item.verdict.holds
        }
        letters |= {"K"} if self._kernel_checked else set()
        return "".join(letter for letter in "KSEBCM" if letter in letters)

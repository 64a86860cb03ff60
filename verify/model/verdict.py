"""The seven words a check may end with, and the rule that a whole is as weak as its weakest part."""

from collections.abc import Iterable
from enum import StrEnum


class Verdict(StrEnum):
    """What a check established. The order of definition is the order of strength, weakest first."""

    REFUTED = "refuted"
    """The statement fails, or the evidence offered for it is wrong."""
    VACUOUS = "vacuous"
    """The check accepts a deliberately wrong variant, so its yes means nothing."""
    UNDECIDED = "undecided"
    """Neither shown nor refuted: an engine is missing, gave up, or ran out of budget."""
    SAMPLED = "sampled"
    """Held on random inputs; no more is claimed."""
    BOUNDED = "bounded"
    """Holds for the sizes stated, and says nothing beyond them."""
    CITED = "cited"
    """Rests on a named theorem that is not proved here."""
    PROVED = "proved"
    """Every step was checked, for every size in the stated scope."""

    @property
    def rank(self) -> int:
        """Position in the order of strength; 0 is the weakest."""
        return list(Verdict).index(self)

    @property
    def holds(self) -> bool:
        """Whether the word supports the statement, however weakly."""
        return self.rank >= Verdict.SAMPLED.rank


def weakest(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a whole from those of its parts; a whole without parts is undecided."""
    return min(verdicts, key=lambda verdict: verdict.rank, default=Verdict.UNDECIDED)


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """The command's exit code: 0 all hold, 1 something is refuted or vacuous, 3 something is undecided."""
    words = list(verdicts)
    if any(word in (Verdict.REFUTED, Verdict.VACUOUS) for word in words):
        return 1
    return 3 if Verdict.UNDECIDED in words or not words else 0

"""Selections of tokens as obligations: who is kept, by which scores, and what mass is dropped."""

from verify.model.evidence import Obligation


def chosen(label: str, scores: list[str], kept: list[int], **stated: list[str] | str) -> Obligation:
    """The obligation of kind ``selection``; ``stated`` as in ``verify.checkers.selection``."""
    return Obligation("selection", label, "E", {"scores": scores, "kept": kept, **stated})

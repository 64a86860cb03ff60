"""The reader's legend: what each verdict, strength letter, article status and rule of derivation means."""

from dataclasses import dataclass

from verify.model.claim import Status
from verify.model.verdict import Verdict


@dataclass(frozen=True)
class Word:
    """A verdict as readers see it; the sign tells words apart without colour."""

    name: str
    sign: str
    meaning: str


VERDICTS: dict[str, Word] = {
    str(verdict): Word(str(verdict), sign, meaning)
    for verdict, sign, meaning in (
        (Verdict.PROVED, "✓", "Every step was checked, for every size in the stated scope."),
        (Verdict.CITED, "†", "Rests on a named theorem that is not proved here."),
        (Verdict.BOUNDED, "≤", "Holds for the sizes stated, and says nothing beyond them."),
        (Verdict.SAMPLED, "~", "Held on every input tried; no more is claimed."),
        (
            Verdict.UNDECIDED,
            "?",
            "Neither shown nor refuted: an engine is missing, gave up or ran out of time.",
        ),
        (Verdict.VACUOUS, "∅", "The check accepts a deliberately wrong variant, so its yes means nothing."),
        (Verdict.REFUTED, "✗", "The statement fails, or the evidence offered for it is wrong."),
    )
}
"""Strongest first."""

STRENGTHS: dict[str, tuple[str, str]] = {
    "K": ("kernel-checked", "a proof for every size, accepted by the kernel of a proof assistant (Coq)"),
    "S": ("two solvers", "two SMT solvers give the same answer to one query"),
    "E": ("exact witness", "an exact example, checked again by code that did not find it"),
    "B": ("ball arithmetic", "intervals that certainly contain the exact value"),
    "C": ("computer algebra", "a derivation whose every step was checked, and tried at exact random points"),
    "M": ("measurement", "random draws with a fixed seed, and confidence intervals"),
}
"""Letter to its name and meaning, in the order certificates use."""

STATUSES: dict[str, tuple[str, str]] = {
    str(Status.AS_PRINTED): ("as printed", "Holds as the article prints it, with explicit hypotheses."),
    str(Status.CORRECTED): (
        "corrected",
        "Not as the article prints it: the printed statement is refuted and a corrected one is shown.",
    ),
    str(Status.NEW): ("new", "Stands in no article."),
}

ROOMS: dict[str, tuple[str, str]] = {
    "derivations": ("Derivations", "Statements and why they hold."),
    "counterexamples": (
        "Counterexamples",
        "Statements that fail, each with a witness. The word says how well the failure is established.",
    ),
    "requests": ("Requests", "Counterexamples to objects that a user gave, made with attnproof refute."),
}

RULES: dict[str, str] = {
    "rearrange": "arithmetic, exponential laws and linearity of finite sums",
    "unfold": "definitions replaced by what they stand for",
    "split sum": "a sum cut in two at an index",
    "use hypothesis": "before minus after is a stated combination of assumed equations",
    "logarithm": "both sides have the same exponential, up to a stated combination of assumed equations",
    "exponentiate": "both sides are positive and have the same logarithm, up to such a combination",
    "differentiate": "the formula after the step is the derivative of the one before",
    "drop non-negative terms": "before minus after is a stated sum of terms that are at least 0",
}

ROLES: dict[str, str] = {
    "engine": "looks for evidence, and is not trusted alone",
    "checker": "small, shares nothing with the engines, and decides",
}

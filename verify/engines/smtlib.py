"""What the SMT engines share: the obligation's text, the time limit, and how an answer becomes a verdict.

An obligation of kind ``smt`` holds ``{"smtlib": text, "expect": "unsat" | "sat", "logic": name}``. Every
engine reads the same text, which is the evidence: one query, ending in its only ``(check-sat)``.
"""

from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

KIND = "smt"
TIME_LIMIT_MS = 20_000
"""Milliseconds of one query; afterwards the answer is ``unknown``."""


def fault(obligation: Obligation) -> str:
    """What is wrong with an obligation's data, or nothing."""
    text, expected, logic = (obligation.data.get(key) for key in ("smtlib", "expect", "logic"))
    if not isinstance(text, str):
        return "there is no query"
    if text.count("(check-sat)") != 1 or not text.rstrip().endswith("(check-sat)"):
        return "the query must be SMT-LIB text that ends in its only (check-sat)"
    if expected not in ("sat", "unsat"):
        return f"the expected answer must be sat or unsat, not {expected!r}"
    if f"(set-logic {logic})" not in text:
        return f"the query does not set the logic it states, {logic!r}"
    return ""


def word(by: str, obligation: Obligation, answer: str, detail: str = "") -> Check:
    """The check from a solver's answer: proved as expected, refuted if contradicted, undecided if unknown."""
    expected = obligation.data["expect"]
    if answer not in ("sat", "unsat"):
        verdict = Verdict.UNDECIDED
    else:
        verdict = Verdict.PROVED if answer == expected else Verdict.REFUTED
    said = f"{answer} (expected {expected})"
    return Check(by, "engine", verdict, f"{said}: {detail}" if detail else said)


def malformed(by: str, why: str) -> Check:
    """The check on an obligation that is no query at all."""
    return Check(by, "engine", Verdict.REFUTED, why)


def unread(by: str, why: str) -> Check:
    """The check when this solver cannot read or treat the text: it says nothing about the statement."""
    return Check(by, "engine", Verdict.UNDECIDED, f"cannot treat the query: {' '.join(why.split())}")

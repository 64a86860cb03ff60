"""SMT queries as obligations: the text every solver reads."""

from verify.model.evidence import Obligation


def query(label: str, logic: str, body: str, expect: str = "unsat") -> Obligation:
    """The obligation that a query has the expected answer.

    Args:
        label: what the answer shows, in plain words.
        logic: SMT-LIB logic, e.g. ``"QF_NRA"``.
        body: SMT-LIB declarations and assertions.
        expect: ``"unsat"`` or ``"sat"``.
    """
    text = f"(set-logic {logic})\n{body.strip()}\n(check-sat)\n"
    return Obligation("smt", label, "S", {"smtlib": text, "expect": expect, "logic": logic})

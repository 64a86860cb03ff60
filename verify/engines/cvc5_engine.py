"""cvc5 on the text of an SMT query."""

from importlib.metadata import version

from verify.engines import smtlib
from verify.model.errors import EnvironmentProblem
from verify.model.evidence import Check, Obligation

NAME = "cvc5"
KINDS = frozenset({smtlib.KIND})


def judge(obligation: Obligation) -> Check:
    """cvc5's answer to the query, within the time limit.

    Raises:
        EnvironmentProblem: cvc5's Python package is not installed.
    """
    try:
        import cvc5
    except ImportError as error:
        raise EnvironmentProblem("cvc5 is not installed; run: pip install cvc5") from error
    solver = cvc5.Solver(cvc5.TermManager())
    by = f"cvc5 {version('cvc5')}"
    if why := smtlib.fault(obligation):
        return smtlib.malformed(by, why)
    solver.setOption("tlimit-per", str(smtlib.TIME_LIMIT_MS))
    solver.setOption("produce-models", "true")
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, obligation.data["smtlib"], "query")
    symbols = parser.getSymbolManager()
    replies = []
    try:
        while not (command := parser.nextCommand()).isNull():
            replies.append(str(command.invoke(solver, symbols)).strip())
    except RuntimeError as error:
        return smtlib.unread(by, str(error))
    failed = [reply for reply in replies if reply.startswith("(error")]
    if failed:
        return smtlib.unread(by, failed[0])
    answer, _, reason = replies[-1].partition(" ")
    if answer == "sat":
        terms = symbols.getDeclaredTerms()
        values = sorted(f"{term} = {solver.getValue(term)}" for term in terms)
        return smtlib.word(by, obligation, answer, ", ".join(values))
    return smtlib.word(by, obligation, answer, reason)

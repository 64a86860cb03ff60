"""Z3 on the text of an SMT query."""

from verify.engines import smtlib
from verify.model.errors import EnvironmentProblem
from verify.model.evidence import Check, Obligation

NAME = "z3"
KINDS = frozenset({smtlib.KIND})


def judge(obligation: Obligation) -> Check:
    """Z3's answer to the query, within the time limit.

    Raises:
        EnvironmentProblem: Z3's Python package is not installed.
    """
    try:
        import z3
    except ImportError as error:
        raise EnvironmentProblem("Z3 is not installed; run: pip install z3-solver") from error
    by = f"z3 {z3.get_version_string()}"
    if why := smtlib.fault(obligation):
        return smtlib.malformed(by, why)
    context = z3.Context()
    solver = z3.SolverFor(obligation.data["logic"], ctx=context)
    solver.set("timeout", smtlib.TIME_LIMIT_MS)
    try:
        solver.from_string(obligation.data["smtlib"])
        answer = str(solver.check())
    except z3.Z3Exception as error:
        why = error.value
        return smtlib.unread(by, why.decode() if isinstance(why, bytes) else str(why))
    if answer == "sat":
        model = solver.model()
        values = sorted(f"{name} = {model[name]}" for name in model.decls())
        return smtlib.word(by, obligation, answer, ", ".join(values))
    return smtlib.word(by, obligation, answer, solver.reason_unknown() if answer == "unknown" else "")

"""Whether a call starts from what an earlier call left behind."""

from verify.audit.diagnosis.fitting import worst_ratio
from verify.audit.diagnosis.variants import recurrence
from verify.audit.inputs.probes import probe
from verify.audit.judge import judge
from verify.audit.laboratory import Finding, Laboratory

_TOKENS = 5


def explain_leftover(lab: Laboratory) -> Finding | None:
    """Run a sequence that leaves a known state, then another of the same shape without an initial state."""
    c = lab.convention
    if not c.kind.stateful:
        return None
    tokens = lab.length(_TOKENS)
    first = probe(c, lab.dtype, tokens, seed=7, initial_state=c.takes_initial_state)
    second = probe(c, lab.dtype, tokens, seed=8)
    before = lab.run(first)
    left = recurrence(c.as_seen(first))[1] if before.final_state is None else before.final_state
    judged = judge(second, lab.run(second), lab.bench.yardstick(second))
    if judged.output is None or not judged.failed or judged.nonfinite:
        return None
    continued = second.replace(initial_state=left, gate_dtype="float64")
    resumed = judge(continued, judged.outcome, lab.bench.yardstick(continued))
    if resumed.failed:
        return None
    away, fit = worst_ratio(judged), worst_ratio(resumed)
    return Finding(
        "starts from the state of an earlier call",
        "a sequence without an initial state starts from the final state that the call before it left",
        f"two calls of T = {tokens}: the second is {away:.3g} tolerances from the definition, and within "
        f"{fit:.2g} of the tolerance around the one that starts from the first one's final state",
    )

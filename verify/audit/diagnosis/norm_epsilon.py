"""Whether a kernel that normalises queries and keys adds ε to the mean of squares instead of the sum."""

from collections.abc import Sequence
from dataclasses import replace

from verify.audit.diagnosis.conventions import Hint
from verify.audit.diagnosis.fitting import MOST_FAILING, MOST_PASSING, small, worst_ratio
from verify.audit.judge import Judgement
from verify.audit.laboratory import Finding, Laboratory

_REASON = "ε of the norm added to the mean of squares"


def explain_norm_epsilon(
    lab: Laboratory, wrong: Sequence[Judgement], passing: Sequence[Judgement]
) -> Finding | None:
    """Every cell beside the definition with K times the ε that is declared."""
    declared = lab.convention
    failing, agreeing = small(wrong, MOST_FAILING), small(passing, MOST_PASSING)
    if declared.qk_norm == "none" or not declared.qk_norm_eps or not failing:
        return None
    worst = 0.0
    for judgement in (*failing, *agreeing):
        other = replace(declared, qk_norm_eps=declared.qk_norm_eps * judgement.case.shape.K)
        worst = max(worst, Hint(_REASON, "", other, "").fit(lab, judgement))
        if not worst <= 1:
            return None
    return Finding(
        _REASON,
        f"x / sqrt(mean(x²) + ε) / sqrt(K) is x / sqrt(|x|² + K ε), and ε = {declared.qk_norm_eps:g} belongs "
        "to the sum: divide ε by K",
        f"on {len(failing)} failing and {len(agreeing)} passing cells the result is within "
        f"{worst:.2g} of the tolerance with K ε, and up to {max(map(worst_ratio, failing)):.3g} tolerances "
        f"from it with ε",
    )

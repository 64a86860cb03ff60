"""Whether a kernel takes a scale of 0 for none given."""

from collections.abc import Sequence

from verify.audit.inputs.probes import probe
from verify.audit.judge import Judgement, judge
from verify.audit.laboratory import Finding, Laboratory

_TOKENS = 8


def explain_zero_scale(lab: Laboratory, wrong: Sequence[Judgement]) -> Finding | None:
    """The reason, if scale = 0 alone is wrong and gives what the usual scale should."""
    if any(j.case.scale for j in wrong):
        return None
    usual = probe(lab.convention, lab.dtype, lab.length(_TOKENS))
    other = judge(usual, lab.run(usual.replace(scale=0.0)), lab.bench.yardstick(usual))
    if other.output is None or other.failed:
        return None
    return Finding(
        "a scale of 0 taken for none",
        "with scale = 0 the result is that of the usual scale, as `scale or K ** -0.5` makes it",
        f"T = {usual.shape.T}: within {other.output.worst_ratio:.2g} of the tolerance around the result of "
        f"scale = {usual.scale:.6g}; {len(wrong)} cells",
    )

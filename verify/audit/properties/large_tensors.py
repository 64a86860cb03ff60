"""Index arithmetic past 2^31, where it can be looked at without tensors of that size."""

import math
from typing import Any

from verify.audit.inputs.probes import probe
from verify.audit.laboratory import Laboratory
from verify.audit.properties.arrangements import of_sequences
from verify.audit.properties.basic import Property
from verify.audit.properties.index_width import Source, risks
from verify.model.verdict import Verdict

_ELEMENTS = 1 << 31
_LISTED = 4
_NAME = "index arithmetic"
_STATEMENT = "tensors of 2^31 elements and more are addressed with 64-bit integers"


def index_arithmetic(lab: Laboratory) -> Property:
    """Checked, at risk (with the lines), or not checked (with the reason); suspicion refutes nothing."""
    return _of_triton(lab) if lab.subject.identity.get("triton") else _of_shapes(lab)


def _of_triton(lab: Laboratory) -> Property:
    """The source of every kernel that the target reaches."""
    found = lab.subject.ask("triton").get("kernels", [])
    if not found:
        return _not_checked("the source of its Triton kernels was not found")
    try:
        at_risk = risks([Source(**kernel) for kernel in found])
    except (SyntaxError, StopIteration) as error:
        return _not_checked(f"the source of a Triton kernel cannot be read: {type(error).__name__}")
    if not at_risk:
        about = f"{len(found)} Triton functions read: every flat offset has a 64-bit operand"
        return Property(_NAME, _STATEMENT, Verdict.SAMPLED, f"{about}, if indices in memory are 64 bits wide")
    lines = [f"{'/'.join(risk.file.split('/')[-2:])}:{risk.line} ({risk.text})" for risk in at_risk[:_LISTED]]
    more = f" and {len(at_risk) - _LISTED} more" if len(at_risk) > _LISTED else ""
    return Property(
        _NAME, _STATEMENT, None, f"at risk: 32-bit offsets may overflow in {', '.join(lines)}{more}"
    )


def _of_shapes(lab: Laboratory) -> Property:
    """A batch so large that inputs pass 2^31 elements, on tensors without memory."""
    c = lab.convention
    if c.output_buffer or c.state_buffer or c.state_in_place or c.token_layout == "THD":
        return _not_checked("results in buffers and packed tokens are not run without memory")
    one = probe(
        c,
        lab.dtype,
        lab.length(17),
        grouped=True,
        initial_state=c.takes_initial_state,
        size=c.head_size or 8,
    )
    two = of_sequences(one, [0, 0])
    small, double = lab.subject.shapes(one), lab.subject.shapes(two)
    batch = _ELEMENTS // min(math.prod(small["inputs"][c.arguments[f]]) for f in ("q", "k", "v")) + 1

    def scaled(group: str, name: str) -> list[int]:
        pairs = zip(small[group][name], double[group][name], strict=True)
        return [a if a == b else a * batch for a, b in pairs]

    dtypes = {c.arguments[f]: dtype for f, (_, dtype) in c.inputs(one).items()}
    tensors = [
        {"name": name, "shape": scaled("inputs", name), "dtype": dtypes[name]} for name in small["inputs"]
    ]
    answer: dict[str, Any] = lab.subject.ask("shapes", one, tensors=tensors)
    if not answer or answer["shapes"] is None:
        said = answer.get("message", "") or "the call did not come back"
        return _not_checked(f"the target does not run on tensors without memory: {said}")
    wrong = [name for name, shape in answer["shapes"].items() if shape != scaled("results", name)]
    about = f"shapes alone, on tensors without memory, B = {batch}"
    if wrong:
        return Property(_NAME, _STATEMENT, None, f"at risk: {about}: {', '.join(wrong)} has another shape")
    return Property(_NAME, _STATEMENT, Verdict.SAMPLED, f"{about}: as they should be")


def _not_checked(why: str) -> Property:
    return Property(_NAME, _STATEMENT, None, f"not checked: {why}")

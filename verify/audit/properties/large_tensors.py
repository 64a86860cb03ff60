"""Index arithmetic past 2^31, where it can be looked at without tensors of that size.

Of Triton kernels the launches at such shapes are recorded, on tensors without memory, and followed through
the source: an offset that wraps where the tensor has the element refutes. Of torch code only the shapes that
come back are seen: torch's own operators index in 64 bits, and numbers held in 32-bit tensors are not there.
"""

import math
from collections.abc import Mapping, Sequence, Set
from typing import Any

from verify.audit.convention.convention import Convention
from verify.audit.inputs.probes import probe
from verify.audit.laboratory import Finding, Laboratory
from verify.audit.properties.basic import Property
from verify.audit.properties.index_width.launch import Wrap
from verify.audit.properties.index_width.trial import Place, Trial
from verify.audit.properties.index_width.triton_source import Source
from verify.audit.properties.index_width.verdict import Risk, risks
from verify.audit.properties.large_shapes import ELEMENTS, Sizes, shapes
from verify.model.verdict import Verdict

_LISTED = 4
_NAME = "index arithmetic"
_STATEMENT = "tensors of 2^31 elements and more are addressed with 64-bit integers"
_REASON = "index width: a 32-bit offset wraps"


def index_arithmetic(lab: Laboratory) -> Property:
    """Refuted with a shape and the line, held, or not checked with the reason."""
    why = _without_memory(lab.convention)
    if lab.subject.identity.get("triton"):
        return _of_source(lab, why) if why else _of_launches(lab)
    return _not_checked(why) if why else _of_shapes(lab)


def _without_memory(c: Convention) -> str:
    """Why a call cannot be made on tensors without memory."""
    if c.output_buffer or c.state_buffer or c.state_in_place or c.token_layout == "THD":
        return "results in buffers and packed tokens are not run without memory"
    return ""


def _of_source(lab: Laboratory, why: str) -> Property:
    """The source of every kernel that the target reaches, where no launch can be recorded."""
    found = lab.subject.ask("triton").get("kernels", [])
    if not found:
        return _not_checked(f"{why}, and the source of its Triton kernels was not found")
    try:
        at_risk = risks([Source(**kernel) for kernel in found])
    except (SyntaxError, StopIteration) as error:
        return _unreadable(error)
    if not at_risk:
        return _held(f"{len(found)} Triton functions read")
    return _not_checked(f"{why}; 32-bit offsets in {_places(at_risk)}")


def _of_launches(lab: Laboratory) -> Property:
    """The launches at every batch, each kernel where its tensors are largest."""
    sizes, trials = Sizes.of(lab), list[Trial]()
    try:
        for kind in shapes(lab.convention):
            done: set[Place] = set()
            before = trials[-1].peaks if trials else None
            for shape in kind:
                if any(x.message and x.shape["T"] <= shape["T"] for x in trials):
                    continue
                trial = _tried(lab, sizes, shape, done)
                trials.append(trial)
                if not trial.message and not trial.at_risk:
                    return _unwrapped([trial])
                if trial.wraps:
                    return _refuted(lab, sizes, trial)
                done |= trial.followed
                if not trial.message and not trial.left:
                    break
            if before and before == trials[-1].peaks:
                # The same numbers at another B, T and H: they grow with none of these.
                break
    except (SyntaxError, StopIteration) as error:
        return _unreadable(error)
    ended = [x for x in trials if not x.message]
    if not ended:
        return _of_source(lab, f"it does not run on tensors without memory: {trials[0].message}")
    return _unwrapped(ended)


def _unwrapped(trials: Sequence[Trial]) -> Property:
    """No offset wraps; whether every one at risk was followed where it is added to a pointer."""
    last, peaks = trials[-1], dict[Place, int]()
    for trial in trials:
        peaks |= {place: max(peak, peaks.get(place, 0)) for place, peak in trial.peaks.items()}
    at_risk = {(x.file, x.line): x for trial in trials for x in trial.at_risk}
    missed = {place for trial in trials for place in trial.unclear & at_risk.keys()}
    # A number as large in a lane that is masked off, or may be.
    missed |= {place for place in at_risk if peaks.get(place, 0) >= ELEMENTS}
    left = {place for trial in trials for place in trial.left} - {p for x in trials for p in x.followed}
    tried = "; ".join(_shape(trial.shape) for trial in trials)
    if missed or left:
        places = _places(sorted(at_risk[place] for place in missed or at_risk))
        return _not_checked(f"32-bit offsets in {places} could not be followed at {tried}")
    also = f"; gradients not looked at: {last.gradients_message}" if last.gradients_message else ""
    about = f"{last.read} Triton functions that calls launch read{also} ({tried})"
    met = [peaks[place] for place in at_risk if place in peaks]
    reach = f", of which the 32-bit parts reach {max(met):,}" if met else ""
    others = f"; {len(met)} more are added at those shapes{reach}, below 2^31" if at_risk else ""
    return _held(about, others)


def _tried(
    lab: Laboratory,
    sizes: Sizes,
    shape: Mapping[str, int],
    done: Set[Place] = frozenset(),
    *,
    backward: bool = True,
) -> Trial:
    differentiate = backward and lab.convention.gradients != "none"
    tensors = sizes.tensors(shape)
    answer = lab.subject.ask("launches", _small(lab), tensors=tensors, differentiate=differentiate)
    return Trial.of(shape, answer or {"message": "the call did not come back"}, done)


def _small(lab: Laboratory) -> Any:
    """A case that says what the call is like but for its shape."""
    c = lab.convention
    size = c.head_size or 8
    return probe(c, lab.dtype, lab.length(17), initial_state=c.takes_initial_state, size=size)


def _refuted(lab: Laboratory, sizes: Sizes, trial: Trial) -> Property:
    """The shortest sequences of that kind that wrap."""
    multiple = lab.convention.length_multiple
    backward = not _tried(lab, sizes, trial.shape, backward=False).wraps
    low, high, step = 0, trial.shape["T"] // multiple, 1
    # Offsets are about proportional to T, so that the first guess is close.
    guess = high * ELEMENTS // trial.largest.exact
    while high - low > 1:
        middle = min(max(guess, low + 1), high - 1)
        shorter = _tried(lab, sizes, {**trial.shape, "T": middle * multiple}, backward=backward)
        if shorter.wraps:
            high, trial, guess = middle, shorter, middle - step
        else:
            low, guess = middle, middle + step
        step *= 2
    wrap, size = trial.largest, trial.size / 2**30
    detail = f"{_shape(trial.shape)}, {size:.1f} GiB in the tensors of the launch: {_said(wrap)}"
    evidence = (
        f"the launch at that shape followed through its source; at T = {low * multiple:,} nothing wraps"
    )
    return Property(_NAME, _STATEMENT, Verdict.REFUTED, detail, Finding(_REASON, detail, evidence))


def _said(wrap: Wrap) -> str:
    does = "stores" if wrap.store else "loads"
    return (
        f"program {wrap.program} of {wrap.kernel} {does} {wrap.tensor} at element {wrap.exact:,}, which is "
        f"there, but {_place(wrap.file, wrap.line, wrap.text)} gives {wrap.actual:,}"
    )


def _shape(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {size:,}" for name, size in sizes.items())


def _held(about: str, others: str = "") -> Property:
    wide = "offsets have a 64-bit operand, if indices in memory are 64 bits wide"
    return Property(_NAME, _STATEMENT, Verdict.SAMPLED, f"{about}: {wide}{others}")


def _place(file: str, line: int, text: str) -> str:
    return f"{'/'.join(file.split('/')[-2:])}:{line} ({text})"


def _places(at_risk: Sequence[Risk]) -> str:
    more = f" and {len(at_risk) - _LISTED} more" if len(at_risk) > _LISTED else ""
    return ", ".join(_place(risk.file, risk.line, risk.text) for risk in at_risk[:_LISTED]) + more


def _unreadable(error: Exception) -> Property:
    return _not_checked(f"the source of a Triton kernel cannot be read: {type(error).__name__}")


def _of_shapes(lab: Laboratory) -> Property:
    """A batch so large that inputs pass 2^31 elements, on tensors without memory."""
    sizes, one, names = Sizes.of(lab), _small(lab), lab.convention.arguments
    s = one.shape
    shape = {"B": 1, "T": s.T, "H": s.HV, "K": s.K, "V": s.V}
    least = min(math.prod(sizes.scaled("inputs", names[f], shape)) for f in ("q", "k", "v"))
    shape["B"] = ELEMENTS // least + 1
    answer: dict[str, Any] = lab.subject.ask("shapes", one, tensors=sizes.tensors(shape))
    if not answer or answer["shapes"] is None:
        said = answer.get("message", "") or "the call did not come back"
        return _not_checked(f"the target does not run on tensors without memory: {said}")
    wrong = [
        name for name, found in answer["shapes"].items() if found != sizes.scaled("results", name, shape)
    ]
    about = f"shapes alone, on tensors without memory, B = {shape['B']}"
    if wrong:
        return Property(_NAME, _STATEMENT, None, f"at risk: {about}: {', '.join(wrong)} has another shape")
    return Property(_NAME, _STATEMENT, Verdict.SAMPLED, f"{about}: as they should be")


def _not_checked(why: str) -> Property:
    return Property(_NAME, _STATEMENT, None, f"not checked: {why}")

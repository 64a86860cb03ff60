"""Other conventions under which what a kernel gives would be right: a hint how to call it, not a fault."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.convention.convention import Convention
from verify.audit.diagnosis.fitting import MOST_FAILING, MOST_PASSING, distance, small, worst_ratio
from verify.audit.diagnosis.variants import Variant, recurrence
from verify.audit.inputs.probes import probe
from verify.audit.judge import Judgement, judge
from verify.audit.laboratory import Finding, Laboratory
from verify.model.errors import RequestError

_REASONS = {
    ("gate_space", "ln", "log2"): "natural-log gate taken as base-2",
    ("state_layout", "KV", "VK"): "state transposed",
    ("head_order", "repeated", "tiled"): "head grouping tiled instead of interleaved",
}
"""Names of single differences, by field, what is declared and what fits."""
_MEANINGS = {
    ("gate_space", "ln"): "g is the natural log of the decay",
    ("gate_space", "log2"): "g is log₂ of the decay",
    ("gate_space", "linear"): "g is the decay itself",
    ("gate_form", "value"): "g is used as it comes",
    ("gate_form", "softplus"): "g goes through a softplus inside",
    ("gate_form", "sigmoid"): "g goes through a sigmoid inside",
    ("beta_form", "value"): "β is used as it comes",
    ("beta_form", "sigmoid"): "β goes through a sigmoid inside",
    ("beta_form", "2*sigmoid"): "β goes through twice a sigmoid inside",
    ("qk_norm", "none"): "q and k are not normalised inside",
    ("qk_norm", "unit"): "q and k are normalised inside",
    ("state_layout", "KV"): "the state is [K, V]",
    ("state_layout", "VK"): "the state is [V, K]",
    ("head_order", "repeated"): "output head hv reads head hv // (HV // H) of what heads share",
    ("head_order", "tiled"): "output head hv reads head hv % H of what heads share",
}


@dataclass(frozen=True)
class Hint:
    """One other convention.

    Args:
        reason: the words of the finding.
        meaning: what such a function takes, after "matches if".
        convention: it, beside the one that is declared.
        fields: where it differs, as its TOML says it.
    """

    reason: str
    meaning: str
    convention: Convention
    fields: str

    def fit(self, lab: Laboratory, judgement: Judgement) -> float:
        """How far the kernel is from this convention, in its tolerances; infinite where it cannot be."""
        case, outcome, declared, other = judgement.case, judgement.outcome, lab.convention, self.convention
        meant = meaning(case, declared, other)
        if meant is None or outcome.output is None:
            return np.inf
        state = outcome.final_state
        read = replace(
            outcome,
            output=other.our_tokens(case, declared.their_tokens(case, outcome.output)),
            final_state=None if state is None else other.our_state(case, declared.their_state(case, state)),
            problem=None,
        )
        if other.gate_space == "linear" != declared.gate_space and meant.g is not None:
            # Logarithms taken for decays are negative numbers, which no gate gives: no model runs on them.
            handed = other.our_tokens(case, declared.inputs(case)["g"][0], "g")
            result = recurrence(meant, decays=handed.reshape(meant.log_decay.shape))
            return distance(replace(judgement, outcome=read), result)
        strengths = meant.strength.min(initial=0.0), meant.strength.max(initial=0.0)
        if meant.log_decay.max(initial=0.0) > 0 or not 0 <= strengths[0] <= strengths[1] <= 2:
            # Growth, which the models refuse.
            return distance(replace(judgement, outcome=read), recurrence(meant))
        try:
            yardstick = replace(lab.bench, convention=other).yardstick_of(meant, case.dtype)
        except RequestError:
            return np.inf
        judged = judge(meant, read, yardstick)
        return np.inf if judged.beyond_worst_case else worst_ratio(judged)


def explain_by_convention(
    lab: Laboratory, wrong: Sequence[Judgement], passing: Sequence[Judgement]
) -> Finding | None:
    """Another convention whose tolerances the kernel keeps on failing and on passing cells alike."""
    failing, agreeing = small(wrong, MOST_FAILING), small(passing, MOST_PASSING)
    for hint in hints(lab.convention) if failing else ():
        worst = 0.0
        for judgement in (*failing, *agreeing):
            worst = max(worst, hint.fit(lab, judgement))
            if not worst <= 1:
                break
        else:
            return Finding(
                hint.reason,
                f"matches if {hint.meaning} ({hint.fields})",
                f"on {len(failing)} failing and {len(agreeing)} passing cells the result is within "
                f"{worst:.2g} of the tolerance under this convention, and up to "
                f"{max(map(worst_ratio, failing)):.3g} tolerances from the definition under the one declared",
            )
    return None


def hints(declared: Convention) -> Iterator[Hint]:
    """Every other convention that is tried."""
    for reason, meaning, changes in _changes(declared):
        other = _changed(declared, changes)
        if other is not None:
            yield Hint(reason, meaning, other, _declare(changes))


def as_declared(declared: Convention, variants: tuple[Variant, ...]) -> list[Variant]:
    """The variants on what a kernel is asked for under this convention, instead of on its case."""

    def on(variant: Variant) -> Variant:
        return replace(variant, run=lambda case: variant.run(declared.as_seen(case)))

    return [on(variant) for variant in variants]


def explain_refusals(lab: Laboratory) -> Finding | None:
    """For a kernel that fails on K != V, as one of another layout of the state does: an input with K = V."""
    c = lab.convention
    case = probe(c, lab.dtype, lab.length(20), seed=9, initial_state=c.takes_initial_state, grouped=True)
    judged = lab.judge(case)
    return explain_by_convention(lab, [judged], []) if judged.output and judged.failed else None


def _changes(c: Convention) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Reason, meaning and fields of every other convention that is tried."""
    alternatives: dict[str, tuple[str, ...]] = {
        "gate_space": ("ln", "log2", "linear") if c.gate_form == "value" else (),
        "gate_form": ("value", "softplus", "sigmoid") if c.gate_form != "step" else (),
        "beta_form": ("value", "sigmoid", "2*sigmoid"),
        "qk_norm": ("none", "unit"),
        "state_layout": ("KV", "VK"),
        "head_order": ("repeated", "tiled"),
    }
    for field, values in alternatives.items():
        own = getattr(c, field)
        for value in values:
            if value != own and not (field == "qk_norm" and value != "none" != own):
                reason = _REASONS.get((field, own, value), f"another convention: {field} {value}")
                yield reason, _MEANINGS[field, value], {field: value}
    for eps in (0.0, 1e-6, 1e-12):
        if c.qk_norm != "none" and eps != c.qk_norm_eps:
            yield "another convention: eps of the norm", f"it adds {eps:g}", {"qk_norm_eps": eps}
        elif c.qk_norm == "none" and eps != c.qk_norm_eps:
            fields = {"qk_norm": "unit", "qk_norm_eps": eps}
            yield "another convention: qk_norm unit", _MEANINGS["qk_norm", "unit"], fields
    for constant, what in (("A_log", "e^A_log is not applied"), ("dt_bias", "dt_bias is not added")):
        if c.gate_form in ("softplus", "sigmoid") and constant in c.arguments:
            named = {field: name for field, name in c.arguments.items() if field != constant}
            yield f"another convention: no {constant}", what, {"arguments": named}


def _changed(c: Convention, changes: dict[str, Any]) -> Convention | None:
    """The other convention; None where it contradicts itself, as a softplus on gates of another space."""
    if changes.keys() & {"gate_form", "gate_space"}:
        # What a gate of -inf would mean then need not be known.
        changes = {**changes, "gate_infinite": False}
    if "gate_form" in changes:
        form = changes["gate_form"]
        # Constants that are not handed over: a softplus alone, or a sigmoid down to the usual bound.
        changes = {
            **changes,
            "gate_space": "ln",
            "lower_bound": (c.lower_bound or -5.0) * (form == "sigmoid"),
        }
    other = replace(c, **changes)
    try:
        replace(other, gradients="none").check()
    except RequestError:
        return None
    return other


def _declare(changes: dict[str, Any]) -> str:
    if "arguments" in changes:
        return "leave it out of arguments"
    return "declare " + ", ".join(
        f'{field} = "{value}"' if isinstance(value, str) else f"{field} = {value:g}"
        for field, value in changes.items()
    )


def meaning(case: Case, declared: Convention, other: Convention) -> Case | None:
    """What a call under one convention means under another; None where a state does not have its shape."""
    if other.state_layout != declared.state_layout and case.shape.K != case.shape.V:
        return None
    if other.head_order != declared.head_order and declared.gate_form != "value":
        # Constants of gates go by the number of a head too.
        return None
    arrays: dict[str, Array] = {}
    for field, (array, _) in declared.inputs(case).items():
        if field in case.kind.tokens:
            arrays[field] = other.our_tokens(case, array, field)
        elif field == "initial_state" and case.initial_state is not None:
            arrays[field] = np.ascontiguousarray(other.our_state(case, array))
    return other.understood(case, arrays)

"""What the rules that kernels are tested with today say of a run. Ours never depend on them.

Each is given the exact result rounded to the format that came back: the best reference it could have.
Sources: fla/utils/_testing.py of flash-linear-attention (its limits of the tests in tests/ops);
hopper/test_flash_attn.py of FlashAttention; torch/testing/_comparison.py.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.gradient.functional import Cotangent
from verify.audit.gradient.judge import GradientJudgement
from verify.audit.judge import Judgement
from verify.audit.plain.formula import formula
from verify.numbers.formats import format_named, round_array

_RMS_LIMIT, _RMS_LIMITS_OF_GRADIENTS = 0.005, {"g": 0.02, "beta": 0.02}
_RMS_LIMIT_OF_GRADIENTS = 0.008
_NEGLIGIBLE = 1e-6
_TIMES, _TIMES_OF_GRADIENTS = 2, 3
_CLOSE = {
    "float64": (1e-7, 1e-7),
    "float32": (1.3e-6, 1e-5),
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
}


@dataclass(frozen=True, eq=False)
class Tensor:
    """One tensor of a run, all arrays of one shape.

    Args:
        name: ``"output"``, ``"state"`` or, for a gradient, its input's field.
        computed: what came back.
        expected: the exact result, rounded to what came back.
        dtype: of what came back.
        formula: what the plain formula gives in the inputs' dtype; None where torch cannot compute it there.
    """

    name: str
    computed: Array
    expected: Array
    dtype: str
    formula: Array | None

    @property
    def is_gradient(self) -> bool:
        return self.name not in ("output", "state")

    @classmethod
    def of(cls, name: str, computed: Array, reference: Array, dtype: str, formula: Array | None) -> "Tensor":
        """With a reference not yet rounded."""
        return cls(name, computed, round_array(format_named(dtype), reference), dtype, formula)


@dataclass(frozen=True)
class Rule:
    """A rule, in words and as a test of one tensor."""

    name: str
    text: str
    passes: Callable[[Tensor], bool | None]


def rms_ratio(x: Tensor) -> bool:
    """fla.utils.assert_close."""
    error = np.abs(x.computed - x.expected)
    if not error.size or error.max() <= _NEGLIGIBLE:
        return True
    limit = _RMS_LIMITS_OF_GRADIENTS.get(x.name, _RMS_LIMIT_OF_GRADIENTS) if x.is_gradient else _RMS_LIMIT
    return bool(_rms(error) / (_rms(x.expected) + 1e-8) < limit)


def twice_the_formula(x: Tensor) -> bool | None:
    """FlashAttention's: error <= 2 x (gradients 3 x) the error of the formula + 2 max |y + 0.3 - 0.3 - y|."""
    if x.formula is None:
        return None
    if not x.computed.size:
        return True
    target = format_named(x.dtype)
    there = round_array(target, x.expected + 0.3)
    noise = np.abs(round_array(target, there - 0.3) - x.expected).max()
    allowed = (_TIMES_OF_GRADIENTS if x.is_gradient else _TIMES) * np.abs(x.formula - x.expected).max()
    return bool(np.abs(x.computed - x.expected).max() <= allowed + 2 * noise)


def assert_close(x: Tensor) -> bool:
    """torch.testing.assert_close with its defaults for the dtype."""
    relative, absolute = _CLOSE[x.dtype]
    within = np.abs(x.computed - x.expected) <= absolute + relative * np.abs(x.expected)
    return bool((within | (x.computed == x.expected)).all())


RULES = (
    Rule(
        "flash-linear-attention",
        "RMS of the error below 0.005 of the RMS of the tensor (gradients 0.008, of g and beta 0.02)",
        rms_ratio,
    ),
    Rule(
        "FlashAttention",
        "largest error at most twice (gradients: 3 times) that of the plain formula in the same dtype, and "
        "twice the rounding of adding 0.3",
        twice_the_formula,
    ),
    Rule("torch.testing.assert_close", "defaults for the dtype: rtol and atol, entry by entry", assert_close),
)


def said(tensors: Sequence[Tensor]) -> dict[str, bool]:
    """By rule, whether it passes every tensor of a run; without a rule that cannot say."""
    with np.errstate(all="ignore"):
        words = {rule.name: [rule.passes(tensor) for tensor in tensors] for rule in RULES}
    return {name: all(found) for name, found in words.items() if None not in found}


def of_run(judgement: Judgement) -> dict[str, bool]:
    """What the rules say of the output and state of one run; nothing where nothing came back."""
    o, y = judgement.outcome, judgement.yardstick
    came = [] if o.output is None else [("output", o.output, y.output, o.output_dtype)]
    came += [] if o.final_state is None else [("state", o.final_state, y.state, o.state_dtype)]
    return _said(came, judgement.case) if came else {}


def of_gradients(judgement: GradientJudgement) -> dict[str, bool]:
    """The same for gradients."""
    case, y = judgement.case, judgement.yardstick
    came = [(f, x, y.values[f], case.dtype_of(f)) for f, x in judgement.outcome.gradients.items()]
    return _said(came, case, y.functional) if came else {}


def _said(
    came: Sequence[tuple[str, Array, Array, str]], case: Case, functional: Cotangent | None = None
) -> dict[str, bool]:
    try:
        formulas: Mapping[str, Array] = formula(case, functional)
    except (RuntimeError, ValueError):
        # An operation that torch lacks in this dtype, or an input its own formula refuses.
        formulas = {}
    return said([Tensor.of(*part, formulas.get(part[0])) for part in came])


def summary(runs: Sequence[tuple[str, Mapping[str, bool]]]) -> list[dict[str, Any]]:
    """The certificate's entries: per rule, what it says of all runs, given as (class, by rule)."""
    rows = []
    for rule in RULES:
        judged = [(name, found[rule.name]) for name, found in runs if rule.name in found]
        failing = [name for name, passes in judged if not passes]
        rows.append(
            {
                "name": rule.name,
                "rule": rule.text,
                "passes": not failing if judged else None,
                "inputs": len(judged),
                "failing": len(failing),
                "classes": list(dict.fromkeys(failing)),
            }
        )
    return rows


def _rms(x: Array) -> float:
    return float(np.sqrt(np.square(x).mean()))

"""The roundings of what a function computes of its inputs before its recurrence: gates, strengths, unit keys.

The inputs are those of the reference, so that without rounding nothing changes: what the function was handed
is found from them in float64, and its own operations on that are done again, each rounded.
"""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from verify.audit.convention import forms
from verify.audit.tolerance.rounding import StochasticRounding
from verify.numbers.formats import format_named

if TYPE_CHECKING:
    from verify.audit.tolerance.prediction import Algorithm

_LINEAR_FROM = 20.0
"""From here on softplus(x) is x, in torch as in the kernels."""


def prepared(
    arrays: dict[str, Tensor], algorithm: "Algorithm", mode: StochasticRounding
) -> dict[str, Tensor]:
    """The inputs as the function makes them; called inside ``mode``."""
    made = dict(arrays)
    if algorithm.gates.form == "step":
        # Two products whose factors are exact: the decay rate or the value, and the step.
        made |= {field: mode.round(made[field]) for field in ("g", "v")}
    elif "g" in made and algorithm.gates.form != "value":
        made["g"] = _gates(made["g"], algorithm.gates)
    if "beta" in made and algorithm.beta_form != "value":
        twice = 2.0 if algorithm.beta_form == "2*sigmoid" else 1.0
        with _disable_current_modes():
            x = torch.from_numpy(forms.beta_handed(algorithm.beta_form, made["beta"].numpy()))
        made["beta"] = twice * _sigmoid(x)
    if algorithm.qk_norm != "none":
        made |= {field: _normed(made[field], algorithm, mode) for field in ("q", "k")}
    return made


def _gates(g: Tensor, gates: forms.GateForm) -> Tensor:
    with _disable_current_modes():
        x = torch.from_numpy(gates.handed(g.numpy()))
        _, bias = gates.constants(g.numpy())
        a_log = torch.from_numpy(gates.a_log(g.shape[2]))
        a_log = (a_log[:, None] if g.ndim == 4 else a_log).expand_as(g).contiguous()
        biases = torch.from_numpy(np.broadcast_to(bias, g.shape).copy())
    rates, x = torch.exp(a_log), x + biases
    if gates.form == "sigmoid":
        return gates.lower_bound * _sigmoid(rates * x)
    small = torch.minimum(x, torch.full_like(x, _LINEAR_FROM))
    return -(rates * torch.where(x > _LINEAR_FROM, x, torch.log(1 + torch.exp(small))))


def _sigmoid(x: Tensor) -> Tensor:
    """By its formula, which errs more than a library's function."""
    return torch.ones_like(x) / (1 + torch.exp(-x))


def _normed(x: Tensor, algorithm: "Algorithm", mode: StochasticRounding) -> Tensor:
    """x times a number near 1: the rounded norm over the norm."""
    inverse = torch.rsqrt(_guarded((x * x).sum(-1, keepdim=True)))
    with _disable_current_modes():
        factor = inverse * _guarded((x * x).sum(-1, keepdim=True)).sqrt()
    made = x * factor
    stored = format_named(algorithm.norm_dtype or mode.target.name)
    if stored.precision >= mode.target.precision:
        return made
    with _disable_current_modes():
        return mode.to(stored).round(made)


def _guarded(squares: Tensor) -> Tensor:
    return torch.where(squares > 0, squares, torch.ones_like(squares))

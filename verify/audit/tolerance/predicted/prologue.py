"""The roundings of what a function computes of its inputs before its recurrence: gates, strengths, unit keys.

The inputs are those of the reference, so that without rounding nothing changes: what the function was handed
is found from them in float64, and its own operations on that are done again, each rounded.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from verify.audit.convention import forms
from verify.audit.tolerance.predicted.rounding import StochasticRounding
from verify.numbers.formats import format_named

if TYPE_CHECKING:
    from verify.audit.tolerance.predicted.prediction import Algorithm

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
        with _disable_current_modes():
            x, rates, bias = _gate_inputs(made["g"], algorithm.gates)
        made["g"] = gates_of(x, rates, bias, algorithm.gates)
    if "beta" in made and algorithm.beta_form != "value":
        with _disable_current_modes():
            x = torch.from_numpy(forms.beta_handed(algorithm.beta_form, made["beta"].numpy()))
        made["beta"] = strengths_of(x, algorithm.beta_form)
    if algorithm.qk_norm != "none":
        made |= {field: _normed(made[field], algorithm, mode) for field in ("q", "k")}
    return made


def _gate_inputs(g: Tensor, gates: forms.GateForm) -> tuple[Tensor, Tensor, Tensor]:
    _, bias = gates.constants(g.numpy())
    a_log = torch.from_numpy(gates.a_log(g.shape[2]))
    a_log = (a_log[:, None] if g.ndim == 4 else a_log).expand_as(g).contiguous()
    biases = torch.from_numpy(np.broadcast_to(bias, g.shape).copy())
    return torch.from_numpy(gates.handed(g.numpy())), a_log, biases


def gates_of(x: Tensor, a_log: Tensor, bias: Tensor, gates: forms.GateForm) -> Tensor:
    """Log decays from what is handed over, by the form that makes gates inside; of shapes that broadcast."""
    rates, x = torch.exp(a_log), x + bias
    if gates.form == "sigmoid":
        return gates.lower_bound * _sigmoid(rates * x)
    return -(rates * applied(_Softplus, x))


def strengths_of(x: Tensor, form: str) -> Tensor:
    """Write strengths from logits."""
    return (2.0 if form == "2*sigmoid" else 1.0) * _sigmoid(x)


def _sigmoid(x: Tensor) -> Tensor:
    return applied(_Sigmoid, x)


def applied(function: Any, *arguments: Any) -> Tensor:
    """The result of one of autograd's functions."""
    result: Tensor = function.apply(*arguments)
    return result


class _Sigmoid(torch.autograd.Function):
    """(1 + tanh(x/2)) / 2, as hardware has it, which errs more than 1 / (1 + e^-x); backward s (1 - s).

    Both formulas are exact at 0 and 1, and no tanh is larger than 1.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        t = torch.tanh(0.5 * x.abs()).clamp(max=1.0)
        s = 0.5 * torch.where(x < 0, torch.ones_like(t) - t, torch.ones_like(t) + t)
        ctx.save_for_backward(s)
        return s

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (s,) = ctx.saved_tensors
        passed: Tensor = gradient * ((torch.ones_like(s) - s) * s)
        return passed


class _Softplus(torch.autograd.Function):
    """log(1 + e^x); backward the sigmoid, which is finite for every x."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        small = torch.minimum(x, torch.full_like(x, _LINEAR_FROM))
        return torch.where(x > _LINEAR_FROM, x, torch.log(1 + torch.exp(small)))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return gradient * (torch.ones_like(x) / (1 + torch.exp(-x)))


def _normed(x: Tensor, algorithm: "Algorithm", mode: StochasticRounding) -> Tensor:
    """x times a number near 1: the rounded norm over the norm."""
    inverse = torch.rsqrt(_guarded((x * x).sum(-1, keepdim=True)))
    with _disable_current_modes():
        factor = inverse * _guarded((x * x).sum(-1, keepdim=True)).sqrt()
    return stored(x * factor, algorithm, mode)


def stored(x: Tensor, algorithm: "Algorithm", mode: StochasticRounding) -> Tensor:
    """Normed queries or keys in the format that they are kept in."""
    target = format_named(algorithm.norm_dtype or mode.target.name)
    if target.precision >= mode.target.precision:
        return x
    with _disable_current_modes():
        return mode.to(target).round(x)


def _guarded(squares: Tensor) -> Tensor:
    return torch.where(squares > 0, squares, torch.ones_like(squares))

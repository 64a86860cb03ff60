"""What a function makes of its inputs before its recurrence, and a sink, so that gradients pass back through.

As in `prologue`, but from what is really handed over, constants included, because gradients are of that.
Runs lie along the first axis; a constant has one copy for each.
"""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from verify.audit.tolerance.predicted.prologue import applied, gates_of, strengths_of
from verify.audit.tolerance.predicted.rounding import StochasticRounding
from verify.numbers.formats import Format, format_named

if TYPE_CHECKING:
    from verify.audit.tolerance.predicted.prediction import Algorithm


def made_of(
    handed: dict[str, Tensor], algorithm: "Algorithm", mode: StochasticRounding | None, runs: int
) -> dict[str, Tensor]:
    """The inputs of the recurrence that activations change; called inside ``mode``, None without rounding."""
    made: dict[str, Tensor] = {}
    gates = algorithm.gates
    if gates.form == "step":
        x = handed["g"]
        made["v"] = handed["v"] * x.unsqueeze(-1)
        made["g"] = _apart(x, runs).mul(_common(handed.get("A"), handed, gates.a_log, runs)).flatten(0, 1)
    elif "g" in handed and gates.form != "value":
        x = _apart(handed["g"], runs)
        rates = _common(handed.get("A_log"), handed, gates.a_log, runs)
        rates = rates.unsqueeze(-1) if x.ndim == 5 else rates
        channels = x.shape[4] if x.ndim == 5 else None
        bias = _common(handed.get("dt_bias"), handed, lambda heads: gates.bias(heads, channels), runs)
        made["g"] = gates_of(x, rates, bias, gates).flatten(0, 1)
    if algorithm.beta_form != "value" and "beta" in handed:
        made["beta"] = strengths_of(handed["beta"], algorithm.beta_form)
    if algorithm.qk_norm != "none":
        target = format_named(algorithm.norm_dtype) if algorithm.norm_dtype else None
        made |= {f: applied(_Unit, handed[f], algorithm.qk_norm_eps, target, mode) for f in ("q", "k")}
    return made


def _apart(x: Tensor, runs: int) -> Tensor:
    """[runs, B, T, HV, ...]"""
    return x.view(runs, -1, *x.shape[1:])


def _common(constant: Tensor | None, handed: dict[str, Tensor], stand_in: Any, runs: int) -> Tensor:
    """[runs, 1, 1, HV, ...]: a constant that is handed over, or the one the form has without it."""
    if constant is None:
        with _disable_current_modes():
            plain = torch.from_numpy(stand_in(handed["g"].shape[2]))
            constant = plain.expand(runs, *plain.shape).contiguous()
    return constant[:, None, None]


class _Unit(torch.autograd.Function):
    """x / sqrt(|x|^2 + eps), kept in a format, as its gradient is; backward (dy - y (y . dy)) / sqrt(...)."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, eps: float, target: Format | None, mode: StochasticRounding | None
    ) -> Tensor:
        squares = (x * x).sum(-1, keepdim=True) + eps
        inverse = torch.rsqrt(torch.where(squares > 0, squares, torch.ones_like(squares)))
        unit = _kept(x * inverse, target, mode)
        ctx.save_for_backward(unit, inverse)
        ctx.target, ctx.mode = target, mode
        return unit

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        unit, inverse = ctx.saved_tensors
        gradient = _kept(gradient, ctx.target, ctx.mode)
        return (gradient - unit * (unit * gradient).sum(-1, keepdim=True)) * inverse, None, None, None


def _kept(x: Tensor, target: Format | None, mode: StochasticRounding | None) -> Tensor:
    if mode is None or target is None or target.precision >= mode.target.precision:
        return x
    with _disable_current_modes():
        return mode.to(target).round(x)


def instead(x: Tensor, value: Tensor) -> Tensor:
    """Another value in the place of a tensor, whose gradient it takes."""
    return applied(_Instead, x, value)


class _Instead(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, value: Tensor) -> Tensor:
        return value

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


def with_sink(
    function: Any, q: Tensor, k: Tensor, v: Tensor, sink: Tensor, scale: float, **options: Any
) -> Any:
    """Attention with a sink per head as a key of its own before all others, without a value.

    The kernel's own gradient of a sink adds over sequences, which the runs are here. ``sink`` ``[runs, HV]``;
    queries have a channel of ones more, and the sink's key is its logit there.
    """
    runs, heads = sink.shape[0], q.shape[2]
    k, v = (x.repeat_interleave(heads // x.shape[2], 2) for x in (k, v))
    logits = sink[:, None].expand(runs, q.shape[0] // runs, heads).reshape(q.shape[0], 1, heads, 1)
    first = torch.cat([torch.zeros_like(k[:, :1]), logits], dim=-1)
    keys = torch.cat([first, torch.cat([k, torch.zeros_like(k[..., :1])], dim=-1)], dim=1)
    values = torch.cat([torch.zeros_like(v[:, :1]), v], dim=1)
    queries = torch.cat([q * scale, torch.ones_like(q[..., :1])], dim=-1)
    return function(queries, keys, values, scale=1.0, **options)

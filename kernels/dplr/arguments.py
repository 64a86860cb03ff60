"""Validation and preparation of the arguments of mechanisms with transitions diagonal plus rank one."""

from typing import NamedTuple

import torch
from torch import Tensor

from kernels import arguments
from kernels.arguments import working_dtype
from kernels.finite import check_finite


class Arguments(NamedTuple):
    """Checked arguments in the working precision, one query and key per value head.

    q [B, T, HV, K], already multiplied by the scale; k [B, T, HV, K]; v [B, T, HV, V]; g [B, T, HV, K] or
    [B, T, HV, 1], natural-log decay per token; a, b [B, T, HV, K] or None; state [N, HV, K, V]; cu_seqlens as
    given. They mean, per token, with S the state before,

    * a and b given: u = a^T S, then S = Diag(e^g) S + b u + k v^T;
    * b None: u = v^T + a^T S, then S = Diag(e^g) S + k u;
    * a and b None: S = Diag(e^g) S + k v^T;

    and o = S^T q in the end. ``a`` reads the state before its decay.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    g: Tensor
    a: Tensor | None
    b: Tensor | None
    state: Tensor
    cu_seqlens: Tensor | None


def prepare(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    g: Tensor,
    *,
    scale: float | None,
    initial_state: Tensor | None,
    cu_seqlens: Tensor | None,
    check: bool,
    dtype: torch.dtype | None = None,
) -> Arguments:
    """Check the arguments of DPLR and bring them to ``dtype`` (default: the working precision of ``v``).

    q, k [B, T, H, K]; v [B, T, HV, V]; a, b, g [B, T, HV, K]; the options, and what raises ValueError, are
    those of `kernels.arguments.prepare`.
    """
    prepared = prepare_common(
        q,
        k,
        v,
        g,
        scale=scale,
        initial_state=initial_state,
        cu_seqlens=cu_seqlens,
        check=check,
        dtype=dtype,
    )
    a, b = (bring(name, x, prepared.g, v, check) for name, x in (("a", a), ("b", b)))
    return prepared._replace(a=a, b=b)


def prepare_common(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    *,
    gate_per_channel: bool = True,
    scale: float | None,
    initial_state: Tensor | None,
    cu_seqlens: Tensor | None,
    qk_l2norm: bool = False,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    gate_lower_bound: float | None = None,
    check: bool,
    dtype: torch.dtype | None,
) -> Arguments:
    """As `kernels.arguments.prepare`, for mechanisms without a strength beta; a and b are left None."""
    prepared = arguments.prepare(
        q,
        k,
        v,
        g,
        no_strength(v),
        gate_per_channel=gate_per_channel,
        scale=scale,
        initial_state=initial_state,
        cu_seqlens=cu_seqlens,
        qk_l2norm=qk_l2norm,
        A_log=A_log,
        dt_bias=dt_bias,
        gate_lower_bound=gate_lower_bound,
        check=check,
        dtype=dtype,
    )
    return Arguments(*prepared.scaled()[:4], a=None, b=None, state=prepared.state, cu_seqlens=cu_seqlens)


def no_strength(v: Tensor) -> Tensor:
    """A strength that passes every check, for checks shared with the delta rule."""
    return v.new_ones(v.shape[:3])


def bring(name: str, x: Tensor, like: Tensor, v: Tensor, check: bool) -> Tensor:
    """An input per value head, checked, in the precision of ``like``, whose shape it must have.

    Raises ValueError, in one sentence that names the argument and its value, for a wrong shape, dtype (v's or
    the working precision of v is right) or device, and with ``check`` for an entry that is not finite.
    """
    if x.shape != like.shape:
        raise ValueError(f"{name} must have shape {list(like.shape)}, but its shape is {list(x.shape)}.")
    allowed = (v.dtype, working_dtype(v.dtype))
    if x.dtype not in allowed:
        choices = " or ".join(dict.fromkeys(map(str, allowed)))
        raise ValueError(f"{name} must be {choices} when v is {v.dtype}, but its dtype is {x.dtype}.")
    if x.device != v.device:
        raise ValueError(f"{name} must be on v's device {v.device}, but it is on {x.device}.")
    if check and not torch.compiler.is_compiling():
        check_finite(**{name: x})
    return x.to(like.dtype)

"""Validation and preparation of the arguments that every gated delta-rule kernel takes."""

import math
from typing import NamedTuple

import torch
from torch import Tensor


class Arguments(NamedTuple):
    """Checked arguments in the working precision, one query and key per value head.

    q [B, T, HV, K], already multiplied by the scale; k [B, T, HV, K]; v [B, T, HV, V];
    g [B, T, HV, K] or [B, T, HV, 1], natural-log decay per token; beta [B, T, HV]; state [B, HV, K, V].
    """

    q: Tensor
    k: Tensor
    v: Tensor
    g: Tensor
    beta: Tensor
    state: Tensor


def working_dtype(dtype: torch.dtype) -> torch.dtype:
    """The precision a kernel computes and keeps its state in: float64 for float64 inputs, else float32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def prepare(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    *,
    scale: float | None,
    initial_state: Tensor | None,
    gate_per_channel: bool,
    dtype: torch.dtype | None = None,
) -> Arguments:
    """Check the arguments and bring them to ``dtype`` (default: the working precision of ``v``).

    ``gate_per_channel`` says whether g is [B, T, HV, K] (KDA) or [B, T, HV] (GDN). The returned state
    never shares memory with ``initial_state``. Non-finite values are not searched for: they propagate.

    Raises ValueError, in one sentence that names the argument and its value, for a wrong shape, dtype or
    device, for HV not a multiple of H, for a gate above 0, and for beta outside [0, 2].
    """
    _check_shapes(q, k, v, g, beta, initial_state, gate_per_channel)
    _check_types(q, k, v, g, beta, initial_state, dtype)
    _check_values(g, beta, scale)
    dtype = dtype or working_dtype(v.dtype)
    batch, _, value_heads, values = v.shape
    keys = q.shape[-1]
    group = value_heads // q.shape[2]
    if initial_state is None:
        state = torch.zeros(batch, value_heads, keys, values, dtype=dtype, device=v.device)
    else:
        state = initial_state.to(dtype, copy=True)
    return Arguments(
        q=q.to(dtype).repeat_interleave(group, dim=2) * (keys**-0.5 if scale is None else scale),
        k=k.to(dtype).repeat_interleave(group, dim=2),
        v=v.to(dtype),
        g=g.to(dtype) if gate_per_channel else g.to(dtype).unsqueeze(-1),
        beta=beta.to(dtype),
        state=state,
    )


def _check_shapes(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    initial_state: Tensor | None,
    gate_per_channel: bool,
) -> None:
    for name, tensor, layout in (("q", q, "[B, T, H, K]"), ("v", v, "[B, T, HV, V]")):
        if tensor.ndim != 4:
            raise ValueError(
                f"{name} must have the 4 dimensions {layout}, but its shape is {list(tensor.shape)}."
            )
    batch, tokens, heads, keys = q.shape
    value_heads, values = v.shape[2:]
    if heads < 1 or keys < 1:
        raise ValueError(
            f"q must have at least one head and one key channel, but its shape is {list(q.shape)}."
        )
    if value_heads % heads:
        raise ValueError(f"v must have a multiple of q's {heads} heads, but it has {value_heads}.")
    per_head = (batch, tokens, value_heads)
    _check_shape("k", k, (batch, tokens, heads, keys))
    _check_shape("v", v, (*per_head, values))
    _check_shape("g", g, (*per_head, keys) if gate_per_channel else per_head)
    _check_shape("beta", beta, per_head)
    if initial_state is not None:
        _check_shape("initial_state", initial_state, (batch, value_heads, keys, values))


def _check_shape(name: str, tensor: Tensor, expected: tuple[int, ...]) -> None:
    if tensor.shape != expected:
        raise ValueError(f"{name} must have shape {list(expected)}, but its shape is {list(tensor.shape)}.")


def _check_types(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    initial_state: Tensor | None,
    dtype: torch.dtype | None,
) -> None:
    if not q.dtype.is_floating_point:
        raise ValueError(f"q must have a real floating-point dtype, but its dtype is {q.dtype}.")
    working = working_dtype(q.dtype)
    allowed = {"k": (q.dtype,), "v": (q.dtype,), "g": (q.dtype, working), "beta": (q.dtype, working)}
    allowed["initial_state"] = (working, dtype or working)
    tensors = {"k": k, "v": v, "g": g, "beta": beta}
    if initial_state is not None:
        tensors["initial_state"] = initial_state
    for name, tensor in tensors.items():
        if tensor.dtype not in allowed[name]:
            choices = " or ".join(dict.fromkeys(map(str, allowed[name])))
            raise ValueError(
                f"{name} must be {choices} when q is {q.dtype}, but its dtype is {tensor.dtype}."
            )
        if tensor.device != q.device:
            raise ValueError(f"{name} must be on q's device {q.device}, but it is on {tensor.device}.")


def _check_values(g: Tensor, beta: Tensor, scale: float | None) -> None:
    if (g > 0).any():
        raise ValueError(
            f"g must be a natural-log decay of at most 0, but its largest entry is {g.max().item()}."
        )
    for outside in (beta < 0, beta > 2):
        if outside.any():
            raise ValueError(f"beta must lie in [0, 2], but it contains {beta[outside][0].item()}.")
    if scale is not None and not math.isfinite(scale):
        raise ValueError(f"scale must be a finite number, but it is {scale}.")

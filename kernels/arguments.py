"""Validation and preparation of the arguments that every kernel of the delta-rule family takes."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from kernels.finite import check_finite
from kernels.gates import l2_normalise, log_decay
from kernels.packing import check_offsets, sequence_offsets


class Arguments(NamedTuple):
    """Checked arguments in the working precision, one query and key per value head.

    q [B, T, HV, K], to be multiplied by ``scale``; k [B, T, HV, K]; v [B, T, HV, V]; g [B, T, HV, K] or
    [B, T, HV, 1], natural-log decay per token, or None for no decay; beta [B, T, HV]; state [N, HV, K, V];
    cu_seqlens as given.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    g: Tensor | None
    beta: Tensor
    state: Tensor
    cu_seqlens: Tensor | None
    scale: float

    def scaled(self) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor, Tensor, Tensor | None]:
        """All but the scale, q multiplied by it."""
        return self.q * self.scale, *self[1:7]


def working_dtype(dtype: torch.dtype) -> torch.dtype:
    """The precision a kernel computes and keeps its state in: float64 for float64 inputs, else float32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def as_dtype(x: Tensor, dtype: torch.dtype) -> Tensor:
    """x in ``dtype``: x itself where it is (a decoder makes this call for every token)."""
    return x if x.dtype == dtype else x.to(dtype)


def prepare(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None,
    beta: Tensor,
    *,
    gate_per_channel: bool = False,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    qk_l2norm: bool = False,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    gate_lower_bound: float | None = None,
    beta_logits: bool = False,
    check: bool = False,
    dtype: torch.dtype | None = None,
) -> Arguments:
    """Check the arguments and bring them to ``dtype`` (default: the working precision of ``v``).

    q, k [B, T, H, K]; v [B, T, HV, V]; beta [B, T, HV]; g [B, T, HV, K] if ``gate_per_channel``, [B, T, HV]
    if not, None for a mechanism without decay; value head hv reads query and key head hv // (HV // H).

    * ``scale`` multiplies q; default K**-0.5.
    * ``initial_state`` [N, HV, K, V] in the working precision, default zero, N the number of sequences:
      B, or with ``cu_seqlens`` (offsets [N + 1]; B must be 1) the number of sequences packed along T.
    * ``qk_l2norm`` divides q and k by sqrt(sum x^2 + 1e-6) in ``dtype``.
    * ``A_log`` [HV] makes g a raw gate, activated by `kernels.gates.log_decay` with ``dt_bias`` ([HV], or
      [HV, K] or [HV * K] if ``gate_per_channel``) and ``gate_lower_bound`` < 0.
    * ``beta_logits`` makes beta = sigmoid of what is given, in ``dtype``.
    * ``check`` raises for input that is not finite (a gate of -inf is valid: it forgets). Without it such
      values propagate.

    Raises ValueError, in one sentence that names the argument and its value, for a wrong shape, dtype or
    device, for HV not a multiple of H, for a gate above 0, for beta outside [0, 2] and for wrong offsets.
    Values are not looked at while torch.compile or torch.export trace.
    """
    sequences = q.shape[0] if q.ndim else 0
    if cu_seqlens is not None:
        check_offsets(cu_seqlens, sequences)
        sequences = len(cu_seqlens) - 1
    _check_shapes(q, k, v, g, beta, initial_state, gate_per_channel, sequences)
    _check_types(q, k, v, g, beta, initial_state, dtype)
    _check_options(scale, g, A_log, dt_bias, gate_lower_bound)
    if check and not torch.compiler.is_compiling():
        check_finite(q=q, k=k, v=v, g=g, beta=beta, initial_state=initial_state)
    dtype = dtype or working_dtype(v.dtype)
    value_heads, keys = v.shape[2], q.shape[-1]
    group = value_heads // q.shape[2]
    if initial_state is None:
        state = torch.zeros(sequences, value_heads, keys, v.shape[-1], dtype=dtype, device=v.device)
    else:
        state = as_dtype(initial_state, dtype)
    if not q.dtype == beta.dtype == dtype:
        q, k, v, beta = (x.to(dtype) for x in (q, k, v, beta))
    if qk_l2norm:
        q, k = l2_normalise(q), l2_normalise(k)
    if g is not None:
        g = as_dtype(g, dtype)
        g = g if gate_per_channel else g.unsqueeze(-1)
        if A_log is not None:
            g = _activated(g, A_log, dt_bias, gate_lower_bound)
    if beta_logits:
        beta = beta.sigmoid()
    if not torch.compiler.is_compiling():
        check_values(g, beta, cu_seqlens)
    if group > 1:
        q, k = q.repeat_interleave(group, dim=2), k.repeat_interleave(group, dim=2)
    return Arguments(q, k, v, g, beta, state, cu_seqlens, keys**-0.5 if scale is None else scale)


def check_values(g: Tensor | None, beta: Tensor, cu_seqlens: Tensor | None) -> None:
    """Raise ValueError for a decay above 0, beta outside [0, 2] or wrong offsets. NaN passes, and so does the
    meta device, which has no values."""
    if beta.is_meta:
        return
    if g is not None and g.numel() and (largest := g.max().item()) > 0:
        raise ValueError(f"g must be a natural-log decay of at most 0, but its largest entry is {largest}.")
    if beta.numel():
        least, largest = map(Tensor.item, torch.aminmax(beta))
        if least < 0 or largest > 2:
            wrong = least if least < 0 else largest
            raise ValueError(f"beta must lie in [0, 2], but it contains {wrong}.")
    if cu_seqlens is not None:
        sequence_offsets(cu_seqlens, beta.shape[1])


def _activated(g: Tensor, A_log: Tensor, dt_bias: Tensor | None, lower_bound: float | None) -> Tensor:
    """The decay [B, T, HV, K or 1] of the raw gate g of that shape."""
    heads, channels = g.shape[2:]
    if A_log.shape != (heads,):
        raise ValueError(f"A_log must have shape {[heads]}, but its shape is {list(A_log.shape)}.")
    if dt_bias is not None:
        if dt_bias.numel() != heads * channels:
            raise ValueError(
                f"dt_bias must have {heads * channels} entries, but its shape is {list(dt_bias.shape)}."
            )
        dt_bias = dt_bias.to(g.dtype).reshape(heads, channels)
    return log_decay(g, A_log.to(g.dtype).unsqueeze(-1), dt_bias, lower_bound)


def _check_shapes(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None,
    beta: Tensor,
    initial_state: Tensor | None,
    gate_per_channel: bool,
    sequences: int,
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
    for name, tensor, expected in (
        ("k", k, q.shape),
        ("v", v, (*per_head, values)),
        ("g", g, (*per_head, keys) if gate_per_channel else per_head),
        ("beta", beta, per_head),
        ("initial_state", initial_state, (sequences, value_heads, keys, values)),
    ):
        if tensor is not None and tensor.shape != expected:
            raise ValueError(
                f"{name} must have shape {list(expected)}, but its shape is {list(tensor.shape)}."
            )


def _check_types(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None,
    beta: Tensor,
    initial_state: Tensor | None,
    dtype: torch.dtype | None,
) -> None:
    if not q.dtype.is_floating_point:
        raise ValueError(f"q must have a real floating-point dtype, but its dtype is {q.dtype}.")
    working = working_dtype(q.dtype)
    either, device = (q.dtype, working), q.device
    for name, tensor, allowed in (
        ("k", k, (q.dtype,)),
        ("v", v, (q.dtype,)),
        ("g", g, either),
        ("beta", beta, either),
        ("initial_state", initial_state, (working, dtype or working)),
    ):
        if tensor is None:
            continue
        if tensor.dtype not in allowed:
            choices = " or ".join(dict.fromkeys(map(str, allowed)))
            raise ValueError(
                f"{name} must be {choices} when q is {q.dtype}, but its dtype is {tensor.dtype}."
            )
        if tensor.device != device:
            raise ValueError(f"{name} must be on q's device {device}, but it is on {tensor.device}.")


def _check_options(
    scale: float | None,
    g: Tensor | None,
    A_log: Tensor | None,
    dt_bias: Tensor | None,
    gate_lower_bound: float | None,
) -> None:
    if scale is not None and not math.isfinite(scale):
        raise ValueError(f"scale must be a finite number, but it is {scale}.")
    if A_log is None:
        for name, value in (("dt_bias", dt_bias), ("gate_lower_bound", gate_lower_bound)):
            if value is not None:
                raise ValueError(f"{name} needs A_log, which says that g is a raw gate, but A_log is None.")
    if gate_lower_bound is not None and not (math.isfinite(gate_lower_bound) and gate_lower_bound < 0):
        raise ValueError(f"gate_lower_bound must be a finite number below 0, but it is {gate_lower_bound}.")

"""Validation and preparation of the arguments of Mamba-2."""

import torch
from torch import Tensor

from kernels.dplr.arguments import Arguments, prepare_common


def prepare(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    *,
    scale: float,
    initial_state: Tensor | None,
    cu_seqlens: Tensor | None,
    A_log: Tensor | None,
    dt_bias: Tensor | None,
    check: bool,
    dtype: torch.dtype | None = None,
) -> Arguments:
    """Check the arguments and bring them to ``dtype`` (default: the working precision of ``v``).

    q, k [B, T, H, K]; v [B, T, HV, V]; g [B, T, HV]. With ``A_log`` [HV], g is the raw step of Mamba-2: with
    dt = softplus(g + dt_bias), the decay is -e^A_log dt and the value dt v. The other options, and what
    raises ValueError, are those of `kernels.arguments.prepare`.
    """
    prepared = prepare_common(
        q,
        k,
        v,
        g,
        gate_per_channel=False,
        scale=scale,
        initial_state=initial_state,
        cu_seqlens=cu_seqlens,
        A_log=A_log,
        dt_bias=dt_bias,
        check=check,
        dtype=dtype,
    )
    if A_log is None:
        return prepared
    raw = g.to(prepared.v.dtype)
    if dt_bias is not None:
        raw = raw + dt_bias.to(raw.dtype).reshape(-1)
    step = torch.logaddexp(raw, torch.zeros_like(raw)).unsqueeze(-1)
    return prepared._replace(v=step * prepared.v)

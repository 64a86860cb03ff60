"""Validation and preparation of the arguments of GDN-2."""

from typing import NamedTuple

import torch
from torch import Tensor

from kernels.dplr import arguments as dplr


class Arguments(NamedTuple):
    """Checked arguments in the working precision, one query and key per value head.

    q [B, T, HV, K], already multiplied by the scale; k, g, b [B, T, HV, K]; v, w [B, T, HV, V]; state
    [N, HV, K, V]; cu_seqlens as given.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    g: Tensor
    b: Tensor
    w: Tensor
    state: Tensor
    cu_seqlens: Tensor | None

    def as_dplr(self) -> dplr.Arguments:
        """Reading the decayed state at b * k is reading the state before it at e^g * b * k."""
        q, k, v, g, b, w, state, cu_seqlens = self
        return dplr.Arguments(
            q, k, w * v, g, a=-(g.exp() * b * k), b=None, state=state, cu_seqlens=cu_seqlens
        )


def prepare(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    b: Tensor,
    w: Tensor,
    *,
    scale: float | None,
    initial_state: Tensor | None,
    cu_seqlens: Tensor | None,
    qk_l2norm: bool,
    A_log: Tensor | None,
    dt_bias: Tensor | None,
    gate_lower_bound: float | None,
    check: bool,
    dtype: torch.dtype | None = None,
) -> Arguments:
    """Check the arguments and bring them to ``dtype`` (default: the working precision of ``v``).

    q, k [B, T, H, K]; v, w [B, T, HV, V]; g, b [B, T, HV, K]; the options, and what raises ValueError, are
    those of `kernels.arguments.prepare`, with b and w as beta is there.
    """
    prepared = dplr.prepare_common(
        q,
        k,
        v,
        g,
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
    b, w = dplr.bring("b", b, prepared.g, v, check), dplr.bring("w", w, prepared.v, v, check)
    if not torch.compiler.is_compiling():
        for name, x in (("b", b), ("w", w)):
            outside = (x < 0) | (x > 2)
            if outside.any():
                raise ValueError(f"{name} must lie in [0, 2], but it contains {x[outside][0].item()}.")
    return Arguments(*prepared[:4], b, w, prepared.state, cu_seqlens)

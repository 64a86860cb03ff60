"""Mamba-2 in float64, one token at a time: the definition that the other forms are held against."""

import torch
from torch import Tensor

from kernels.mamba2.arguments import prepare
from kernels.recurrence import scan_sequences


def reference_mamba2(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    *,
    scale: float = 1.0,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    check: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Mamba-2's state-space duality, computed and returned in float64 whatever the input dtype.

    Per token, with S [K, V]: S = e^g S + k v^T; o = S^T (scale q). In the names of Mamba-2 (arXiv
    2405.21060), its state transposed: q is C, k is B, v is x dt, g is A dt. Its skip D x and its output gate
    are not part of it.

    q, k [B, T, H, K]; v [B, T, HV, V]; value head hv reads query and key head hv // (HV // H). g [B, T, HV],
    natural-log decay <= 0 (-inf forgets); initial_state [N, HV, K, V], default zero; N = B, or the number of
    sequences packed along T (B = 1) when ``cu_seqlens`` [N + 1] gives their offsets. ``scale`` defaults to 1:
    Mamba-2 has none. With ``A_log`` [HV], g is the raw step instead and ``dt_bias`` [HV] its bias: see
    `kernels.mamba2.arguments.prepare`.

    Returns o [B, T, HV, V] and the final state [N, HV, K, V], or None unless ``output_final_state``. Raises
    ValueError as `kernels.mamba2.arguments.prepare` does. Non-finite inputs propagate unless ``check``.
    """
    arguments = prepare(
        q,
        k,
        v,
        g,
        scale=scale,
        initial_state=initial_state,
        cu_seqlens=cu_seqlens,
        A_log=A_log,
        dt_bias=dt_bias,
        check=check,
        dtype=torch.float64,
    )
    o, state = scan_sequences(_definition, arguments)
    return o, state if output_final_state else None


def _definition(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, a: None, b: None, state: Tensor
) -> tuple[Tensor, Tensor]:
    outputs = []
    for t in range(v.shape[1]):
        state = torch.einsum("bhz,bhkv->bhkv", g[:, t].exp(), state)
        state = state + torch.einsum("bhk,bhv->bhkv", k[:, t], v[:, t])
        outputs.append(torch.einsum("bhkv,bhk->bhv", state, q[:, t]))
    return (torch.stack(outputs, dim=1) if outputs else torch.empty_like(v)), state

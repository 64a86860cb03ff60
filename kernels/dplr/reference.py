"""DPLR in float64, one token at a time: the definition that the other forms are held against."""

import torch
from torch import Tensor

from kernels.dplr.arguments import prepare
from kernels.recurrence import scan_sequences


def reference_dplr(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    a: Tensor,
    b: Tensor,
    g: Tensor,
    *,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    check: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """The generalized delta rule (DPLR), computed and returned in float64 whatever the input dtype.

    Per token, with S [K, V]: u = a^T S; S = Diag(e^g) S + b u + k v^T; o = S^T (scale q), where ``a`` reads
    the state before its decay, as in flash-linear-attention and RWKV-7 (arXiv 2503.14456). Kimi Delta
    Attention is a = -beta e^g k, b = k, k and beta v as key and value.

    q, k [B, T, H, K]; v [B, T, HV, V]; value head hv reads query and key head hv // (HV // H). a, b [B, T,
    HV, K]; g [B, T, HV, K], natural-log decay <= 0 (-inf forgets); initial_state [N, HV, K, V], default zero;
    N = B, or the number of sequences packed along T (B = 1) when ``cu_seqlens`` [N + 1] gives their offsets.
    ``scale`` defaults to K**-0.5.

    Returns o [B, T, HV, V] and the final state [N, HV, K, V], or None unless ``output_final_state``. Raises
    ValueError as `kernels.dplr.arguments.prepare` does. Non-finite inputs propagate unless ``check``.
    """
    arguments = prepare(
        q,
        k,
        v,
        a,
        b,
        g,
        scale=scale,
        initial_state=initial_state,
        cu_seqlens=cu_seqlens,
        check=check,
        dtype=torch.float64,
    )
    o, state = scan_sequences(_definition, arguments)
    return o, state if output_final_state else None


def _definition(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, a: Tensor, b: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    outputs = []
    for t in range(v.shape[1]):
        read = torch.einsum("bhkv,bhk->bhv", state, a[:, t])
        state = torch.einsum("bhk,bhkv->bhkv", g[:, t].exp(), state)
        state = state + torch.einsum("bhk,bhv->bhkv", b[:, t], read)
        state = state + torch.einsum("bhk,bhv->bhkv", k[:, t], v[:, t])
        outputs.append(torch.einsum("bhkv,bhk->bhv", state, q[:, t]))
    return (torch.stack(outputs, dim=1) if outputs else torch.empty_like(v)), state

"""GDN in float64, one token at a time: the definition that the other forms are held against."""

import torch
from torch import Tensor

from kernels.arguments import prepare


def reference_gdn(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    beta: Tensor,
    *,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Gated DeltaNet, computed and returned in float64 whatever the input dtype.

    Per token, with S [K, V] (Gated DeltaNet, arXiv 2412.06464, gated delta rule):
    S' = e^g S; S = S' + beta k (v - S'^T k)^T; o = S^T (scale q).

    q, k [B, T, H, K]; v [B, T, HV, V]; g [B, T, HV], natural-log decay <= 0 (-inf forgets);
    beta [B, T, HV] in [0, 2]; initial_state [B, HV, K, V], in the working dtype or float64, default zero.
    Value head hv reads query and key head hv // (HV // H). ``scale`` defaults to K**-0.5.

    Returns o [B, T, HV, V] and the final state [B, HV, K, V], or None unless ``output_final_state``.
    Raises ValueError as ``kernels.arguments.prepare`` does. Non-finite inputs propagate.
    """
    q, k, v, g, beta, state = prepare(
        q,
        k,
        v,
        g,
        beta,
        scale=scale,
        initial_state=initial_state,
        gate_per_channel=False,
        dtype=torch.float64,
    )
    outputs = []
    for t in range(v.shape[1]):
        state = torch.einsum("bhz,bhkv->bhkv", g[:, t].exp(), state)
        error = v[:, t] - torch.einsum("bhkv,bhk->bhv", state, k[:, t])
        state = state + torch.einsum("bh,bhk,bhv->bhkv", beta[:, t], k[:, t], error)
        outputs.append(torch.einsum("bhkv,bhk->bhv", state, q[:, t]))
    o = torch.stack(outputs, dim=1) if outputs else torch.empty_like(v)
    return o, state if output_final_state else None

"""GDN in float64, one token at a time: the definition that the other forms are held against."""

import torch
from torch import Tensor

from kernels.arguments import prepare
from kernels.recurrence import scan_sequences


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
    cu_seqlens: Tensor | None = None,
    qk_l2norm: bool = False,
    A_log: Tensor | None = None,
    dt_bias: Tensor | None = None,
    gate_lower_bound: float | None = None,
    beta_logits: bool = False,
    check: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Gated DeltaNet, computed and returned in float64 whatever the input dtype.

    Per token, with S [K, V], Gated DeltaNet (arXiv 2412.06464, gated delta rule):
    S' = e^g S; S = S' + beta k (v - S'^T k)^T; o = S^T (scale q).

    q, k [B, T, H, K]; v [B, T, HV, V]; value head hv reads query and key head hv // (HV // H).
    g [B, T, HV], natural-log decay <= 0 (-inf forgets);
    beta [B, T, HV] in [0, 2]; initial_state [N, HV, K, V], default zero; N = B, or
    the number of sequences packed along T (B = 1) when ``cu_seqlens`` [N + 1] gives their offsets.
    ``qk_l2norm``, ``A_log``, ``dt_bias``, ``gate_lower_bound``, ``beta_logits`` and ``check``: see
    `kernels.arguments.prepare`.

    Returns o [B, T, HV, V] and the final state [N, HV, K, V], or None unless ``output_final_state``. Raises
    ValueError as `kernels.arguments.prepare` does. Non-finite inputs propagate unless ``check``.
    """
    arguments = prepare(
        q,
        k,
        v,
        g,
        beta,
        gate_per_channel=False,
        scale=scale,
        initial_state=initial_state,
        cu_seqlens=cu_seqlens,
        qk_l2norm=qk_l2norm,
        A_log=A_log,
        dt_bias=dt_bias,
        gate_lower_bound=gate_lower_bound,
        beta_logits=beta_logits,
        check=check,
        dtype=torch.float64,
    )
    o, state = scan_sequences(_definition, arguments.scaled())
    return o, state if output_final_state else None


def _definition(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    outputs = []
    for t in range(v.shape[1]):
        state = torch.einsum("bhz,bhkv->bhkv", g[:, t].exp(), state)
        error = v[:, t] - torch.einsum("bhkv,bhk->bhv", state, k[:, t])
        state = state + torch.einsum("bh,bhk,bhv->bhkv", beta[:, t], k[:, t], error)
        outputs.append(torch.einsum("bhkv,bhk->bhv", state, q[:, t]))
    return (torch.stack(outputs, dim=1) if outputs else torch.empty_like(v)), state

"""Performer attention in float64: what the other forms are held against."""

import torch
from torch import Tensor

from kernels.linear.arguments import State
from kernels.linear.reference import reference_linear
from kernels.performer.arguments import prepare


def reference_performer(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    projection: Tensor,
    *,
    scale: float | None = None,
    initial_state: tuple[Tensor, Tensor] | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    check: bool = False,
) -> tuple[Tensor, State | None]:
    """Performer attention, computed and returned in float64 whatever the input dtype.

    o_i = sum_{j <= i} w_ij v_j / sum_{j <= i} w_ij with w_ij = phi(q_i).phi(k_j) (Choromanski et al., arXiv
    2009.14794, Eq. 1 and Lemma 1), phi as in ``kernels.performer.features.positive_features``. As the number
    of features grows this tends to causal softmax attention, ``kernels.softmax.reference.reference_softmax``.

    q, k [B, T, H, K]; v [B, T, HV, V]; projection [M, K], from ``random_projection``. Value head hv reads
    query and key head hv // (HV // H). ``scale`` > 0 defaults to K**-0.5. The states are pairs (S [N, HV, M,
    V], z [N, H, M]) as in ``kernels.linear.reference.reference_linear``, where N and ``cu_seqlens`` are told.

    Returns o [B, T, HV, V] and the final state, or None unless ``output_final_state``. Raises ValueError as
    ``kernels.performer.arguments`` and ``kernels.linear.arguments`` do, with ``check`` also for features or
    values that are not finite.
    """
    query, key = prepare(q, k, projection, scale, torch.float64)
    o, state = reference_linear(
        query,
        key,
        v.to(query.dtype),
        scale=1.0,
        normalise=True,
        initial_state=initial_state,
        output_final_state=output_final_state,
        cu_seqlens=cu_seqlens,
        check=check,
    )
    return o, state

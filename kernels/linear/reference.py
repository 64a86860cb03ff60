"""Linear attention in float64 from the whole score matrix: what the other forms are held against."""

import torch
from torch import Tensor

from kernels.linear.arguments import State, finish, prepare, sequences
from kernels.linear.features import FeatureMap


def reference_linear(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    scale: float | None = None,
    feature_map: FeatureMap = "identity",
    normalise: bool = False,
    initial_state: State | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    check: bool = False,
) -> tuple[Tensor, State | None]:
    """Linear attention, computed and returned in float64 whatever the input dtype.

    o_i = sum_{j <= i} w_ij v_j with w_ij = scale phi(q_i).phi(k_j), divided by sum_j w_ij when ``normalise``
    (Katharopoulos et al., arXiv 2006.16236, Eq. 5 with a causal sum); a row whose sum is exactly 0 gives 0.
    Both sums factor through S = sum phi(k_j) v_j^T and z = sum phi(k_j) by claim linear.associativity.

    q, k [B, T, H, K]; v [B, T, HV, V]; value head hv reads query and key head hv // (HV // H).
    ``feature_map`` phi is "identity", "elu+1", "relu", or a function from [B, T, H, K] to [B, T, H, K'].
    ``scale`` defaults to K**-0.5 and cancels when ``normalise``. initial_state and the final state are
    S [N, HV, K', V], with ``normalise`` the pair (S, z [N, H, K']); N is B, or the number of sequences packed
    along T under bounds ``cu_seqlens`` [N + 1] (then B = 1).

    Returns o [B, T, HV, V] and the final state, or None unless ``output_final_state``. Raises ValueError as
    ``kernels.linear.arguments`` does, with ``check`` also for non-finite input.
    """
    arguments = prepare(
        q,
        k,
        v,
        scale=scale,
        feature_map=feature_map,
        normalise=normalise,
        initial_state=initial_state,
        cu_seqlens=cu_seqlens,
        check=check,
        dtype=torch.float64,
    )
    outputs, states = [], []
    for run, tokens in sequences(cu_seqlens, q.shape[1]):
        query, key, value = (x[:, :, tokens] for x in arguments[:3])
        state = arguments.state[run]
        outputs.append(query @ state + (query @ key.mT).tril() @ value)
        states.append(state + key.mT @ value)
    return finish(torch.cat(outputs, dim=2), torch.cat(states), v, normalise, output_final_state)

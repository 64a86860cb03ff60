"""Linear attention one token at a time, in the working precision: what a decoder runs."""

import torch
from torch import Tensor

from kernels.linear.arguments import State, finish, prepare, sequences
from kernels.linear.features import FeatureMap


def recurrent_linear(
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
    """Linear attention, token by token, in float32, or in float64 for float64 inputs.

    Per token S <- S + phi(k) v^T, then o = S^T (scale phi(q)): the state-first side of claims
    linear.associativity and chunk.knob. Options, shapes and conventions are those of
    ``kernels.linear.reference.reference_linear``. Differentiable by autograd, with one state kept per token.

    Returns o [B, T, HV, V] in v's dtype and the final state in the working precision, or None unless
    ``output_final_state``. Raises ValueError as ``kernels.linear.arguments`` does, with ``check`` also for
    non-finite input, which otherwise propagates to later outputs only.
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
    )
    outputs, states = [arguments.v[:, :, :0]], []
    for run, tokens in sequences(cu_seqlens, q.shape[1]):
        state = arguments.state[run]
        for t in range(tokens.start, tokens.stop):
            query, key, value = (x[:, :, t : t + 1] for x in arguments[:3])
            state = state + key.mT @ value
            outputs.append(query @ state)
        states.append(state)
    o, final = finish(torch.cat(outputs, dim=2), torch.cat(states), v, normalise, output_final_state)
    return o.to(v.dtype), final

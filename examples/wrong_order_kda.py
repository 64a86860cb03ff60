"""A kernel that is wrong on purpose: the erase reads the state before it has decayed.

It agrees with KDA whenever all gates are 0, which is why a test without decay never sees the fault.
`make run` certifies it to show what a refutation looks like.
"""

import torch


def wrong_order_kda(q, k, v, g, beta, *, scale=None, initial_state=None, output_final_state=False):
    """KDA with the erase and the decay exchanged.

    Shapes: q, k [B, T, H, K]; v [B, T, HV, V]; g [B, T, HV, K]; beta [B, T, HV].
    """
    heads = v.shape[2] // q.shape[2]
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    q, k = (x.repeat_interleave(heads, dim=2).float() for x in (q, k))
    state = q.new_zeros(q.shape[0], v.shape[2], q.shape[-1], v.shape[-1])
    if initial_state is not None:
        state = initial_state.float().clone()
    rows = []
    for t in range(q.shape[1]):
        read = torch.einsum("bhk,bhkv->bhv", k[:, t], state)
        write = beta[:, t, :, None].float() * (v[:, t].float() - read)
        state = state * g[:, t, :, :, None].float().exp() + k[:, t, :, :, None] * write[:, :, None, :]
        rows.append(torch.einsum("bhk,bhkv->bhv", scale * q[:, t], state))
    output = torch.stack(rows, dim=1) if rows else v.new_zeros(v.shape)
    return output.to(v.dtype), state if output_final_state else None

"""Model of kernels that invert I + L by doubling: (I - L)(I + L^2)(I + L^4)..., L strictly lower.

Exact in exact arithmetic, because L to the power of its size is 0; but powers of L outgrow the inverse when
keys are nearly identical, and their rounding errors with them (claim kda.neumann-exact-unstable). Transcribed
here because no kernel of this project computes so.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


def doubling_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None = None,
    beta: Tensor | None = None,
    *,
    scale: float,
    chunk_size: int,
    initial_state: Tensor | None = None,
    output_final_state: bool = True,
) -> tuple[Tensor, Tensor]:
    """The delta rule, gated per head, per channel or not at all, in chunks; shapes as in `kernels.kda`.

    With E = I + L, L = StrictTril(Diag(beta) Scores(K, K)): W = E^-1 Diag(beta) (V - (e^G K) S),
    O = (e^G Q) S + Tril(Scores(Q, K)) W, S_next = Diag(e^{G_C}) S + (e^{G_C - G} K)^T W
    (Gated DeltaNet, arXiv 2412.06464).
    """
    assert beta is not None
    group = v.shape[2] // q.shape[2]
    q, k = (x.repeat_interleave(group, dim=2).transpose(1, 2) for x in (q * scale, k))
    v, strength = v.transpose(1, 2), beta.transpose(1, 2).unsqueeze(-1)
    gates = torch.zeros_like(strength) if g is None else g.transpose(1, 2)
    gates = gates.unsqueeze(-1) if gates.ndim == 3 else gates
    state = v.new_zeros(*v.shape[:2], k.shape[-1], v.shape[-1]) if initial_state is None else initial_state
    outputs = [v[:, :, :0]]
    for start in range(0, v.shape[2], chunk_size):
        rows = slice(start, min(start + chunk_size, v.shape[2]))
        output, state = _chunk([x[:, :, rows] for x in (q, k, v, gates, strength)], state)
        outputs.append(output)
    return torch.cat(outputs, dim=2).transpose(1, 2), state


def _chunk(rows: Sequence[Tensor], state: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs of one chunk and the state after it, from q, k, v, gates and strengths [B, HV, C, ...]."""
    q, k, v, gates, strength = rows
    since, into = _exponents(gates)
    start = into.exp()
    queries, keys = (_scores(x, k, since) for x in (q, k))
    lower = (strength * keys).tril(-1)
    right = strength * (v - (start * k) @ state)
    writes = doubled(lower) @ right
    output = (start * q) @ state + queries @ writes
    carried = start[:, :, -1].unsqueeze(-1) * state
    return output, carried + (since[-1].exp() * k).mT @ writes


def _exponents(gates: Tensor) -> tuple[list[Tensor], Tensor]:
    """Per row i the sums of the gates after each row j <= i, up to i, and of all gates up to each row."""
    since: list[Tensor] = []
    into = [torch.zeros_like(gates[:, :, :1])]
    before = gates[:, :, :0]
    for i in range(gates.shape[2]):
        gate = gates[:, :, i : i + 1]
        before = torch.cat([before + gate, torch.zeros_like(gate)], dim=2)
        since.append(before)
        into.append(into[-1] + gate)
    return since, torch.cat(into[1:], dim=2)


def _scores(x: Tensor, k: Tensor, since: list[Tensor]) -> Tensor:
    """Sum over the channels of x_i k_j e^(g_{j+1} + ... + g_i), for j <= i, else 0."""
    rows = len(since)
    if since[-1].shape[-1] == 1:
        sums = [torch.nn.functional.pad(row.mT, (0, rows - i)) for i, row in enumerate(since, 1)]
        return ((x @ k.mT) * torch.cat(sums, dim=2).exp()).tril()
    products = [
        torch.nn.functional.pad(x[:, :, i - 1 : i] @ (k[:, :, :i] * row.exp()).mT, (0, rows - i))
        for i, row in enumerate(since, 1)
    ]
    return torch.cat(products, dim=2)


def doubled(lower: Tensor) -> Tensor:
    """(I + lower)^-1 by repeated squaring."""
    eye = torch.zeros_like(lower)
    eye.diagonal(dim1=-2, dim2=-1).fill_(1)
    power, inverse, covered = lower, eye - lower, 2
    while covered < lower.shape[-1]:
        power = power @ power
        inverse = inverse @ (eye + power)
        covered *= 2
    return inverse

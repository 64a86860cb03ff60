"""The adjoint of the chunkwise delta rule: explicit gradients from one state and one error row per token."""

from typing import NamedTuple

import torch
from torch import Tensor

from kernels.blocks import unit_lower_inverse
from kernels.chunkwise import Decay, decayed, groups, steps
from kernels.packing import Chunks, chunk_count


class Gradients(NamedTuple):
    """Gradients of the prepared arguments, each of its argument's shape; g None if there is no decay."""

    q: Tensor
    k: Tensor
    v: Tensor
    g: Tensor | None
    beta: Tensor
    state: Tensor


def backward(
    d_o: Tensor,
    d_final: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None,
    beta: Tensor,
    states: Tensor,
    errors: Tensor,
    cu_seqlens: Tensor | None,
    scale: float,
    chunk_size: int,
) -> Gradients:
    """Gradients from those of the outputs and of the final state, by a scan over the chunks from the end.

    With the names of `kernels.chunkwise.forward`, N the inverse there, dO the gradient of the outputs times
    the scale and dS that of the state after the chunk: dW = Tril(Scores(Q, K))^T dO + (e^{G_C - G} K) dS,
    dv = Y = N^T Diag(beta) dW,
    dbeta = rows of E . (dW - StrictTril(Scores(K, K))^T Y), dScores(Q, K) = Tril(dO W^T),
    dScores(K, K) = -StrictTril(Y W^T), and the gradient of the state before is
    (e^G Q)^T dO - (e^G K)^T Y + Diag(e^{G_C}) dS. A gate gets the gradients of exactly the exponents that
    contain it, added up, so that a gate that forgets everything gets 0. Scores and N are formed again.
    """
    chunks = Chunks(v.shape[1], chunk_size, cu_seqlens)
    count = chunk_count(v.shape[1], chunk_size, cu_seqlens)
    states, errors = (x.unflatten(2, (count, x.shape[2] // max(count, 1))) for x in (states, errors))
    d_states = list(d_final.unbind() if chunks.packed else [d_final.flatten(0, 1)])
    inputs = [q, k, v, beta.unsqueeze(-1), *([] if g is None else [g])]
    results = [x.new_empty(x.shape) for x in inputs]
    for first, last in reversed(groups(chunks, q)):
        decay = decayed(chunks, q, k, g, first, last, adjoint=True)
        strength, d_output = (chunks.arrange(x, first, last) for x in (beta.unsqueeze(-1), d_o))
        saved = states[:, :, first:last], errors[:, :, first:last]
        parts = _group(decay, strength, scale * d_output, *saved, d_states, chunks.sequence[first:last])
        for part, result in zip(parts, results, strict=True):
            chunks.restore(part, result, first)
    d_state = torch.cat(d_states).view(d_final.shape)
    d_q, d_k, d_v, d_beta, *d_g = results
    return Gradients(d_q, d_k, d_v, d_g[0] if d_g else None, d_beta.squeeze(-1), d_state)


def _group(
    decay: Decay,
    beta: Tensor,
    d_o: Tensor,
    states: Tensor,
    errors: Tensor,
    d_states: list[Tensor],
    sequence: list[int],
) -> list[Tensor]:
    """Gradients of q, k, v, beta (and g) of some chunks; ``d_states`` goes from after to before them."""
    kk, qk, start = decay.kk, decay.qk, decay.start.flatten(-3, -2)
    inverse, writes = unit_lower_inverse(kk * beta.mT), beta * errors
    # Gradients of what is read at keys and queries: of the predictions, and of the outputs.
    d_read = torch.stack([torch.zeros_like(d_o), d_o], dim=-2)
    own, solve, total = qk.mT @ d_o, (beta * inverse).mT, decay.total
    parts = [steps(x, len(sequence)) for x in (own, decay.k_end, solve, d_read, start.mT, total)]
    d_writes, afters = [], []
    for n, (write, k_end, back, reads, readers, decayed_by) in reversed(
        list(zip(sequence, zip(*parts, strict=True), strict=True))
    ):
        after = d_states[n]
        d_write = torch.baddbmm(write, k_end, after)
        reads[:, :, 0] = torch.bmm(back, d_write).neg_()
        d_writes.append(d_write)
        afters.append(after)
        before = after if decayed_by is None else decayed_by * after
        d_states[n] = torch.baddbmm(before, readers, reads.flatten(1, 2))
    d_write, after = (
        torch.stack(x[::-1], dim=1).view(*kk.shape[:3], *x[0].shape[1:]) for x in (d_writes, afters)
    )
    flat, d_right = d_read.flatten(-3, -2), d_read[..., 0, :].neg()
    d_scores = (flat @ writes.mT).unflatten(-2, (-1, 2)).transpose(-3, -2).tril().transpose(-3, -2)
    d_scores[..., 0, :].diagonal(dim1=-2, dim2=-1).zero_()
    d_kq, d_g = decay.backward(
        d_start=(flat @ states.mT).unflatten(-2, (-1, 2)),
        d_end=writes @ after.mT,
        d_total=None if total is None else (after * states).sum(-1, keepdim=True),
        d_scores=d_scores,
    )
    d_error = d_write - kk.tril(-1).mT @ d_right
    d_k, d_q = d_kq.unbind(-2)
    d_beta = (d_error * errors).sum(-1, keepdim=True)
    return [d_q, d_k, d_right, d_beta, *([] if d_g is None else [d_g])]

"""The adjoint of the chunkwise scan: explicit gradients from one state per chunk and one read per token."""

from typing import NamedTuple

import torch
from torch import Tensor

from kernels.chunkwise import groups
from kernels.dplr.system import System
from kernels.packing import Chunks, chunk_count


class Gradients(NamedTuple):
    """Gradients of the prepared arguments, each of its shape; None for one that is None."""

    q: Tensor
    k: Tensor
    v: Tensor
    g: Tensor
    a: Tensor | None
    b: Tensor | None
    state: Tensor


def backward(
    d_o: Tensor,
    d_final: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    a: Tensor | None,
    b: Tensor | None,
    states: Tensor,
    reads: Tensor,
    cu_seqlens: Tensor | None,
    chunk_size: int,
) -> Gradients:
    """Gradients from those of the outputs and of the final state, by a scan over the chunks from the end.

    With the names of `kernels.dplr.system.System`, N = (I - A_b)^-1 and dS the gradient of the state after
    the chunk: dW = R^T dO + E dS, Y = N^T dU for the part dU of dW that belongs to U, dR = dO W^T,
    dE = W dS^T, dA_b = Y U^T, dA_k = Y V^T, dQ = dO S^T, dA = Y S^T, and the gradient of the state before is
    Diag(total) dS + Q^T dO + A^T Y. V gets its part of dW, Y when there is no b, and the sum of its part and
    A_k^T Y with b.
    """
    chunks = Chunks(v.shape[1], chunk_size, cu_seqlens)
    count = chunk_count(v.shape[1], chunk_size, cu_seqlens)
    states = states.unflatten(2, (count, q.shape[3]))
    reads = reads.unflatten(2, (0 if a is None else count, chunks.rows))
    d_states = list(d_final.split(1)) if chunks.packed else [d_final]
    inputs = [x for x in (q, k, v, g, a, b) if x is not None]
    results = [torch.empty_like(x, memory_format=torch.contiguous_format) for x in inputs]
    for first, last in reversed(groups(chunks, q)):
        system = System(chunks, q, k, g, a, b, first, last)
        value, d_output = (chunks.arrange(x, first, last) for x in (v, d_o))
        part = states[:, :, first:last], reads[:, :, first:last]
        parts = _group(system, value, d_output, *part, d_states, chunks.sequence[first:last])
        for gradient, result in zip(parts, results, strict=True):
            chunks.restore(gradient, result, first)
    d_q, d_k, d_v, d_g, *rest = results
    d_a, d_b = (*rest, None, None)[:2]
    return Gradients(
        d_q, d_k, d_v, d_g, d_a, d_b, torch.cat(d_states) if chunks.packed else d_states[0].clone()
    )


def _group(
    system: System,
    value: Tensor,
    d_o: Tensor,
    states: Tensor,
    reads: Tensor,
    d_states: list[Tensor],
    sequence: list[int],
) -> list[Tensor]:
    """Gradients of q, k, v, g (and a and b) of some chunks; ``d_states`` goes from after to before them."""
    rows, erases, mixed = value.shape[-2], system.inverse is not None, system.mixed
    writes = value if not erases else reads if mixed is None else torch.cat([reads, value], dim=-2)
    d_writes, d_rights, d_ends, d_totals = [], [], [], []
    for c in reversed(range(len(sequence))):
        n, d_out = sequence[c], d_o[:, :, c]
        after = d_states[n]
        d_write = system.reads[:, :, c].mT @ d_out + system.end[:, :, c] @ after
        d_ends.append(writes[:, :, c] @ after.mT)
        d_totals.append((after * states[:, :, c]).sum(-1, keepdim=True))
        d_states[n] = system.total[:, :, c] * after + system.q_start[:, :, c].mT @ d_out
        if system.inverse is not None and system.a_start is not None:
            d_right = system.inverse[:, :, c].mT @ d_write[..., :rows, :]
            d_states[n] = d_states[n] + system.a_start[:, :, c].mT @ d_right
            d_rights.append(d_right)
        d_writes.append(d_write)
    d_value, d_a_start, d_below = _stack(d_writes)[..., -rows:, :], None, None
    if erases:
        d_right, d_a_start = _stack(d_rights), _stack(d_rights) @ states.mT
        d_value = d_right if mixed is None else d_value + mixed.mT @ d_right
        factors = [reads] if mixed is None else [reads, value]
        d_below = torch.stack([d_right @ x.mT for x in factors], dim=-3)
    d_q, d_k, d_g, d_a, d_b = system.backward(
        d_a_start=d_a_start,
        d_q_start=d_o @ states.mT,
        d_end=_stack(d_ends),
        d_total=_stack(d_totals),
        d_below=d_below,
        d_reads=d_o @ writes.mT,
    )
    return [d_q, d_k, d_value, d_g, *(x for x in (d_a, d_b) if x is not None)]


def _stack(from_the_end: list[Tensor]) -> Tensor:
    return torch.stack(from_the_end[::-1], dim=2)

"""States under transitions diagonal plus rank one, chunk by chunk."""

from typing import NamedTuple

import torch
from torch import Tensor

from kernels.chunkwise import groups
from kernels.dplr.system import System
from kernels.packing import Chunks, chunk_count


class Forward(NamedTuple):
    """o [B, T, HV, V]; final [N, HV, K, V]; and for the backward pass the state before each chunk, states
    [B, HV, chunks * K, V], and the reads U, reads [B, HV, chunks * rows, V], without entries if a is None."""

    o: Tensor
    final: Tensor
    states: Tensor
    reads: Tensor


def forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor,
    a: Tensor | None,
    b: Tensor | None,
    state: Tensor,
    cu_seqlens: Tensor | None,
    chunk_size: int,
    save: bool = False,
) -> Forward:
    """Outputs and final state from prepared arguments (`kernels.dplr.arguments`), in their precision.

    See `kernels.dplr.system.System`: the triangular system is solved for its right-hand side, the reads of
    the state included, with an inverse by blocked substitution. Only the scan over the states is sequential.
    """
    chunks = Chunks(v.shape[1], chunk_size, cu_seqlens)
    finals = list(state.split(1)) if chunks.packed else [state]
    count = chunk_count(v.shape[1], chunk_size, cu_seqlens) if save else 0
    states = v.new_zeros(*v.shape[::2], count, *state.shape[2:])
    reads = v.new_zeros(*v.shape[::2], 0 if a is None else count, chunks.rows, v.shape[3])
    o = torch.empty_like(v, memory_format=torch.contiguous_format)
    for first, last in groups(chunks, q):
        system = System(chunks, q, k, g, a, b, first, last)
        value = chunks.arrange(v, first, last)
        known = value if system.mixed is None else system.mixed @ value
        for c in range(last - first):
            n, write = chunks.sequence[first + c], value[:, :, c]
            before = finals[n]
            if system.inverse is not None and system.a_start is not None:
                read = system.inverse[:, :, c] @ (known[:, :, c] + system.a_start[:, :, c] @ before)
                write = read if b is None else torch.cat([read, write], dim=-2)
                if save:
                    reads[:, :, first + c] = read
            out = system.q_start[:, :, c] @ before + system.reads[:, :, c] @ write
            chunks.restore(out.unsqueeze(2), o, first + c)
            finals[n] = system.total[:, :, c] * before + system.end[:, :, c].mT @ write
            if save:
                states[:, :, first + c] = before
    final = torch.cat(finals) if chunks.packed else finals[0].clone()
    return Forward(o, final, states.flatten(2, 3), reads.flatten(2, 3))

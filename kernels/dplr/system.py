"""The linear system of a group of chunks whose transitions are diagonal plus rank one."""

import torch
from torch import Tensor

from kernels.blocks import unit_lower_inverse
from kernels.dplr.decay import ChannelDecay, HeadDecay
from kernels.packing import Chunks


class System:
    """Matrices of the chunks first ... last - 1, from tensors of `kernels.dplr.arguments.Arguments`.

    The reads U [C, V] of a chunk with state S before it and values V solve (I - A_b) U = X + A S, with
    X = A_k V, or X = V when there is no b; A_b, A_k are strictly lower triangular. With W = [U; V], or [U]
    without b, or [V] without a, O = Q S + R W and S_next = Diag(total) S + E^T W.

    A row of ``a`` reads before the decay of its token, that is where the row before it reads after its own:
    scores and decays of ``a`` are those of its rows moved up by one, which need no exponent above 0.

    Members: ``inverse`` [..., C, C] of I - A_b, ``mixed`` A_k [..., C, C] and ``a_start`` A [..., C, K], None
    where they do not exist; ``q_start`` Q [..., C, K]; ``reads`` R [..., C, rows of W]; ``end`` E
    [..., rows of W, K]; ``total`` [..., K or 1, 1].
    """

    def __init__(
        self,
        chunks: Chunks,
        q: Tensor,
        k: Tensor,
        g: Tensor,
        a: Tensor | None,
        b: Tensor | None,
        first: int,
        last: int,
    ) -> None:
        def arrange(x: Tensor) -> Tensor:
            return chunks.arrange(x, first, last)

        readers, writers = [arrange(q)], [arrange(k)]
        if a is not None:
            reader = arrange(a)
            readers.insert(0, _up(reader))
        if b is not None:
            writers.insert(0, arrange(b))
        # Where there is one channel it makes no difference.
        decay = HeadDecay if g.shape[-1] == 1 else ChannelDecay
        self.decay = decay(_stack(readers), _stack(writers), arrange(g))
        scores, self.total = self.decay.scores, self.decay.total
        self.q_start, self.end = self.decay.start[..., -1, :, :], self.decay.end.flatten(-3, -2)
        self.reads = scores[..., -1, :, :, :].transpose(-3, -2).flatten(-2, -1)
        self.inverse: Tensor | None = None
        self.mixed: Tensor | None = None
        self.a_start: Tensor | None = None
        if a is not None:
            below = _down(scores[..., 0, :, :, :])
            self.inverse = unit_lower_inverse(-below[..., 0, :, :])
            self.a_start = _down(self.decay.start[..., 0, :, :])
            self.a_start[..., 0, :] = reader[..., 0, :]
            if b is not None:
                self.mixed = below[..., 1, :, :]

    def backward(
        self,
        d_a_start: Tensor | None,
        d_q_start: Tensor,
        d_end: Tensor,
        d_total: Tensor,
        d_below: Tensor | None,
        d_reads: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
        """Gradients of q, k, g, a and b, as chunks, from those of the members.

        ``d_below`` [..., 1 or 2, C, C] is that of A_b and A_k; entries that are no score are not read.
        """
        rows = self.reads.shape[-2]
        kinds = self.reads.shape[-1] // rows
        d_scores = [d_reads.unflatten(-1, (kinds, rows)).transpose(-3, -2)]
        d_start = [d_q_start]
        if d_a_start is not None and d_below is not None:
            d_scores.insert(0, _up(d_below))
            d_start.insert(0, _up(d_a_start))
        d_readers, d_writers, d_g = self.decay.backward(
            _stack(d_start),
            d_end.unflatten(-2, (kinds, rows)),
            d_total,
            torch.stack(d_scores, dim=-4),
        )
        d_a = d_b = None
        if d_a_start is not None:
            d_a = _down(d_readers[..., 0, :, :])
            d_a[..., 0, :] = d_a_start[..., 0, :]
        if kinds == 2:
            d_b = d_writers[..., 0, :, :]
        return d_readers[..., -1, :, :], d_writers[..., -1, :, :], d_g, d_a, d_b


def _stack(kinds: list[Tensor]) -> Tensor:
    """One or two [..., C, X] as [..., 1 or 2, C, X]; one is not copied."""
    return kinds[0].unsqueeze(-3) if len(kinds) == 1 else torch.stack(kinds, dim=-3)


def _up(x: Tensor) -> Tensor:
    """Rows moved up by one, the last one 0."""
    return torch.cat([x[..., 1:, :], torch.zeros_like(x[..., :1, :])], dim=-2)


def _down(x: Tensor) -> Tensor:
    """Rows moved down by one, the first one 0."""
    return torch.cat([torch.zeros_like(x[..., :1, :]), x[..., :-1, :]], dim=-2)

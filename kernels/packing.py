"""Sequences packed along the token axis: offsets, their checks, and the chunks they are cut into."""

from itertools import pairwise

import torch
from torch import Tensor


def check_offsets(cu_seqlens: Tensor, batch: int) -> None:
    """Raise ValueError unless ``cu_seqlens`` is an integer tensor [N + 1], N >= 1, and the batch is of 1."""
    if cu_seqlens.ndim != 1 or cu_seqlens.dtype not in (torch.int32, torch.int64):
        raise ValueError(
            "cu_seqlens must be a 1-dimensional tensor of torch.int32 or torch.int64, but it is "
            f"{cu_seqlens.dtype} of shape {list(cu_seqlens.shape)}."
        )
    if len(cu_seqlens) < 2:
        raise ValueError(f"cu_seqlens must hold at least 2 offsets, but it holds {len(cu_seqlens)}.")
    if batch != 1:
        raise ValueError(f"q must have batch size 1 when cu_seqlens is given, but its batch size is {batch}.")


def sequence_offsets(cu_seqlens: Tensor, tokens: int) -> list[int]:
    """The offsets as integers: sequence n is tokens offsets[n] ... offsets[n + 1] - 1; it may be empty.

    Reads the tensor, hence not traceable. Raises ValueError when the offsets do not start at 0, decrease,
    or do not end at ``tokens``.
    """
    offsets: list[int] = cu_seqlens.tolist()
    if offsets[0] != 0:
        raise ValueError(f"cu_seqlens must start at 0, but it starts at {offsets[0]}.")
    for first, second in pairwise(offsets):
        if second < first:
            raise ValueError(f"cu_seqlens must not decrease, but it goes from {first} to {second}.")
    if offsets[-1] != tokens:
        raise ValueError(
            f"cu_seqlens must end at the number of tokens {tokens}, but it ends at {offsets[-1]}."
        )
    return offsets


class Chunks:
    """How tokens lie in chunks: row r of chunk c is one token, or a neutral row that is all zeros.

    A neutral row (key, strength and log decay 0) leaves the state as it is, so the last row of a chunk is as
    good as its last token. Chunks never reach over the end of a sequence.

    Args:
        tokens: T.
        chunk_size: tokens per chunk, at least 1.
        cu_seqlens: offsets of the sequences packed along T, or None for sequences along the batch.

    ``rows`` is the chunk size rounded up to a power of two; ``spans[c]`` the tokens of chunk c as first and
    past the last; ``sequence[c]`` the index of the packed sequence it belongs to.
    """

    def __init__(self, tokens: int, chunk_size: int, cu_seqlens: Tensor | None) -> None:
        self.packed = cu_seqlens is not None
        self.rows = chunk_rows(chunk_size)
        self.spans: list[tuple[int, int]] = []
        self.sequence: list[int] = []
        offsets = [0, tokens] if cu_seqlens is None else sequence_offsets(cu_seqlens, tokens)
        for n, (start, end) in enumerate(pairwise(offsets)):
            starts = range(start, end, chunk_size)
            self.spans += [(first, min(first + chunk_size, end)) for first in starts]
            self.sequence += [n] * len(starts)

    def arrange(self, x: Tensor, first: int, last: int, apart: bool = False) -> Tensor:
        """[B, T, H, X] to contiguous [B, H, last - first, rows, X]: the chunks first ... last - 1.

        ``apart``: chunk after chunk in memory, so that each chunk is contiguous instead of the whole.
        """
        shape = x.shape[0], x.shape[2], last - first, self.rows, x.shape[3]
        order = (2, 0, 1, 3, 4) if apart else (0, 1, 2, 3, 4)
        rows = torch.empty_permuted(shape, order, dtype=x.dtype, device=x.device)
        self._fill(rows, x, first, last)
        return rows

    def arrange_both(self, x: Tensor, y: Tensor, first: int, last: int) -> Tensor:
        """The same of x and y, row by row: [B, H, last - first, rows, 2, X]."""
        rows = x.new_empty(x.shape[0], x.shape[2], last - first, self.rows, 2, x.shape[3])
        self._fill(rows[..., 0, :], x, first, last)
        self._fill(rows[..., 1, :], y, first, last)
        return rows

    def _fill(self, rows: Tensor, x: Tensor, first: int, last: int) -> None:
        if (whole := self._whole(x, first, last)) is not None:
            rows.copy_(whole)
            return
        rows.zero_()
        for c, piece in enumerate(self._pieces(x, first, last)):
            rows[:, :, c, : piece.shape[2]] = piece

    def restore(self, rows: Tensor, out: Tensor, first: int) -> None:
        """The inverse: [B, H, n, rows, X], from chunk ``first`` on, into their places in out [B, T, H, X]."""
        last = first + rows.shape[2]
        if (whole := self._whole(out, first, last)) is not None:
            whole.copy_(rows)
            return
        for c, piece in enumerate(self._pieces(out, first, last)):
            piece.copy_(rows[:, :, c, : piece.shape[2]])

    def _pieces(self, x: Tensor, first: int, last: int) -> list[Tensor]:
        """Of each of the chunks first ... last - 1 its tokens, as views [B, H, tokens, X] of [B, T, H, X]."""
        return [x[:, start:end].transpose(1, 2) for start, end in self.spans[first:last]]

    def _whole(self, x: Tensor, first: int, last: int) -> Tensor | None:
        """View [B, H, last - first, rows, X] of x [B, T, H, X] where no chunk has a neutral row."""
        start, end = self.spans[first][0], self.spans[last - 1][1]
        if end - start != (last - first) * self.rows:
            return None
        return x[:, start:end].unflatten(1, (-1, self.rows)).permute(0, 3, 1, 2, 4)


def chunk_rows(chunk_size: int) -> int:
    """The chunk size rounded up to a power of two."""
    return 1 << (chunk_size - 1).bit_length()


def chunk_count(tokens: int, chunk_size: int, cu_seqlens: Tensor | None) -> int:
    """How many chunks suffice, whatever the offsets are; exact without offsets."""
    if cu_seqlens is None:
        return -(-tokens // chunk_size)
    return tokens // chunk_size + len(cu_seqlens) - 1

"""Scores of a chunk without decay, and their adjoint."""

from torch import Tensor


class NoDecay:
    """Keys and queries kq [..., C, 2, K], keys first; members as of ``ChannelDecay``."""

    total: Tensor | None = None

    def __init__(self, kq: Tensor) -> None:
        self.start = kq
        self.k_end = kq[..., 0, :]
        self.kk, qk = plain_scores(kq).unbind(-2)
        self.qk = qk.tril()

    def to_state(self, writes: Tensor) -> Tensor:
        return self.k_end.mT @ writes

    def backward(
        self, d_start: Tensor, d_end: Tensor, d_total: Tensor | None, d_scores: Tensor
    ) -> tuple[Tensor, None]:
        """Gradients of kq, and None, from those of the members, d_scores [..., C, 2, C] triangular."""
        d_kq = d_start + plain_scores_backward(self.start, d_scores)
        d_kq[..., 0, :] += d_end
        return d_kq, None


def plain_scores(kq: Tensor) -> Tensor:
    """[..., C, 2, K] to [..., C, 2, C]: products of every key and every query with every key."""
    rows = kq.shape[-3]
    return (kq.flatten(-3, -2) @ kq[..., 0, :].mT).unflatten(-2, (rows, 2))


def plain_scores_backward(kq: Tensor, d_scores: Tensor) -> Tensor:
    """The gradient of kq from that of `plain_scores`."""
    flat = d_scores.flatten(-3, -2)
    d_kq = (flat @ kq[..., 0, :]).unflatten(-2, kq.shape[-3:-1])
    d_kq[..., 0, :] += flat.mT @ kq.flatten(-3, -2)
    return d_kq

"""Every operation of a torch function in float64 errs by as much as a format allows, in a chosen direction.

Copies of the input stacked along the first axis take one direction each: up, down, away from zero, at random.
With a format of one bit more than the modelled one, the neighbour of a result in any direction is within that
one's unit of roundoff; results on the grid stay, as sums with 0 do in every arithmetic.
"""

from typing import Any

import torch
from torch import Tensor

from verify.audit.tolerance.predicted.rounding import StochasticRounding
from verify.numbers.formats import FLOAT32, Format

DIRECTIONS = 4
WITHIN_ONE_ROUNDOFF = Format("float25", FLOAT32.precision + 1, FLOAT32.min_exponent, FLOAT32.max_exponent)


class Directed(StochasticRounding):
    """As `StochasticRounding`, in the same places; a sum of n products errs by n roundings of their sizes."""

    def __init__(self, target: Any, runs: int, coherent: int, seed: int, **options: Any) -> None:
        assert runs == DIRECTIONS
        super().__init__(target, runs, coherent, seed)
        self._random = torch.Generator().manual_seed(seed)
        self._unit = 2.0 ** (1 - target.precision)

    def _signs(self, x: Tensor) -> Tensor:
        up, _, away, drawn = torch.ones_like(x).chunk(DIRECTIONS)
        random = torch.randint(0, 2, drawn.shape, generator=self._random) * 2.0 - 1
        return torch.cat([up, -up, away * torch.sign(x.chunk(DIRECTIONS)[2]), random])

    def round(self, x: Tensor) -> Tensor:
        quantum = torch.exp2(torch.frexp(x).exponent.double() - self.target.precision)
        steps = x / quantum
        moved = torch.where(self._signs(x) > 0, steps.ceil(), steps.floor()) * quantum
        # What is beyond the format's range, or infinite, is left alone.
        return torch.where(x.isfinite() & (quantum > 0), moved, x)

    def _moved(self, x: Tensor, sizes: Tensor, roundings: float) -> Tensor:
        """All roundings but the last, which joins the grid."""
        apart = ((1 + self._unit) ** max(roundings - 1, 0) - 1) * sizes
        return self.round(torch.where(x.isfinite(), x + self._signs(x) * apart, x))

    def _elementary(self, args: tuple[Any, ...], out: Tensor) -> Tensor:
        exact = (out == 0) | (out == 1)
        size = torch.where(exact, 0.0, out.abs() * (1 + args[0].nan_to_num().abs() / 2))
        return torch.where(exact, out, self._moved(out, size, 4))

    def _product(self, a: Tensor, b: Tensor) -> Tensor:
        return self._moved(a @ b, a.abs() @ b.abs(), a.shape[-1])

    def _added_product(
        self, addend: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1
    ) -> Tensor:
        c = addend if beta == 1 else self._multiple(beta, addend)
        a = a if alpha == 1 else self._multiple(alpha, a)
        return self._moved(c + a @ b, c.abs() + a.abs() @ b.abs(), a.shape[-1] + 1)

    def _sum(self, x: Tensor, dim: Any = None, keepdim: bool = False, **options: Any) -> Tensor:
        dims = sorted(d % x.ndim for d in (dim or range(x.ndim)))
        assert 0 not in dims
        found = x.sum(dims, keepdim=keepdim)
        terms = x.numel() / max(found.numel(), 1)
        return self._moved(found, x.abs().sum(dims, keepdim=keepdim), terms - 1) if terms > 1 else found

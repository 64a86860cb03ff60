"""Matrix products whose every sum errs as far as its roundings allow, in the directions that do most harm."""

from collections.abc import Callable

import torch
from torch import Tensor


class Conspiring:
    """Products that err by n roundings of every term, in directions that are chosen afterwards."""

    def __init__(self, u: float) -> None:
        self.directions: list[Tensor] = []
        self._u, self._used = u, 0

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        terms = (a.detach() != 0).double() @ (b.detach() != 0).double()
        size = ((1 + self._u) ** terms - 1) * (a.detach().abs() @ b.detach().abs())
        return a @ b + self.chosen(size.shape) * size

    def chosen(self, shape: torch.Size) -> Tensor:
        if self._used == len(self.directions):
            self.directions.append(torch.zeros(shape, dtype=torch.float64, requires_grad=True))
        self._used += 1
        return self.directions[self._used - 1]

    def worst(self, function: Callable[[], Tensor]) -> Tensor:
        """The function's value where every error has the sign that increases it."""
        function().backward()
        self.directions = [(x.grad if x.grad is not None else x).sign() for x in self.directions]
        self._used = 0
        return function()

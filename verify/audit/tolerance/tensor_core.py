"""Roundings of matrix products whose factors are stored in a shorter format and summed by tensor cores.

A step of a tensor core takes `width` exact products and the sum so far, cuts each toward zero to a multiple
of 2^-fraction of the largest one's power of two, adds them exactly and cuts the result toward zero to 24
bits: the published model (MMA-Sim, arXiv 2511.10909; MATLAB-tensor-core, arXiv 2512.07004) of claim
kernel.tensor-core-sum.

Cutting errs toward zero, by half a unit on average: a part that is the same in every run and grows like the
number of steps (`Biased`), and one that varies and is rounded at random (`ProductRounding`). Both are taken
over a random order of the terms, like sums that round to nearest.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from verify.audit.tolerance.predicted.rounding import StochasticRounding
from verify.numbers.formats import FLOAT32, Format

_U = 2.0**-24
"""Unit roundoff of the float32 sums that tensor cores give."""
_LOWEST = -500
"""Below every exponent of a term that is not 0."""


@dataclass(frozen=True)
class TensorCore:
    """The parameters of a generation: fraction bits kept in alignment, and products a step."""

    fraction: int
    width: int

    def steps(self, terms: int) -> int:
        """How many steps in a row a sum of that many products takes."""
        return max(1, math.ceil(terms / self.width))

    @property
    def one(self) -> Fraction:
        """Largest error of one step, over the sum of the absolute values of its terms.

        It errs by at most n 2^-f M + 2^-23 (|S| + n 2^-f M) (claim kernel.tensor-core-sum), n <= width + 1,
        where M and |S| are at most that sum.

        A sum of k steps errs by at most (1 + one)^k - 1 times the sum of the absolute values of its products
        and of the addend. For a step takes the sum so far, off by |e| <= ((1 + one)^k - 1) A, A the sum of
        the absolute values of what was added until then, and products of sizes P. It errs by at most
        one (A + |e| + P) itself, so that after it |e| <= ((1 + one)^(k + 1) - 1) (A + P).
        """
        lost = Fraction(self.width + 1, 2**self.fraction)
        return lost + Fraction(1, 2**23) * (1 + lost)


_CORES = {"volta": (23, 4, 4), "ampere": (24, 8, 4), "hopper": (25, 16, 8)}
"""Fraction bits, products a step, and products a step in tf32."""


def core_named(name: str, factors: Format | None) -> TensorCore | None:
    """The tensor core of a generation for factors of a format; None for sums that round to nearest."""
    if name == "nearest":
        return None
    fraction, width, narrow = _CORES[name]
    return TensorCore(fraction, narrow if factors is not None and factors.name == "tf32" else width)


@dataclass(frozen=True)
class _Moments:
    """Over a random order of n products with sum S and sum of squares Q, for the sums c + P_1 ... c + P_s of
    the steps: the total of their squares, and the variance that the order gives their sum."""

    core: TensorCore
    terms: int

    def _shares(self) -> list[tuple[float, float]]:
        """Per step: which share i/n of the terms is in, and which of the pairs."""
        n, found = self.terms, []
        for step in range(1, self.core.steps(n) + 1):
            i = min(step * self.core.width, n)
            found.append((i / n, i * (i - 1) / (n * (n - 1)) if n > 1 else 0.0))
        return found

    def squares(self, c: Tensor, s: Tensor, q: Tensor, *, last: bool) -> Tensor:
        """Total of the squares of the sums, with or without the last one."""
        shares = self._shares() if last else self._shares()[:-1]
        one, two = sum(k for k, _ in shares), sum(p for _, p in shares)
        return len(shares) * c * c + 2 * one * c * s + (one - two) * q + two * s * s

    def varying(self, s: Tensor, q: Tensor) -> Tensor:
        """An upper bound of the variance of the sum of the sums: steps times the sum of their variances."""
        shares = self._shares()
        of_squares = sum(k - p for k, p in shares)
        of_sum = sum(p - k * k for k, p in shares)
        return (len(shares) * (of_squares * q + of_sum * s * s)).clamp_min(0.0)


class ProductRounding(StochasticRounding):  # type: ignore[no-untyped-call]
    """Stochastic rounding whose matrix products have shorter factors, or are sums of tensor cores.

    Args:
        args: as of `StochasticRounding`.
        factors: the format both factors of a product are rounded to first; None for what they are.
        core: the tensor core that adds; None for additions that round to nearest.
    """

    def __init__(self, *args: Any, factors: Format | None = None, core: TensorCore | None = None) -> None:
        super().__init__(*args)
        self._factors, self._core = factors, core
        stored = factors is not None and factors.precision < self.target.precision
        self._storing = self.to(factors) if stored and factors is not None else None

    def _stored_factors(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        return (a, b) if self._storing is None else (self._storing.round(a), self._storing.round(b))

    def _product(self, a: Tensor, b: Tensor) -> Tensor:
        a, b = self._stored_factors(a, b)
        if self._core is None or not a.shape[-1]:
            return super()._product(a, b)
        s, q = a @ b, (a * a) @ (b * b)
        return self._perturbed(s, self._spread(a.shape[-1], 0 * s, s, q), self._exact(a.shape[-1], a, b))

    def _added_product(
        self, addend: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1
    ) -> Tensor:
        """As the base class; with tensor cores the addend starts the sum and joins its result: both."""
        if self._core is None or not a.shape[-1] or beta == 0:
            a, b = self._stored_factors(a, b)
            return super()._added_product(addend, a, b, beta=beta, alpha=alpha)
        a, b = self._stored_factors(a if alpha == 1 else self._multiple(alpha, a), b)
        c = addend if beta == 1 else self._multiple(beta, addend)
        n, s, q = a.shape[-1], a @ b, (a * a) @ (b * b)
        c = c.expand_as(s)
        spread = self._spread(n, c, s, q) + self._spread(n, 0 * s, s, q) + s * s
        return self._perturbed(c + s, spread, self._exact(n + 1, a, b, addend=c))

    def _spread(self, n: int, c: Tensor, s: Tensor, q: Tensor) -> Tensor:
        """Three times the variance of what varies, over the squared unit roundoff of the target.

        Cutting the result varies by a twelfth of its unit's square, at most (2u)^2/12 of the sum's: like one
        rounding to nearest, the last of which `round` makes. Cutting width + 1 terms at 2^-f of the largest M
        varies by 2^-2f M^2/12 each, M^2 at most the squares of the step's products and of the sum so far;
        an upper estimate, as if every term were cut. The shift toward zero varies with their order.
        """
        assert self._core is not None
        moments = _Moments(self._core, n)
        cut = (2.0**-self._core.fraction / _U) ** 2 / 4 * (self._core.width + 1)
        largest = q + moments.squares(c, s, q, last=True)
        spread = moments.squares(c, s, q, last=False) + cut * largest + 3 * moments.varying(s, q)
        return spread.clamp_min_(0.0).mul_((_U / self._u) ** 2)


class Biased(ProductRounding):  # type: ignore[no-untyped-call]
    """Nothing rounded, but every product shifted by what a tensor core cuts off the product of short factors.

    One order of the terms, that of their index, stands for all: what another one changes is in
    `ProductRounding`.
    """

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func._schema.name.removeprefix("aten::").rstrip("_") in ("bmm", "baddbmm", "mm", "addmm"):
            return super().__torch_dispatch__(func, types, args, kwargs)
        return func(*args, **(kwargs or {}))

    def _product(self, a: Tensor, b: Tensor) -> Tensor:
        s = a @ b
        return s + self._shift(a, b, torch.zeros_like(s))

    def _added_product(
        self, addend: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1
    ) -> Tensor:
        s = alpha * (a @ b)
        c = (beta * addend).expand_as(s) if beta else torch.zeros_like(s)
        return c + s + self._shift(alpha * a, b, c)

    def _shift(self, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        assert self._core is not None
        a, b = (_short(self._factors, x) for x in (a, b))
        c = _short(FLOAT32, c)
        return multiplied(a, b, self._core, c) - (c + a @ b)


def multiplied(a: Tensor, b: Tensor, core: TensorCore, addend: Tensor) -> Tensor:
    """addend + a b for a [..., m, n] and b [..., n, p], float64, as the tensor core gives it, in order."""
    total = addend
    for start in range(0, a.shape[-1], core.width):
        part = slice(start, start + core.width)
        x, y = a[..., :, part].unsqueeze(-1), b[..., part, :].unsqueeze(-3)
        terms = torch.cat([x * y, total.unsqueeze(-2)], dim=-2)
        # The exponent of a product is the sum of those of its factors, its significand in [1, 4).
        exponents = torch.cat([_exponent(x) + _exponent(y), _exponent(total).unsqueeze(-2)], dim=-2)
        largest = exponents.masked_fill(terms == 0, _LOWEST).amax(-2, keepdim=True)
        total = _cut(_cut(terms, largest - core.fraction).sum(-2), None)
    return total


def _exponent(x: Tensor) -> Tensor:
    return torch.frexp(x).exponent - 1


def _cut(x: Tensor, exponent: Tensor | None) -> Tensor:
    """x cut toward zero to multiples of 2^exponent, or to 24 bits."""
    unit = _exponent(x) - (FLOAT32.precision - 1) if exponent is None else exponent
    return torch.ldexp(torch.trunc(torch.ldexp(x, -unit)), unit)


def _short(target: Format | None, x: Tensor) -> Tensor:
    """x rounded to the nearest of a format, whatever its range."""
    if target is None:
        return x
    quantum = _exponent(x) - (target.precision - 1)
    return torch.ldexp(torch.round(torch.ldexp(x, -quantum)), quantum)

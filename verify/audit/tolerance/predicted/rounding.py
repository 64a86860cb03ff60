"""Stochastic rounding of any torch function: its algorithm in float64, every operation rounded at random.

In a coherent run the random choice is a hash of the value, so equal values round equally, as in a real
kernel: a gate that is the same at every token carries the same error at every token. The hash sees neither
sign nor exponent, because rounding to nearest commutes with negation and with powers of two. But another
kernel of the same algorithm may reach equal values by different sums, and errors that cancel when equal then
do not: in an incoherent run the hash also sees the place and the number of the operation. Across runs the
choices are independent. Values on the grid stay, so that exact arithmetic predicts exactly zero error.

One rounding moves x by d or d - ulp with mean 0 and variance d(ulp - d), where d is the distance to the
neighbour below. Rounding to nearest errs by min(d, ulp - d), never more than that standard deviation.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._library.custom_ops import _maybe_get_opdef
from torch.utils._python_dispatch import TorchDispatchMode

from verify.audit.tolerance.predicted.operations import ELEMENTARY, FORMULAS, MOVES, ROUNDED
from verify.numbers.formats import Format

_FLOAT64_PRECISION = 53
_MANTISSA = (1 << 52) - 1
_MAGNITUDE = (1 << 63) - 1
_EXPONENT = _MAGNITUDE - _MANTISSA
_LOW_HALF = (1 << 32) - 1
# Odd multipliers of the finaliser of MurmurHash3 (Appleby), as signed 64-bit integers.
_MIX = (-49064778989728563, -4265267296055464877)


class StochasticRounding(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Rounds every arithmetic result of the float64 torch code run inside it to a format's precision.

    The exponent range is not limited; underflow is the caller's separate term.

    Args:
        target: the format whose precision is modelled, below float64's.
        runs: how many runs are stacked along the first axis of every tensor, outermost.
        coherent: how many of them, the first ones, are coherent.
        seed: seed of the runs' hash keys; run r's key does not depend on how many runs there are.

    Raises:
        NotImplementedError: an operation has no rule, or a result's first axis is not the runs'.
    """

    def __init__(self, target: Format, runs: int, coherent: int, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        if target.precision >= _FLOAT64_PRECISION:
            raise ValueError(f"{target.name} cannot be modelled within float64")
        self.target = target
        self._runs, self._coherent, self._seed = runs, coherent, seed
        self._operations = 0
        self._u = float(target.unit_roundoff)
        keys = torch.Generator().manual_seed(seed)
        draws = [torch.randint(-(1 << 62), 1 << 62, (2,), generator=keys) for _ in range(runs)]
        self._keys = torch.stack(draws).unsqueeze(-1)
        self._rules: dict[str, Callable[..., Tensor]] = {
            "bmm": self._product,
            "baddbmm": self._added_product,
            "mm": self._common_product,
            "addmm": self._added_common_product,
            "index_add": self._added_at,
            "sum": self._sum,
            "cumsum": self._cumulative_sum,
            "linalg_solve_triangular": self._substitution,
        }

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        name = func._schema.name.removeprefix("aten::")
        plain = name.rstrip("_")
        if plain in self._rules:
            return _stored(func, args, kwargs.pop("out", None), self._rules[plain](*args, **kwargs))
        moves = name in MOVES or plain in MOVES
        if not moves and (parts := self._inside(func, args, kwargs)) is not NotImplemented:
            return parts
        if plain in ("add", "sub") and kwargs.get("alpha", 1) not in (1, -1):
            args = (args[0], self._multiple(kwargs.pop("alpha"), args[1]), *args[2:])
        if plain in FORMULAS:
            with self:
                return _stored(func, args, kwargs.pop("out", None), FORMULAS[plain](*args, **kwargs))
        out = func(*args, **kwargs)
        if moves or not isinstance(out, Tensor) or not out.is_floating_point():
            return out
        if plain not in ROUNDED | ELEMENTARY:
            raise NotImplementedError(f"stochastic rounding has no rule for the torch operation {name}")
        rounded = self._elementary(args, out) if plain in ELEMENTARY else self.round(out)
        return out.copy_(rounded) if func._schema.is_mutable else rounded

    def _inside(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of the operations an operator is made of, each rounded; or NotImplemented."""
        operator = _maybe_get_opdef(func)
        with self:
            return func.decompose(*args, **kwargs) if operator is None else operator._init_fn(*args, **kwargs)

    def to(self, target: Format) -> "StochasticRounding":
        """The same runs, rounding to another format."""
        return StochasticRounding(target, self._runs, self._coherent, self._seed)

    def round(self, x: Tensor) -> Tensor:
        """Each entry moved to a neighbour on the grid, with probabilities that make the mean error 0."""
        x = x.contiguous()
        dropped = _FLOAT64_PRECISION - self.target.precision
        offset = self._hash(x, 0).bitwise_right_shift_(64 - dropped).bitwise_and_((1 << dropped) - 1)
        # Adding a random part of a quantum and cutting off: sign and exponent take the carry as they should.
        offset.add_(x.view(torch.int64)).bitwise_and_(-1 << dropped)
        return offset.view(torch.float64)

    def _hash(self, x: Tensor, stream: int) -> Tensor:
        """64 random bits per entry, from its significand and the key of its run."""
        if x.ndim == 0 or x.shape[0] % self._runs:
            raise NotImplementedError(
                f"a result of shape {list(x.shape)} does not have the {self._runs} runs along its first axis"
            )
        bits = x.view(torch.int64).bitwise_and(_MANTISSA)
        rows = bits.view(self._runs, x.numel() // self._runs)
        rows.bitwise_xor_(self._keys[:, stream])
        self._operations += 1
        if self._coherent < self._runs:
            place = torch.arange(rows.shape[1]).mul_(_MIX[0]).add_(self._operations * _MIX[1] % (1 << 63))
            rows[self._coherent :].bitwise_xor_(place)
        for multiplier in _MIX:
            rows.mul_(multiplier)
            # The mask makes it a logical shift; an arithmetic one would clear every sign bit.
            rows.bitwise_xor_((rows >> 32).bitwise_and_(_LOW_HALF))
        return bits

    def _uniform(self, x: Tensor) -> Tensor:
        """One number in [-1, 1) per entry, mean 0, variance 1/3, independent of the entry's rounding."""
        return self._hash(x.contiguous(), 1).to(torch.float64).mul_(2.0**-63)

    def _elementary(self, args: tuple[Any, ...], out: Tensor) -> Tensor:
        """An error of up to one unit in the last place (2u), unless the result is exact: 0, 1 or infinite."""
        out = out.contiguous()
        exact = (out == 1) | (out == 0)
        moved = out * (1 + 2 * self._u * self._uniform(out))
        return torch.where(exact, out, self.round(moved))

    def _product(self, a: Tensor, b: Tensor) -> Tensor:
        """A batch of matrix products: n products and n - 1 additions per entry, each rounded.

        Every rounding of x has variance (u x)**2 / 3. Over a random order of the terms p_1 ... p_n of sum S,
        the partial sum of i terms has mean square (i/n) sum p**2 + i(i-1)/(n(n-1)) (S**2 - sum p**2); summed
        over i = 1 ... n that is (n+1)/6 sum p**2 + (n+1)/3 S**2. Without the last, which `round` makes, and
        the first, which is a product, and with all n products: (n+1)/6 + 1 - 1/n, and (n-2)/3.
        """
        n = a.shape[-1]
        exact_sum = a @ b
        if n < 2:
            return self.round(exact_sum)
        squares = (a * a) @ (b * b)
        spread = squares.mul_((n + 1) / 6 + 1 - 1 / n).add_(exact_sum * exact_sum, alpha=(n - 2) / 3)
        return self._perturbed(exact_sum, spread, self._exact(n, a, b))

    def _added_product(
        self, addend: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1
    ) -> Tensor:
        """beta addend + alpha a b: where two ways to add differ, the one that errs more.

        Either the product is rounded and then added; or the addend c is one of n + 1 terms of the sum, in a
        random order, as in an accumulator that starts from it: then as in `_product`, with N = n + 1 terms
        and n products, (N + 1)/6 - 1/N of the squares with c, (N - 2)/3 of the whole sum's and 1 of p's.
        """
        n, c = a.shape[-1], addend if beta == 1 else self._multiple(beta, addend)
        a = a if alpha == 1 else self._multiple(alpha, a)
        product, squares = a @ b, (a * a) @ (b * b)
        total, own = (c if beta else 0) + product, c * c if beta else torch.zeros_like(product)
        if n == 0 or beta == 0:
            return self._product(a, b) if n else self.round(total)
        apart = squares * ((n + 1) / 6 + 1 - 1 / n) + product * product * ((n + 1) / 3)
        joined = (squares + own) * ((n + 2) / 6 - 1 / (n + 1)) + squares + total * total * ((n - 1) / 3)
        exact = self._exact(n + 1, a, b, addend=c.expand_as(product))
        return self._perturbed(total, torch.maximum(apart, joined), exact)

    def _common_product(self, a: Tensor, b: Tensor) -> Tensor:
        """A product with a matrix that all runs have in common."""
        return self._product(*self._per_run(a, b)).flatten(0, 1)

    def _added_common_product(
        self, addend: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1
    ) -> Tensor:
        """As `_added_product`, with a matrix that all runs have in common."""
        rows, common = self._per_run(a, b)
        c = addend.expand(a.shape[0], b.shape[1]).reshape(*rows.shape[:2], b.shape[1])
        return self._added_product(c, rows, common, beta=beta, alpha=alpha).flatten(0, 1)

    def _per_run(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        """a [runs * rows, n] and b [n, p] as a batch of one pair per run."""
        if not a.shape[0] or a.shape[0] % self._runs:
            raise NotImplementedError(
                f"a matrix of shape {list(a.shape)} does not have the {self._runs} runs along its first axis"
            )
        return a.reshape(self._runs, -1, a.shape[1]), b.expand(self._runs, *b.shape)

    def _multiple(self, factor: float, x: Any) -> Any:
        """factor x, rounded where x is a tensor; exact for powers of two."""
        return self.round(x * factor) if isinstance(x, Tensor) and x.ndim else x * factor

    def _added_at(self, x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
        """x with the slices of a source added where an index says, one after another, each sum rounded."""
        if dim % x.ndim == 0:
            raise NotImplementedError("adding along the first axis would mix the runs")
        result, terms = x.clone(), source if alpha == 1 else self._multiple(alpha, source)
        for position, term in zip(index.tolist(), terms.unbind(dim), strict=True):
            place = result.select(dim, position)
            place.copy_(self.round(place + term))
        return result

    def _sum(self, x: Tensor, dim: Any = None, keepdim: bool = False, **options: Any) -> Tensor:
        """A sum over some axes, in a random order: as `_product`, without the roundings of the products."""
        dims = sorted(d % x.ndim for d in (dim or range(x.ndim)))
        if 0 in dims:
            raise NotImplementedError("a sum over the first axis would mix the runs")
        n = math.prod(x.shape[d] for d in dims)
        exact_sum = x.sum(dims, keepdim=keepdim)
        if n < 3:
            return self.round(exact_sum)
        squares = (x * x).sum(dims, keepdim=keepdim)
        spread = squares.mul_((n + 1) / 6 - 1 / n).add_(exact_sum * exact_sum, alpha=(n - 2) / 3)
        return self._perturbed(exact_sum, spread, self._exact(n, x))

    def _perturbed(self, value: Tensor, spread: Tensor, exact: Tensor | None) -> Tensor:
        """value + u sqrt(spread) times a uniform number, rounded; unmoved where ``exact``."""
        error = spread.sqrt_().mul_(self._uniform(value)).mul_(self._u)
        if exact is not None:
            error.masked_fill_(exact.view(-1, *[1] * (error.ndim - 1)), 0.0)
        return self.round(error.add_(value))

    def _exact(self, n: int, *factors: Tensor, addend: Tensor | None = None) -> Tensor | None:
        """Per index of the first axis: whether no order of the sum can round; None if nowhere.

        Sufficient: all products, and the addend, are multiples of one power of two, and n times the largest
        of them stays below 2**precision of it. What fails on a few entries fails on all, so that these are
        tried first.
        """
        limit = 2.0**self.target.precision
        flat = [x.reshape(x.shape[0], -1) for x in (*factors, *([] if addend is None else [addend]))]
        for sample in ([x[:, :8] for x in flat], flat):
            measures = [_unit_and_size(x) for x in sample]
            units = torch.as_tensor(math.prod(unit for unit, _ in measures[: len(factors)]))
            sizes = torch.as_tensor(math.prod(size for _, size in measures[: len(factors)]))
            for unit, size in measures[len(factors) :]:
                units, sizes = torch.minimum(units, unit), torch.maximum(sizes, size)
            exact = n * sizes < limit * units
            if not exact.any():
                return None
        return exact

    def _cumulative_sum(self, x: Tensor, dim: int, **options: Any) -> Tensor:
        """Running sums in order, each step rounded."""
        terms = list(x.unbind(dim))
        for i in range(1, len(terms)):
            terms[i] = self.round(terms[i - 1] + terms[i])
        return torch.stack(terms, dim) if terms else x.clone()

    def _substitution(
        self, a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
    ) -> Tensor:
        """Row by row: x_i = b_i - sum_{j<i} a_ij x_j, each row a rounded product and a rounded difference."""
        if not left or not unitriangular:
            raise NotImplementedError("only a unit triangular matrix on the left has a rule")
        lower, right = (x.reshape(-1, *x.shape[-2:]) for x in (a, b))
        if upper:
            # Backward substitution is forward substitution on the reversed rows and columns.
            lower, right = lower.flip(-1, -2), right.flip(-2)
        solved = right.clone()
        for i in range(1, lower.shape[-1]):
            # Not a matrix product of the kernel, whose factors another class may round.
            known = StochasticRounding._product(self, lower[:, i : i + 1, :i], solved[:, :i])
            solved[:, i : i + 1] = self.round(solved[:, i : i + 1] - known)
        return (solved.flip(-2) if upper else solved).reshape(b.shape)


def _stored(func: Any, args: tuple[Any, ...], out: Tensor | None, result: Tensor) -> Tensor:
    """The result, in the tensor that the operation writes to, if any."""
    target = args[0] if out is None and func._schema.is_mutable else out
    return result if target is None else target.copy_(result)


def _unit_and_size(x: Tensor) -> tuple[Tensor, Tensor]:
    """Per row: the largest power of two dividing every entry (inf if all are 0), and the largest |entry|."""
    bits = x.contiguous().view(torch.int64).bitwise_and(_MAGNITUDE)
    # A power of two has no set bit in the significand field: its own lowest bit is the hidden one, 2**52.
    lowest = bits.bitwise_and(-bits).clamp_(max=1 << 52).to(torch.float64).mul_(2.0**-52)
    unit = lowest.mul_(bits.bitwise_and(_EXPONENT).view(torch.float64))
    return unit.masked_fill_(bits == 0, torch.inf).amin(1), x.abs().amax(1)

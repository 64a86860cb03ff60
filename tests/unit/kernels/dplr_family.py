"""DPLR, GDN-2 and Mamba-2 in their three forms, and inputs for them."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

Inputs = dict[str, Tensor]
Kernel = Callable[..., tuple[Tensor, Tensor | None]]


@dataclass(frozen=True)
class Mechanism:
    """One mechanism in its three forms, and the names of the inputs it has besides q, k, v and g."""

    name: str
    reference: Kernel
    recurrent: Kernel
    chunked: Kernel
    extra: tuple[str, ...]

    def gate_shape(self, *per_head: int, keys: int) -> tuple[int, ...]:
        return per_head if self.name == "mamba2" else (*per_head, keys)

    def integers(self, tokens: int, *, keys: int = 4, seed: int = 0) -> Inputs:
        """One-hot keys, gates 0 or -inf, erasure of one channel, reflection or shear: every intermediate is
        an integer below 2^24, so that every form must be exact in float32 and float64."""
        rng = torch.Generator().manual_seed(seed)
        batch, heads, value_heads, values = 2, 2, 4, 3
        per_head = batch, tokens, value_heads

        def integer(low: int, high: int, *shape: int) -> Tensor:
            return torch.randint(low, high + 1, shape, generator=rng).double()

        def one_hot(*shape: int) -> Tensor:
            chosen = torch.randint(0, keys, shape, generator=rng)
            return torch.nn.functional.one_hot(chosen, keys).double()

        g = torch.zeros(self.gate_shape(*per_head, keys=keys), dtype=torch.float64)
        g[torch.rand(g.shape, generator=rng) < 0.1] = -torch.inf
        inputs = {
            "q": integer(-2, 2, batch, tokens, heads, keys),
            "k": one_hot(batch, tokens, heads),
            "v": integer(-3, 3, *per_head, values),
            "g": g,
            "initial_state": integer(-3, 3, batch, value_heads, keys, values),
        }
        if self.name == "dplr":
            erased = one_hot(*per_head)
            sheared = torch.rand(*per_head, 1, generator=rng) < 0.05
            inputs["a"] = -integer(0, 2, *per_head, 1) * erased
            inputs["b"] = torch.where(sheared, one_hot(*per_head), erased)
        if self.name == "gdn2":
            inputs |= {"b": integer(0, 1, *per_head, keys), "w": integer(0, 2, *per_head, values)}
        return inputs

    def random(self, tokens: int, *, keys: int = 8, gate: float | None = None, seed: int = 0) -> Inputs:
        """Keys of length just under 1, transitions that contract or nearly so, gates random unless fixed."""
        rng = torch.Generator().manual_seed(seed)
        batch, heads, value_heads, values = 2, 1, 2, 5
        per_head = batch, tokens, value_heads

        def normal(*shape: int) -> Tensor:
            return torch.randn(shape, generator=rng, dtype=torch.float64)

        def unit(*shape: int) -> Tensor:
            return torch.nn.functional.normalize(normal(*shape), dim=-1) * (1 - 2**-10)

        def strength(*shape: int) -> Tensor:
            return torch.rand(shape, generator=rng, dtype=torch.float64)

        g = torch.nn.functional.logsigmoid(2 * normal(*self.gate_shape(*per_head, keys=keys)))
        inputs = {
            "q": normal(batch, tokens, heads, keys),
            "k": unit(batch, tokens, heads, keys),
            "v": normal(*per_head, values),
            "g": g if gate is None else torch.full_like(g, gate),
            "initial_state": normal(batch, value_heads, keys, values),
        }
        if self.name == "dplr":
            direction = unit(*per_head, keys)
            inputs["a"] = -strength(*per_head, 1) * direction
            inputs["b"] = 0.9 * direction + 0.1 * unit(*per_head, keys)
        if self.name == "gdn2":
            inputs |= {"b": strength(*per_head, keys), "w": strength(*per_head, values)}
        return inputs


def family(name: str) -> Mechanism:
    forms: dict[str, Any] = {
        form: getattr(import_module(f"kernels.{name}.{form}"), f"{form}_{name}")
        for form in ("reference", "recurrent", "chunked")
    }
    return Mechanism(name=name, extra={"dplr": ("a", "b"), "gdn2": ("b", "w")}.get(name, ()), **forms)


def packed(inputs: Inputs, offsets: list[int]) -> Inputs:
    """The first run of the batch as packed sequences, with an initial state for each."""
    tokens = {name: x[:1] for name, x in inputs.items()}
    states = [(n + 1) * inputs["initial_state"][n % 2] for n in range(len(offsets) - 1)]
    return tokens | {"initial_state": torch.stack(states), "cu_seqlens": torch.tensor(offsets)}

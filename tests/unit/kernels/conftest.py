"""The mechanisms under test and the inputs they are tested on."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor

Inputs = dict[str, Tensor]
Kernel = Callable[..., tuple[Tensor, Tensor | None]]


@dataclass(frozen=True)
class Mechanism:
    """One delta rule in its three forms; its gate has a value per key channel, one per head, or is absent."""

    name: str
    reference: Kernel
    recurrent: Kernel
    chunked: Kernel
    gated: bool
    gate_per_channel: bool

    def own(self, inputs: Inputs) -> Inputs:
        """The inputs that the mechanism takes."""
        return {name: x for name, x in inputs.items() if self.gated or name != "g"}

    def gate_shape(self, batch: int, tokens: int, value_heads: int, keys: int) -> tuple[int, ...]:
        return (batch, tokens, value_heads, *([keys] if self.gate_per_channel else []))

    def integers(self, tokens: int, *, keys: int = 4, reset: bool = False, seed: int = 0) -> Inputs:
        """One-hot keys, beta in {0, 1}, gates 0 (or also -inf): every intermediate is a small integer
        times the scale, a power of two, so that every form must be exact in every format."""
        rng = torch.Generator().manual_seed(seed)
        batch, heads, value_heads, values = 2, 2, 4, 3

        def integer(low: int, high: int, *shape: int) -> Tensor:
            return torch.randint(low, high + 1, shape, generator=rng).double()

        chosen = torch.randint(0, keys, (batch, tokens, heads), generator=rng)
        g = torch.zeros(self.gate_shape(batch, tokens, value_heads, keys), dtype=torch.float64)
        if reset:
            g[torch.rand(g.shape, generator=rng) < 0.1] = -torch.inf
        inputs = {
            "q": integer(-2, 2, batch, tokens, heads, keys),
            "k": torch.nn.functional.one_hot(chosen, keys).double(),
            "v": integer(-3, 3, batch, tokens, value_heads, values),
            "g": g,
            "beta": integer(0, 1, batch, tokens, value_heads),
            "initial_state": integer(-3, 3, batch, value_heads, keys, values),
        }
        return self.own(inputs)

    def random(
        self,
        tokens: int,
        *,
        keys: int = 8,
        gate: float | None = None,
        beta: float | None = None,
        seed: int = 0,
    ) -> Inputs:
        """Keys of length just under 1, beta in [0, 2], gates a random decay unless ``gate`` fixes them."""
        rng = torch.Generator().manual_seed(seed)
        batch, heads, value_heads, values = 2, 1, 2, 5

        def normal(*shape: int) -> Tensor:
            return torch.randn(shape, generator=rng, dtype=torch.float64)

        g = torch.nn.functional.logsigmoid(2 * normal(*self.gate_shape(batch, tokens, value_heads, keys)))
        strength = 2 * torch.rand(batch, tokens, value_heads, generator=rng, dtype=torch.float64)
        inputs = {
            "q": normal(batch, tokens, heads, keys),
            "k": torch.nn.functional.normalize(normal(batch, tokens, heads, keys), dim=-1) * (1 - 2**-10),
            "v": normal(batch, tokens, value_heads, values),
            "g": g if gate is None else torch.full_like(g, gate),
            "beta": strength if beta is None else torch.full_like(strength, beta),
            "initial_state": normal(batch, value_heads, keys, values),
        }
        return self.own(inputs)


def delta_rule(name: str) -> Mechanism:
    forms: dict[str, Any] = {
        form: getattr(import_module(f"kernels.{name}.{form}"), f"{form}_{name}")
        for form in ("reference", "recurrent", "chunked")
    }
    return Mechanism(name=name, gated=name != "delta", gate_per_channel=name == "kda", **forms)


@pytest.fixture(params=["kda", "gdn", "delta"])
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    return delta_rule(request.param)


@pytest.fixture(params=["kda", "gdn"])
def gated(request: pytest.FixtureRequest) -> Mechanism:
    """A mechanism with a gate."""
    return delta_rule(request.param)

"""The mechanisms that can be certified, as data, and their definitions and kernels, found by name."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from verify.model.errors import unknown_name


@dataclass(frozen=True)
class Mechanism:
    """What a mechanism takes and carries; everything else about it follows.

    Per head, S <- Diag(e^g) S, then S <- S + beta k (v - S^T k)^T if it erases, else S <- S + k v^T, and
    o = S^T (scale q). Without a state it is causal softmax attention.

    Args:
        name: of its folder in ``derivations`` and in ``kernels``.
        gate: one log decay per ``"head"``, per ``"channel"``, or ``""`` for no decay.
        erases: whether a write, of strength beta, replaces what the state held at the key.
        stateful: whether the past is a state ``[K, V]``.
        shared: the inputs that one head lends to ``HV // H`` heads of the others and of the output.
        forms: the algebraic forms of its kernels whose rounding errors can be predicted.
    """

    name: str
    gate: str = ""
    erases: bool = False
    stateful: bool = True
    shared: tuple[str, ...] = ("q", "k")
    forms: tuple[str, ...] = ("recurrent", "chunked")

    @property
    def tokens(self) -> tuple[str, ...]:
        """The inputs with one entry per token."""
        gated = ("g",) if self.gate else ()
        return ("q", "k", "v", *gated, *(("beta",) if self.erases else ()))

    @property
    def fields(self) -> tuple[str, ...]:
        """All inputs that are arrays."""
        return (*self.tokens, *(("initial_state",) if self.stateful else ()))

    @property
    def features(self) -> frozenset[str]:
        """What an input class may ask for: gates, write strengths, logits."""
        words = {"gate": bool(self.gate), "beta": self.erases, "logits": not self.stateful}
        return frozenset(word for word, present in words.items() if present)

    def gate_shape(self, per_head: tuple[int, ...], keys: int) -> tuple[int, ...]:
        """The shape of g; ``per_head`` is ``(B, T, HV)``."""
        return (*per_head, keys) if self.gate == "channel" else per_head


MECHANISMS = {
    mechanism.name: mechanism
    for mechanism in (
        Mechanism("softmax", stateful=False, shared=("k", "v"), forms=("tiled",)),
        Mechanism("linear"),
        Mechanism("delta", erases=True),
        Mechanism("gdn", gate="head", erases=True),
        Mechanism("kda", gate="channel", erases=True),
    )
}
FORMS = tuple(dict.fromkeys(form for mechanism in MECHANISMS.values() for form in mechanism.forms))


def named(mechanism: str) -> Mechanism:
    """The mechanism of that name.

    Raises:
        RequestError: there is none; the message lists those there are.
    """
    if mechanism not in MECHANISMS:
        raise unknown_name("mechanism", mechanism, MECHANISMS)
    return MECHANISMS[mechanism]


def definition(mechanism: str) -> Any:
    """The module that states the mechanism's mathematics once, for every number system."""
    return importlib.import_module(f"derivations.{named(mechanism).name}.definition")


def kernel(mechanism: str, form: str) -> Callable[..., Any]:
    """This project's own kernel in one algebraic form: the model whose rounding errors are predicted."""
    forms = named(mechanism).forms
    if form not in forms:
        raise unknown_name(f"form of {mechanism}", form, forms)
    function: Callable[..., Any] = getattr(
        importlib.import_module(f"kernels.{mechanism}.{form}"), f"{form}_{mechanism}"
    )
    return function

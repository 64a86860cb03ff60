"""The mechanisms that can be certified, as data, and their definitions and kernels, found by name."""

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from verify.model.errors import unknown_name


@dataclass(frozen=True)
class Mechanism:
    """What a mechanism takes and carries; everything else about it follows.

    Per head, with a state S: S <- Diag(e^g) S, then S <- S + beta k (v - S^T k)^T if it erases, else
    S <- S + k v^T, and o = S^T (scale q). If it is ``directed``: see `Case.directions`. Without a state it is
    causal attention, o = sum_j p_j v_j, by weights p that add up to 1.

    Args:
        name: what it is asked for by.
        entries: its inputs besides q, k and v, in the order of its definition, and how many numbers one has
            per token and output head: 1 (``"head"``), K (``"channel"``) or V (``"value"``). g is the log
            decay, beta the strength of a write that replaces what the state held at the key.
        weights: of attention: ``"softmax"`` of the logits scale q^T k, or ``"linear"``; "" for a state.
        shared: the inputs that one head lends to ``HV // H`` heads of the others and of the output.
        forms: the algebraic forms of its kernels whose rounding errors can be predicted.
        scaled: whether queries are usually multiplied by K**-0.5; else by 1.
        room: its folder in ``derivations`` and in ``kernels``; "" for one of its name.
        options: arguments that make its kernels compute this mechanism; a ``window`` hides all keys but those
            of the last tokens, the query's own included.
        sink: a logit of every head that takes weight and has no value.
    """

    name: str
    entries: tuple[tuple[str, str], ...] = ()
    weights: str = ""
    shared: tuple[str, ...] = ("q", "k")
    forms: tuple[str, ...] = ("recurrent", "chunked")
    scaled: bool = True
    room: str = ""
    options: tuple[tuple[str, Any], ...] = ()
    sink: float | None = None

    @property
    def stateful(self) -> bool:
        """Whether the past is a state ``[K, V]``."""
        return not self.weights

    @property
    def gate(self) -> str:
        """One log decay per ``"head"``, per ``"channel"``, or ``""`` for no decay."""
        return dict(self.entries).get("g", "")

    @property
    def erases(self) -> bool:
        """Whether a write, of strength beta, replaces what the state held at the key."""
        return "beta" in dict(self.entries)

    @property
    def directed(self) -> bool:
        """Whether it removes from the state along directions of its own: those of `Case.directions`."""
        return "b" in dict(self.entries)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The inputs with one entry per token."""
        return ("q", "k", "v", *dict(self.entries))

    @property
    def fields(self) -> tuple[str, ...]:
        """All inputs that are arrays."""
        return (*self.tokens, *(("initial_state",) if self.stateful else ()))

    @property
    def data(self) -> tuple[str, ...]:
        """The inputs in the dtype of a call; gates, strengths and the state come in that of gates."""
        return ("q", "k", "v", *(("a", "b") if "a" in dict(self.entries) else ()))

    @property
    def features(self) -> frozenset[str]:
        """What an input class may ask for: gates, write strengths, logits, directions of their own,
        any scale: weights in proportion to products have none at scale 0."""
        words = {
            "gate": bool(self.gate),
            "beta": self.erases or self.directed,
            "logits": self.weights == "softmax",
            "directions": "a" in dict(self.entries),
            "scale": self.weights != "linear",
        }
        return frozenset(word for word, present in words.items() if present)

    def entry_shape(
        self, field: str, per_head: tuple[int, ...], keys: int, values: int = 0
    ) -> tuple[int, ...]:
        """The shape of one of ``entries``; ``per_head`` is ``(B, T, HV)``."""
        sizes = {"head": (), "channel": (keys,), "value": (values,)}
        return (*per_head, *sizes[dict(self.entries).get(field, "head")])

    def gate_shape(self, per_head: tuple[int, ...], keys: int) -> tuple[int, ...]:
        """The shape of g; ``per_head`` is ``(B, T, HV)``."""
        return self.entry_shape("g", per_head, keys)

    @property
    def window(self) -> int | None:
        """How many tokens a query sees, where not all before it."""
        found: int | None = dict(self.options).get("window")
        return found

    def scale(self, keys: int) -> float:
        """The usual factor on the queries."""
        return float(keys**-0.5) if self.scaled else 1.0


MECHANISMS = {
    mechanism.name: mechanism
    for mechanism in (
        Mechanism("softmax", weights="softmax", shared=("k", "v"), forms=("tiled",)),
        Mechanism(
            "softmax_window",
            weights="softmax",
            shared=("k", "v"),
            forms=("tiled",),
            room="softmax",
            options=(("window", 16),),
        ),
        Mechanism(
            "softmax_sink", weights="softmax", shared=("k", "v"), forms=("tiled",), room="softmax", sink=0.5
        ),
        Mechanism("linear"),
        Mechanism("linear_normalised", weights="linear", room="linear", options=(("normalise", True),)),
        Mechanism("delta", (("beta", "head"),)),
        Mechanism("gdn", (("g", "head"), ("beta", "head"))),
        Mechanism("kda", (("g", "channel"), ("beta", "head"))),
        Mechanism("mamba2", (("g", "head"),), scaled=False),
        Mechanism("simple_gla", (("g", "head"),), room="mamba2"),
        Mechanism("dplr", (("a", "channel"), ("b", "channel"), ("g", "channel"))),
        Mechanism("gdn2", (("g", "channel"), ("b", "channel"), ("w", "value"))),
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
    return importlib.import_module(f"derivations.{_room(mechanism)}.definition")


def kernel(mechanism: str, form: str) -> Callable[..., Any]:
    """This project's own kernel in one algebraic form: the model whose rounding errors are predicted."""
    forms = named(mechanism).forms
    if form not in forms:
        raise unknown_name(f"form of {mechanism}", form, forms)
    return _function(mechanism, form)


def formula(mechanism: str) -> Callable[..., Any]:
    """This project's transcription of the definition in torch, which computes in float64."""
    return _function(mechanism, "reference")


def _function(mechanism: str, form: str) -> Callable[..., Any]:
    room = _room(mechanism)
    function = getattr(importlib.import_module(f"kernels.{room}.{form}"), f"{form}_{room}")
    plain = functools.partial(function, **dict(named(mechanism).options))
    sink = named(mechanism).sink
    if sink is None:
        return plain

    @functools.wraps(function)
    def with_sink(q: Any, *arguments: Any, **options: Any) -> Any:
        return plain(q, *arguments, sink=q.new_full((q.shape[2],), sink), **options)

    return with_sink


def _room(mechanism: str) -> str:
    return named(mechanism).room or mechanism

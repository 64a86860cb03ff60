"""What goes into one run of a kernel under test, and what comes out."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from verify.audit.mechanism import Mechanism, named
from verify.audit.subject import rawbits
from verify.model.errors import RequestError

Array = NDArray[np.float64]
ProblemKind = Literal[
    "raised",
    "timeout",
    "killed",
    "memory",
    "wrong-return",
    "wrong-shape",
    "wrong-dtype",
    "not-finite",
    "inputs-mutated",
    "no-gradient",
]
DTYPES = ("float64", "float32", "bfloat16", "float16")
RESET = -1000.0
"""A log decay whose exponential is 0 in every format."""
FIELDS = ("q", "k", "v", "g", "beta", "a", "b", "w", "initial_state")


def check_dtype(name: str) -> None:
    """Raise a RequestError, which lists the dtypes there are, where q, k and v cannot be of this one."""
    if name not in DTYPES:
        raise RequestError(f"unknown dtype {name!r}; --dtype takes {', '.join(DTYPES[:-1])} or {DTYPES[-1]}")


@dataclass(frozen=True)
class Shape:
    """Sizes of a call; output head ``hv`` reads head ``hv // (HV // H)`` of what the mechanism shares.

    That is queries and keys for the recurrences (HV value heads), keys and values for softmax attention
    (HV query heads).
    """

    B: int
    T: int
    H: int
    HV: int
    K: int
    V: int


@dataclass(frozen=True, eq=False)
class Directions:
    """S <- Diag(e^g) S + out held^T + key value^T, held = read^T S, of S before or after its decay.

    read, out, key ``[B, T, HV, K]``, value ``[B, T, HV, V]``; products of inputs are rounded to float64.
    """

    read: Array
    out: Array
    key: Array
    value: Array
    before_decay: bool = False


@dataclass(frozen=True, eq=False)
class Case:
    """One input of a kernel, in this project's own convention.

    All arrays are float64 and hold values exactly representable in the dtype they are handed over
    in: ``dtype`` for q, k, v and the directions of DPLR, ``gate_dtype`` for the others.

    Args:
        mechanism: one of ``verify.audit.mechanism.MECHANISMS``; says which of the arrays below it takes.
        name: the input class, e.g. ``"constant-key-0.97"``.
        seed: seed the values were drawn from.
        dtype: ``"float64"``, ``"float32"``, ``"bfloat16"`` or ``"float16"``.
        q: queries, ``[B, T, H, K]``; for softmax attention ``[B, T, HV, K]``.
        k: keys, ``[B, T, H, K]``.
        v: values, ``[B, T, HV, V]``; for softmax attention ``[B, T, H, V]``.
        g: natural logarithm of the decay, ``[B, T, HV]`` per head or ``[B, T, HV, K]`` per channel; None for
            a mechanism without decay.
        beta: write strength (the value, not a logit), ``[B, T, HV]``; None for a mechanism that erases
            nothing.
        initial_state: ``[B, HV, K, V]``; None for zeros, and for a mechanism without a state.
        scale: factor on the queries.
        gate_dtype: defaults to float64 when ``dtype`` is float64, and to float32 otherwise.
        a: what DPLR reads the state with, before its decay, ``[B, T, HV, K]``; else None.
        b: where DPLR adds what it read, or the erase gates of GDN-2, ``[B, T, HV, K]``; else None.
        w: write gate of GDN-2, ``[B, T, HV, V]``; else None.

    Raises:
        RequestError: a shape does not fit the others, or a value is not representable.
    """

    mechanism: str
    name: str
    seed: int
    dtype: str
    q: Array
    k: Array
    v: Array
    g: Array | None
    beta: Array | None
    initial_state: Array | None
    scale: float
    gate_dtype: str = ""
    a: Array | None = None
    b: Array | None = None
    w: Array | None = None

    def __post_init__(self) -> None:
        check_dtype(self.dtype)
        if not self.gate_dtype:
            object.__setattr__(self, "gate_dtype", "float64" if self.dtype == "float64" else "float32")
        self._check_shapes()
        for name, array in self.arrays().items():
            dtype = self.dtype_of(name)
            if not rawbits.representable(array, dtype):
                raise RequestError(
                    f"case {self.name!r}: {name} holds values that are not {dtype}; round them first"
                )

    def _check_shapes(self) -> None:
        takes = self.kind
        if not self.q.ndim == self.k.ndim == self.v.ndim == 4:
            shapes = f"{self.q.shape}, {self.k.shape} and {self.v.shape}"
            raise RequestError(f"case {self.name!r}: q, k and v need 4 axes, but have shapes {shapes}")
        s = self.shape
        gates = (s.B, s.T, s.HV)
        heads = {field: s.H if field in takes.shared else s.HV for field in ("q", "k", "v")}
        expected: dict[str, tuple[int, ...]] = {
            "q": (s.B, s.T, heads["q"], s.K),
            "k": (s.B, s.T, heads["k"], s.K),
            "v": (s.B, s.T, heads["v"], s.V),
            **{field: takes.entry_shape(field, gates, s.K, s.V) for field, _ in takes.entries},
            "initial_state": (s.B, s.HV, s.K, s.V),
        }
        arrays = self.arrays()
        for field in FIELDS[3:]:
            if (field in takes.tokens) > (field in arrays) or (field in arrays) > (field in takes.fields):
                word = "needs" if field in takes.tokens else "takes no"
                raise RequestError(f"case {self.name!r}: {self.mechanism} {word} {field}")
        for field, shape in expected.items():
            if field in arrays and arrays[field].shape != shape:
                raise RequestError(
                    f"case {self.name!r}: {field} has shape {arrays[field].shape}; q and v ask for {shape}"
                )
        if s.H == 0 or s.HV % s.H != 0:
            raise RequestError(f"case {self.name!r}: HV = {s.HV} is not a multiple of H = {s.H}")

    @property
    def kind(self) -> Mechanism:
        """What the mechanism takes and carries."""
        return named(self.mechanism)

    @property
    def log_decay(self) -> Array:
        """The log decay with an axis of channels, ``[B, T, HV, K]`` or ``[B, T, HV, 1]``; 0 for none."""
        if self.g is None:
            s = self.shape
            return np.zeros((s.B, s.T, s.HV, 1))
        return self.g if self.g.ndim == 4 else self.g[..., None]

    @property
    def strength(self) -> Array:
        """The write strength ``[B, T, HV]``: beta, or 1."""
        s = self.shape
        return np.ones((s.B, s.T, s.HV)) if self.beta is None else self.beta

    @property
    def directions(self) -> Directions:
        """What one token reads, removes and writes, for every mechanism with a state.

        GDN-2 reads the decayed state with b k and removes along k; DPLR reads the state with a, before its
        decay, and adds along b.
        """
        key, value = self.spread("k"), self.v
        if self.a is not None and self.b is not None:
            return Directions(self.a, self.b, key, value, before_decay=True)
        if self.b is not None and self.w is not None:
            return Directions(self.b * key, -key, key, self.w * value)
        strength = self.strength[..., None]
        return Directions(key, -strength * key * float(self.kind.erases), key, strength * value)

    @property
    def shape(self) -> Shape:
        b, t, _, k = self.q.shape
        lent, whole = ("k", "v") if "q" in self.kind.shared else ("k", "q")
        h, hv = getattr(self, lent).shape[2], getattr(self, whole).shape[2]
        return Shape(B=b, T=t, H=h, HV=hv, K=k, V=self.v.shape[3])

    @property
    def visible(self) -> NDArray[np.bool_]:
        """Which keys a query of attention sees, ``[T, T]``."""
        tokens, window = self.shape.T, self.kind.window
        seen = np.tri(tokens, dtype=bool)
        return seen if window is None else seen & ~np.tri(tokens, k=-window, dtype=bool)

    def spread(self, field: str) -> Array:
        """An input with one head per head of the output: shared heads repeated."""
        array: Array = getattr(self, field)
        s = self.shape
        return np.repeat(array, s.HV // s.H, axis=2) if field in self.kind.shared else array

    def dtype_of(self, field: str) -> str:
        """The dtype an input is handed over in."""
        return self.dtype if field in self.kind.data else self.gate_dtype

    def arrays(self) -> dict[str, Array]:
        """The arrays that are present, by field name."""
        return {field: array for field in FIELDS if (array := getattr(self, field)) is not None}

    def with_finite_gates(self) -> Self:
        """With gates of -1000 for those of -inf: their decays are 0 in every format too."""
        if self.g is None or not np.isneginf(self.g).any():
            return self
        return dataclasses.replace(self, g=np.where(np.isneginf(self.g), RESET, self.g))

    def slice(self, t0: int, t1: int, initial_state: Array | None) -> Self:
        """Tokens ``t0 <= t < t1``, starting from ``initial_state``."""
        tokens = {field: getattr(self, field)[:, t0:t1] for field in self.kind.tokens}
        return dataclasses.replace(self, initial_state=initial_state, **tokens)

    def replace(self, **changes: object) -> Self:
        """A copy with the given fields changed; the result is checked like any other case."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Problem:
    """A fault of the kernel under test: what kind, and one clear sentence naming the value."""

    kind: ProblemKind
    message: str


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one run of the kernel gave, brought to this project's layout.

    Args:
        output: ``[B, T, HV, V]``, the exact upcast of what came back; None if nothing usable did.
        final_state: ``[B, HV, K, V]``, likewise; None also when the convention returns none.
        output_dtype: dtype that came back, ``""`` if nothing did.
        state_dtype: likewise for the final state.
        problem: None when the run kept its contract. ``inputs-mutated`` and ``wrong-dtype`` keep
            the arrays.
        seconds: time inside the call; for a run that never returned, time until it was ended.
        gradients: of a functional, by our input field, each of its input's shape; empty when not asked for.
    """

    output: Array | None
    final_state: Array | None
    output_dtype: str
    state_dtype: str
    problem: Problem | None
    seconds: float
    gradients: Mapping[str, Array] = dataclasses.field(default_factory=dict)

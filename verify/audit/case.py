"""What goes into one run of a kernel under test, and what comes out."""

import dataclasses
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from verify.audit.subject import rawbits
from verify.model.errors import RequestError, unknown_name

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
]
MECHANISMS = ("gdn", "kda")
DTYPES = ("float64", "float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Shape:
    """Sizes of a delta-rule call; value head ``hv`` reads query/key head ``hv // (HV // H)``."""

    B: int
    T: int
    H: int
    HV: int
    K: int
    V: int


@dataclass(frozen=True, eq=False)
class Case:
    """One input of a delta-rule kernel, in this project's own convention.

    All arrays are float64 and hold values exactly representable in the dtype they are handed over
    in: ``dtype`` for q, k, v and ``gate_dtype`` for g, beta and initial_state.

    Args:
        mechanism: ``"gdn"`` (one decay per head) or ``"kda"`` (one decay per channel).
        name: the input class, e.g. ``"constant-key-0.97"``.
        seed: seed the values were drawn from.
        dtype: ``"float64"``, ``"float32"``, ``"bfloat16"`` or ``"float16"``.
        q: queries, ``[B, T, H, K]``.
        k: keys, ``[B, T, H, K]``.
        v: values, ``[B, T, HV, V]``.
        g: natural logarithm of the decay, ``[B, T, HV]`` for gdn and ``[B, T, HV, K]`` for kda.
        beta: write strength (the value, not a logit), ``[B, T, HV]``.
        initial_state: ``[B, HV, K, V]``, or None for zeros.
        scale: factor on the queries.
        gate_dtype: defaults to float64 when ``dtype`` is float64, and to float32 otherwise.

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
    g: Array
    beta: Array
    initial_state: Array | None
    scale: float
    gate_dtype: str = ""

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise unknown_name("dtype", self.dtype, DTYPES)
        if not self.gate_dtype:
            object.__setattr__(self, "gate_dtype", "float64" if self.dtype == "float64" else "float32")
        self._check_shapes()
        for field, array in self.arrays().items():
            dtype = self.dtype if field in ("q", "k", "v") else self.gate_dtype
            if not rawbits.representable(array, dtype):
                raise RequestError(
                    f"case {self.name!r}: {field} holds values that are not {dtype}; round them first"
                )

    def _check_shapes(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise RequestError(f"mechanism {self.mechanism!r} is not one of {', '.join(MECHANISMS)}")
        if self.q.ndim != 4 or self.v.ndim != 4:
            raise RequestError(
                f"case {self.name!r}: q and v need 4 axes, but have shapes {self.q.shape} and {self.v.shape}"
            )
        s = self.shape
        gates = (s.B, s.T, s.HV)
        expected: dict[str, tuple[int, ...]] = {
            "k": self.q.shape,
            "v": (*gates, s.V),
            "g": gates if self.mechanism == "gdn" else (*gates, s.K),
            "beta": gates,
            "initial_state": (s.B, s.HV, s.K, s.V),
        }
        arrays = self.arrays()
        for field, shape in expected.items():
            if field in arrays and arrays[field].shape != shape:
                raise RequestError(
                    f"case {self.name!r}: {field} has shape {arrays[field].shape}; q and v ask for {shape}"
                )
        if s.H == 0 or s.HV % s.H != 0:
            raise RequestError(f"case {self.name!r}: HV = {s.HV} is not a multiple of H = {s.H}")

    @property
    def shape(self) -> Shape:
        b, t, h, k = self.q.shape
        return Shape(B=b, T=t, H=h, HV=self.v.shape[2], K=k, V=self.v.shape[3])

    def arrays(self) -> dict[str, Array]:
        """The arrays that are present, by field name."""
        fields = ("q", "k", "v", "g", "beta", "initial_state")
        return {field: array for field in fields if (array := getattr(self, field)) is not None}

    def slice(self, t0: int, t1: int, initial_state: Array | None) -> Self:
        """Tokens ``t0 <= t < t1``, starting from ``initial_state``."""
        tokens = {field: getattr(self, field)[:, t0:t1] for field in ("q", "k", "v", "g", "beta")}
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
    """

    output: Array | None
    final_state: Array | None
    output_dtype: str
    state_dtype: str
    problem: Problem | None
    seconds: float

"""How a kernel wants to be called: its declaration, and what that makes of a case."""

from dataclasses import dataclass

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.convention import forms
from verify.audit.convention.declaration import Declaration
from verify.numbers.formats import format_named, round_array


@dataclass(frozen=True)
class Convention(Declaration):
    """The contract between a :class:`Case` and one function. Its fields are those of `Declaration`."""

    def refusal(self, case: Case) -> str | None:
        """Why the function does not promise to accept ``case``; None when it does."""
        s, usual = case.shape, case.kind.scale(case.shape.K)
        if case.mechanism != self.mechanism:
            return f"the case is {case.mechanism} and the convention {self.mechanism}"
        if self.dtypes and case.dtype not in self.dtypes:
            return f"{case.dtype} is not supported, only {', '.join(self.dtypes)}"
        if self.head_size and {s.K, s.V} != {self.head_size}:
            return f"K = {s.K} and V = {s.V} are not supported, only K = V = {self.head_size}"
        if s.T % self.length_multiple:
            return f"T = {s.T} is not a multiple of {self.length_multiple}"
        if s.T == 0 and not self.supports_empty:
            return "T = 0 is not supported"
        if s.HV != s.H and not self.grouped_heads:
            return f"grouped heads (HV = {s.HV}, H = {s.H}) are not supported"
        if case.initial_state is not None and not self.takes_initial_state:
            return "an initial state is not supported"
        if self.scale == "fixed" and case.scale != usual:
            return f"scale {case.scale} is not supported, it is fixed at {usual}"
        if not self.gate_infinite and case.g is not None and np.isneginf(case.g).any():
            return "a gate of -inf is not supported"
        largest = {"value": np.inf, "sigmoid": 1.0, "2*sigmoid": 2.0}[self.beta_form]
        if case.beta is not None and case.beta.max(initial=0.0) > largest:
            return f"a write strength above {largest:g} is none that {self.beta_form} gives"
        return None

    def inputs(self, case: Case) -> dict[str, tuple[Array, str]]:
        """Array and dtype to hand over for each of our fields and constants, in their forms and layout."""
        handed, s = self.handed(case), case.shape
        if self.initial_state_required and "initial_state" not in handed:
            handed["initial_state"] = (np.zeros((s.B, s.HV, s.K, s.V)), case.gate_dtype)
        return {f: (self._theirs(case, f, array), dtype) for f, (array, dtype) in handed.items()}

    def handed(self, case: Case) -> dict[str, tuple[Array, str]]:
        """The same in our layout and order of heads, without a state that only the function wants."""
        given = {f: (self._handed(case, f), self.dtype_of(case, f)) for f in case.arrays()}
        return given | self._constants(case)

    def differentiated(self, case: Case) -> dict[str, tuple[Array, str]]:
        """What gradients are of: all of `handed`, with gates that go over as values as natural logarithms."""
        found = self.handed(case)
        if self.gate_form == "value" and (g := self.as_seen(case).g) is not None:
            found["g"] = g, found["g"][1]
        return found

    def _theirs(self, case: Case, field: str, array: Array) -> Array:
        if field == "initial_state":
            return self.their_state(case, array)
        if field in case.kind.tokens:
            return self.their_tokens(case, array, field)
        array = self.their_heads(case, array, 0)
        return array.reshape(-1) if field == "dt_bias" and self.dt_bias_shape == "flat" else array

    def dtype_of(self, case: Case, field: str) -> str:
        """The dtype an input is handed over in."""
        own = field == "initial_state" or field in case.kind.data or self.gate_dtype == "at-least-float32"
        return case.dtype_of(field) if own else self.resolve(self.gate_dtype, case.dtype)

    def as_seen(self, case: Case) -> Case:
        """The case whose exact solution the function is asked for.

        Converting an input to another form rounds it once more, and the function may norm what it is handed;
        the reference must start from what was really asked for. Where nothing is converted this is ``case``.
        """
        return self.understood(case, {f: self._handed(case, f) for f in case.arrays()})

    def understood(self, case: Case, handed: dict[str, Array]) -> Case:
        """The case that arrays in our layout mean to this convention."""
        meant = dict(handed)
        if "g" in handed:
            meant["g"] = self.gates.asked(handed["g"])
            if self.gate_form == "step":
                meant["v"] = handed["v"] * handed["g"][..., None]
        if "beta" in handed:
            meant["beta"] = forms.beta_asked(self.beta_form, handed["beta"])
        if self.qk_norm != "none":
            meant |= {f: forms.unit(handed[f], self.qk_norm_eps) for f in ("q", "k")}
        changes: dict[str, object] = {
            f: a for f, a in meant.items() if not np.array_equal(a, getattr(case, f))
        }
        if not changes:
            return case
        normed = {"dtype": "float64"} if changes.keys() & set(case.kind.data) else {}
        return case.replace(**changes, **normed, gate_dtype="float64")

    def _handed(self, case: Case, field: str) -> Array:
        """What goes over for one input, in our layout."""
        array: Array = getattr(case, field)
        dtype = self.dtype_of(case, field)
        if field == "g" and (self.gate_form, self.gate_space) != ("value", "ln"):
            array = self.gates.handed(array)
        elif field == "beta" and self.beta_form != "value":
            array = forms.beta_handed(self.beta_form, array)
        elif dtype == case.dtype_of(field):
            return array
        return round_array(format_named(dtype), array)

    def _constants(self, case: Case) -> dict[str, tuple[Array, str]]:
        """The constants of the gate form, and the logit of a sink, one of each output head."""
        found: dict[str, Array] = {}
        if case.kind.sink is not None:
            found["sink"] = np.full(case.shape.HV, case.kind.sink)
        elif case.g is not None and self.gate_form != "value":
            heads, channels = case.g.shape[2], case.g.shape[3] if case.g.ndim == 4 else None
            rates = "A" if self.gate_form == "step" else "A_log"
            found = {rates: self.gates.a_log(heads), "dt_bias": self.gates.bias(heads, channels)}
        return {f: (a, case.gate_dtype) for f, a in found.items() if f in self.arguments}

    def own_gradient(self, case: Case, field: str, array: Array) -> Array:
        """A gradient in their layout and gate space, brought to ours."""
        if field == "initial_state":
            return self.our_state(case, array)
        if field not in case.kind.tokens:
            return self._our_heads(case, array.reshape(self._constants(case)[field][0].shape), 0)
        array = self.our_tokens(case, array, field)
        if field != "g" or self.gate_space == "ln":
            return array
        seen = self.as_seen(case)
        assert seen.g is not None
        return np.asarray(array / np.log(2.0) if self.gate_space == "log2" else array * np.exp(seen.g))

    def numbers(self, case: Case) -> dict[str, float]:
        """The scale and the gates' lower bound, by their argument names."""
        found = {"scale": case.scale, "lower_bound": self.lower_bound}
        return {self.arguments[f]: x for f, x in found.items() if f in self.arguments}

    def absent(self, case: Case) -> dict[str, None]:
        """Their argument names that must be given although the case has nothing for them."""
        missing = self.takes_initial_state and case.initial_state is None and not self.initial_state_required
        return {self.arguments["initial_state"]: None} if missing else {}

    def their_tokens(self, case: Case, array: Array, field: str = "") -> Array:
        """An input ``[B, T, heads, ...]`` in their layout; no field: the output."""
        array = array if field in case.kind.shared else self.their_heads(case, array, 2)
        if self.token_layout == "THD":
            return array.reshape(-1, *array.shape[2:])
        return array.swapaxes(1, 2) if self.token_layout == "BHTD" else array

    def our_tokens(self, case: Case, array: Array, field: str = "") -> Array:
        """The inverse of `their_tokens`."""
        if self.token_layout == "THD":
            array = array.reshape(case.shape.B, case.shape.T, *array.shape[1:])
        array = array.swapaxes(1, 2) if self.token_layout == "BHTD" else array
        return array if field in case.kind.shared else self._our_heads(case, array, 2)

    def their_state(self, case: Case, state: Array) -> Array:
        """A state ``[B, HV, K, V]`` in their layout."""
        state = self.their_heads(case, state, 1)
        return state.swapaxes(-1, -2) if self.state_layout == "VK" else state

    def our_state(self, case: Case, state: Array) -> Array:
        """The inverse of `their_state`."""
        state = state.swapaxes(-1, -2) if self.state_layout == "VK" else state
        return self._our_heads(case, state, 1)

    def promised(self, case: Case, sequences: int) -> dict[str, tuple[tuple[int, ...], str]]:
        """Shape and dtype of the output and of the final state, in their layout."""
        s = case.shape
        inner = (s.K, s.V) if self.state_layout == "KV" else (s.V, s.K)
        tokens = {"BTHD": (s.B, s.T, s.HV), "BHTD": (s.B, s.HV, s.T), "THD": (s.B * s.T, s.HV)}
        return {
            "output": ((*tokens[self.token_layout], s.V), self.resolve(self.output_dtype, case.dtype)),
            "final_state": ((sequences, s.HV, *inner), self.resolve(self.state_dtype, case.dtype)),
        }

    def other_layout(self, name: str, got: tuple[int, ...], promised: tuple[int, ...]) -> str:
        """Which other layout a shape is that of, as the end of a sentence; "" for none."""
        if name == "final_state" and got == (*promised[:-2], promised[-1], promised[-2]):
            return f'; matches if state_layout = "{"VK" if self.state_layout == "KV" else "KV"}"'
        if name == "output" and len(promised) == 4 and got == tuple(promised[i] for i in (0, 2, 1, 3)):
            return f'; matches if token_layout = "{"BHTD" if self.token_layout == "BTHD" else "BTHD"}"'
        return ""

    def their_heads(self, case: Case, array: Array, axis: int) -> Array:
        """Output heads along an axis in their order."""
        return array if self.head_order == "repeated" else array.take(self._tiled(case), axis)

    def _our_heads(self, case: Case, array: Array, axis: int) -> Array:
        return array if self.head_order == "repeated" else array.take(self._tiled(case).argsort(), axis)

    @staticmethod
    def _tiled(case: Case) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Our number of their head j, which reads lent head j % H."""
        s = case.shape
        theirs = np.arange(s.HV)
        return theirs % s.H * (s.HV // s.H) + theirs // s.H

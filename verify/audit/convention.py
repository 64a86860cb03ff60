"""How a kernel wants to be called: argument names, gate space, layouts, dtypes, sizes it accepts."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.convention_file import INPUTS, checked, read
from verify.audit.mechanism import Mechanism, named
from verify.model.errors import RequestError

# exp of this underflows to zero in every format; stands for the logarithm of a decay handed over as 0.
_LN_OF_ZERO = -1e5


@dataclass(frozen=True)
class Convention:
    """The contract between a :class:`Case` and one function.

    Args:
        name: preset name, or path of the user's file.
        mechanism: one of ``verify.audit.mechanism.MECHANISMS``.
        summary: one line for people.
        arguments: our field to their argument name; names of fields that the mechanism does not have are not
            used. Without ``initial_state`` the function takes no state, without ``scale`` no scale.
        positional: our fields handed over by position, in order; all others go by keyword.
        gate_space: what their ``g`` is: natural log of the decay, log to base 2, or the decay.
        scale: ``"fixed"`` when the function multiplies queries by ``K**-0.5`` itself.
        token_layout: ``[B, T, H, K]`` or ``[B, H, T, K]``, for all inputs and the output.
        state_layout: ``[B, HV, K, V]`` or ``[B, HV, V, K]``.
        grouped_heads: whether HV > H is accepted (value head hv reads q/k head hv // (HV // H)).
        length_multiple: T must be a multiple of this.
        form: the algorithm, for the derived tolerance.
        chunk_size: tokens per chunk, or keys per tile; None for a recurrent function.
        gate_sums: how a chunked function forms the exponent between two tokens: ``"running"``, the
            difference of two running sums over the chunk, or ``"segment"``, the sum of the gates between.
        corrections: how a chunked function that erases finds what it writes: ``"factored"``, U - W S from
            stored factors, or ``"solved"``, by one solve for the difference.
        compute_dtype: dtype the algorithm accumulates in (a rule, see :meth:`resolve`).
        output_dtype: dtype the output must come back in (a rule).
        state_dtype: dtype the final state must come back in (a rule).
        returns: a pair (output, state), the output alone, or a tuple that starts with the output.
        gradients: what may be differentiated: nothing, the output, or the final state too.
        cu_seqlens: their argument for the offsets of sequences packed along T (int64, B = 1); "" for none.
        extra: further keyword arguments, e.g. ``{"output_final_state": True}``.
        initial_state_required: the function takes no None; an absent state goes over as zeros.
        supports_empty: whether T = 0 is accepted.
    """

    name: str
    mechanism: str
    summary: str = ""
    arguments: Mapping[str, str] = field(default_factory=lambda: {name: name for name in INPUTS})
    positional: tuple[str, ...] = ()
    gate_space: str = "ln"
    scale: str = "argument"
    token_layout: str = "BTHD"
    state_layout: str = "KV"
    grouped_heads: bool = True
    length_multiple: int = 1
    form: str = "recurrent"
    chunk_size: int | None = None
    gate_sums: str = "running"
    corrections: str = "factored"
    compute_dtype: str = "float32"
    output_dtype: str = "input"
    state_dtype: str = "float32"
    returns: str = "output-and-state"
    gradients: str = "none"
    cu_seqlens: str = ""
    extra: Mapping[str, bool | int | float | str] = field(default_factory=dict)
    initial_state_required: bool = False
    supports_empty: bool = True

    @classmethod
    def load(cls, name: str, mechanism: str, target: str | None = None) -> Self:
        """The preset ``name``, or the TOML file ``name``, for one function.

        Args:
            name: a preset (see `convention_file.presets`) or the path of a ``.toml`` file of the same form.
            mechanism: one of ``verify.audit.mechanism.MECHANISMS``.
            target: function name or whole target text; selects the entry under ``[functions]``.

        Raises:
            RequestError: unknown name, unreadable file, unknown field or value, or a function that
                is of the other mechanism.
        """
        named(mechanism)
        table = read(name)
        functions = table.pop("functions", {})
        if not isinstance(functions, dict):
            raise RequestError(f"convention {name}: functions must be tables, one per function name")
        known = [f.name for f in dataclasses.fields(cls) if f.name != "name"]
        fields = checked(table, known, name)
        for function, entry in functions.items():
            overrides = checked(entry, known, f"{name}, function {function}")
            if target is not None and function == _function_name(target):
                fields.update(overrides)
                if overrides.get("form") == "recurrent":
                    fields.pop("chunk_size", None)
        if fields.setdefault("mechanism", mechanism) != mechanism:
            raise RequestError(
                f"{_function_name(target or name)} is a {fields['mechanism']} function in convention {name}, "
                f"not {mechanism}; ask for mechanism {fields['mechanism']}"
            )
        convention = cls(name=name, **fields)
        convention._check_consistency()
        return convention

    def _check_consistency(self) -> None:
        if missing := [f for f in self.kind.tokens if f not in self.arguments]:
            raise RequestError(f"convention {self.name}: arguments has no name for {', '.join(missing)}")
        if ("scale" in self.arguments) != (self.scale == "argument"):
            raise RequestError(
                f"convention {self.name}: scale is {self.scale!r}, so arguments must "
                f"{'name' if self.scale == 'argument' else 'not name'} scale"
            )
        if (self.chunk_size is None) != (self.form == "recurrent"):
            raise RequestError(
                f"convention {self.name}: chunk_size is for chunked functions and needed there, "
                f"got form {self.form!r} with chunk_size {self.chunk_size}"
            )
        if not self.kind.stateful and self.returns == "output-and-state":
            raise RequestError(
                f"convention {self.name}: {self.mechanism} has no state to return; "
                f"returns must be output or output-first"
            )
        if self.form not in self.kind.forms:
            raise RequestError(
                f"convention {self.name}: {self.mechanism} has no form {self.form!r}, "
                f"only {', '.join(self.kind.forms)}"
            )

    @property
    def kind(self) -> Mechanism:
        """What the mechanism takes and carries."""
        return named(self.mechanism)

    @property
    def takes_initial_state(self) -> bool:
        return self.kind.stateful and "initial_state" in self.arguments

    @property
    def returns_state(self) -> bool:
        return self.kind.stateful and self.returns == "output-and-state"

    @staticmethod
    def resolve(rule: str, dtype: str) -> str:
        """The dtype a rule names for inputs of ``dtype``; "at-least-float32" keeps float64."""
        if rule == "at-least-float32":
            return "float64" if dtype == "float64" else "float32"
        return dtype if rule == "input" else rule

    def refusal(self, case: Case) -> str | None:
        """Why the function does not promise to accept ``case``; None when it does."""
        s = case.shape
        if case.mechanism != self.mechanism:
            return f"the case is {case.mechanism} and the convention {self.mechanism}"
        if s.T % self.length_multiple:
            return f"T = {s.T} is not a multiple of {self.length_multiple}"
        if s.T == 0 and not self.supports_empty:
            return "T = 0 is not supported"
        if s.HV != s.H and not self.grouped_heads:
            return f"grouped heads (HV = {s.HV}, H = {s.H}) are not supported"
        if case.initial_state is not None and not self.takes_initial_state:
            return "an initial state is not supported"
        if self.scale == "fixed" and case.scale != s.K**-0.5:
            return f"scale {case.scale} is not supported, it is fixed at K**-0.5 = {s.K**-0.5}"
        return None

    def inputs(self, case: Case) -> dict[str, tuple[Array, str]]:
        """Array and dtype to hand over for each of our fields, in their gate space and layout."""
        handed = {f: (a, case.dtype_of(f)) for f, a in case.arrays().items()}
        if case.g is not None:
            handed["g"] = (self._gate(case.g, case.gate_dtype), case.gate_dtype)
        handed = {f: (self.swap_tokens(a) if f in case.kind.tokens else a, d) for f, (a, d) in handed.items()}
        s = case.shape
        if self.initial_state_required and "initial_state" not in handed:
            handed["initial_state"] = (np.zeros((s.B, s.HV, s.K, s.V)), case.gate_dtype)
        if "initial_state" in handed:
            handed["initial_state"] = (self.swap_state(handed["initial_state"][0]), case.gate_dtype)
        return handed

    def own_gradient(self, case: Case, field: str, array: Array) -> Array:
        """A gradient in their layout and gate space, brought to ours."""
        if field == "initial_state":
            return self.swap_state(array)
        array = self.swap_tokens(array) if field in case.kind.tokens else array
        if field != "g" or self.gate_space == "ln":
            return array
        seen = self.as_seen(case)
        assert seen.g is not None
        return np.asarray(array / np.log(2.0) if self.gate_space == "log2" else array * np.exp(seen.g))

    def absent(self, case: Case) -> dict[str, None]:
        """Their argument names that must be given although the case has nothing for them."""
        missing = self.takes_initial_state and case.initial_state is None and not self.initial_state_required
        return {self.arguments["initial_state"]: None} if missing else {}

    def swap_tokens(self, array: Array) -> Array:
        """Between our layout of tokens and heads and theirs; its own inverse."""
        return array.swapaxes(1, 2) if self.token_layout == "BHTD" else array

    def swap_state(self, state: Array) -> Array:
        """Between our state layout and theirs; its own inverse."""
        return state.swapaxes(-1, -2) if self.state_layout == "VK" else state

    def as_seen(self, case: Case) -> Case:
        """The case whose exact solution the function is asked for.

        Converting the gate to another space rounds it once more; the reference must start from
        what was really handed over. For ``gate_space = "ln"`` this is ``case`` itself.
        """
        if self.gate_space == "ln" or case.g is None:
            return case
        gate = self._gate(case.g, case.gate_dtype)
        if self.gate_space == "log2":
            seen = gate * np.log(2.0)
        else:
            seen = np.log(gate, out=np.full_like(gate, _LN_OF_ZERO), where=gate > 0)
        return case.replace(g=seen, gate_dtype="float64")

    def _gate(self, g: Array, dtype: str) -> Array:
        if self.gate_space == "ln":
            return g
        theirs = g / np.log(2.0) if self.gate_space == "log2" else np.exp(g)
        return np.asarray(theirs.astype(dtype), dtype=np.float64)


def _function_name(target: str) -> str:
    return target.rpartition(":")[2].split(".")[0]

"""What is declared about a function, as data: names, spaces, forms, layouts, formats, sizes it accepts."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from verify.audit.convention.contradictions import contradiction
from verify.audit.convention.file import INPUTS, checked, read
from verify.audit.convention.forms import GateForm
from verify.audit.mechanism import Mechanism, named
from verify.model.errors import RequestError


@dataclass(frozen=True)
class Declaration:
    """The contract of one function. A rule of formats is ``input``, ``at-least-float32`` or a format's name.

    Args:
        name: preset name, or path of the user's file.
        mechanism: what the function computes.
        summary: one line for people.
        arguments: our field to their argument name; names of fields that the mechanism does not have are not
            used. Without initial_state the function takes no state, without scale no scale; A_log, A, dt_bias
            and lower_bound are the constants of gate_form.
        positional: our fields handed over by position, in order; all others go by keyword.
        gate_form: what becomes of g in the function: nothing, so that it is a value in gate_space; or
            softplus, -exp(A_log) softplus(g + dt_bias); or sigmoid, lower_bound sigmoid(exp(A_log)
            (g + dt_bias)); or step, A g, where values are multiplied by the step g too (Mamba-2's dt).
        gate_space: what g is as a value: natural log of the decay, log to base 2, or the decay, linear.
        gate_infinite: whether g may be -inf, a decay of exactly 0, where it is a logarithm.
        lower_bound: of the sigmoid gate, below 0; lower gates are handed over at the bound.
        dt_bias_shape: of gates per channel: flat, [HV*K], or heads, [HV, K].
        beta_form: what becomes of beta in the function: nothing (value), sigmoid or 2*sigmoid.
        qk_norm: what becomes of queries and keys in the function: nothing (none), or x / sqrt(|x|^2 + eps),
            kept in compute_dtype (unit) or rounded to the dtype of the input (unit-rounded).
        qk_norm_eps: eps of the norm, added to the sum of squares.
        scale: fixed when the function has its own scale, the usual one of the mechanism (K**-0.5).
        token_layout: [B, T, H, K], [B, H, T, K], or sequences packed along T, [B*T, H, K], with cu_seqlens.
        state_layout: [B, HV, K, V] or [B, HV, V, K].
        grouped_heads: whether HV > H is accepted.
        head_order: which lent head output head hv reads: repeated, hv // (HV // H), or tiled, hv % H.
        head_size: the only size K = V that is accepted; 0 for any.
        dtypes: dtypes of q, k and v that are accepted; empty for any.
        length_multiple: T must be a multiple of this.
        form: the algorithm, for the derived tolerance.
        chunk_size: tokens per chunk, or keys per tile; only of chunked and tiled functions.
        gate_sums: how a chunked function forms the exponent between two tokens: running, the difference of
            two running sums over the chunk, running-log2, that of running sums multiplied by log2 e, or
            segment, the sum of the gates between. Of a recurrent function only whole says something: that it
            finds the gradients of gates as running sums of q dq - k dk over all later tokens.
        corrections: how a chunked function that erases finds what it writes: factored, U - W S from stored
            factors, or solved, by one solve for the difference.
        inverse: how a chunked function that erases inverts I + L: by substitution, of rows or blocks, or by
            doubling, (I - L)(I + L^2)(I + L^4)...
        products: format that both factors of a matrix product are rounded to; compute for compute_dtype.
        accumulate: how matrix products are summed: nearest, each addition rounded to nearest, or as the
            tensor cores of volta, ampere (Ada too) or hopper (Blackwell too) do.
        chunk_argument: their argument for the chunk or tile size; "" for none.
        chunk_sizes: the sizes it takes; empty for any.
        gate_dtype: format gates and write strengths are handed over in (a rule).
        compute_dtype: format the algorithm accumulates in (a rule).
        storage_dtype: format a chunked function stores its intermediate matrices in (a rule, or compute, for
            compute_dtype).
        output_dtype: format the output must come back in (a rule).
        state_dtype: format the final state must come back in (a rule).
        returns: a pair (output, state), the output alone, a tuple that starts with the output, or nothing.
        output_buffer: their argument for a tensor that the output is written to; "" for none.
        state_buffer: their argument for a tensor that the final state is written to; "" for none.
        state_in_place: whether the final state is what the function leaves in initial_state.
        state_indices: their argument (int32) for the slots of the sequences in a pool of states, which
            initial_state is then; "" for none.
        overwrites: our fields whose tensors the function may write into, besides buffers and states.
        gradients: what may be differentiated: nothing, the output, or the final state too.
        cu_seqlens: their argument for the offsets of sequences packed along T (int64, B = 1); "" for none.
        extra: further keyword arguments, e.g. output_final_state.
        optional: our fields that may be None: g for no decay, beta for 1.
        batch_invariant: whether a sequence must give the same bits whatever else shares the call.
        initial_state_required: the function takes no None; an absent state goes over as zeros.
        supports_empty: whether T = 0 is accepted.
        not_stated: fields whose value is assumed, because the sources of the preset do not state it.
    """

    name: str
    mechanism: str
    summary: str = ""
    arguments: Mapping[str, str] = field(default_factory=lambda: {name: name for name in INPUTS})
    positional: tuple[str, ...] = ()
    gate_form: str = "value"
    gate_space: str = "ln"
    gate_infinite: bool = False
    lower_bound: float = 0.0
    dt_bias_shape: str = "flat"
    beta_form: str = "value"
    qk_norm: str = "none"
    qk_norm_eps: float = 1e-6
    scale: str = "argument"
    token_layout: str = "BTHD"
    state_layout: str = "KV"
    grouped_heads: bool = True
    head_order: str = "repeated"
    head_size: int = 0
    dtypes: tuple[str, ...] = ()
    length_multiple: int = 1
    form: str = "recurrent"
    chunk_size: int | None = None
    gate_sums: str = "running"
    corrections: str = "factored"
    inverse: str = "substitution"
    products: str = "compute"
    accumulate: str = "nearest"
    chunk_argument: str = ""
    chunk_sizes: tuple[int, ...] = ()
    gate_dtype: str = "at-least-float32"
    compute_dtype: str = "float32"
    storage_dtype: str = "compute"
    output_dtype: str = "input"
    state_dtype: str = "float32"
    returns: str = "output-and-state"
    output_buffer: str = ""
    state_buffer: str = ""
    state_in_place: bool = False
    state_indices: str = ""
    overwrites: tuple[str, ...] = ()
    gradients: str = "none"
    cu_seqlens: str = ""
    extra: Mapping[str, bool | int | float | str] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    batch_invariant: bool = False
    initial_state_required: bool = False
    supports_empty: bool = True
    not_stated: tuple[str, ...] = ()

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
        fields, functions = cls.tables(name)
        function = "" if target is None else function_name(target)
        own = functions.get(f"{mechanism}:{function}", functions.get(function, {}))
        fields = combined(fields, own)
        if fields.setdefault("mechanism", mechanism) != mechanism:
            raise RequestError(
                f"{function or name} is a {fields['mechanism']} function in convention {name}, "
                f"not {mechanism}; ask for mechanism {fields['mechanism']}"
            )
        convention = cls(name=name, **fields)
        convention.check()
        return convention

    @classmethod
    def tables(cls, name: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """The fields that a preset or file gives for all its functions, and those of each function."""
        table = read(name)
        functions = table.pop("functions", {})
        if not isinstance(functions, dict):
            raise RequestError(f"convention {name}: functions must be tables, one per function name")
        known = [f.name for f in dataclasses.fields(cls) if f.name != "name"]
        return checked(table, known, name), {
            function: checked(entry, known, f"{name}, function {function}")
            for function, entry in functions.items()
        }

    def check(self) -> None:
        """Raise RequestError where two fields contradict each other."""
        if (why := contradiction(self)) is not None:
            raise RequestError(f"convention {self.name}: {why}")

    @property
    def kind(self) -> Mechanism:
        """What the mechanism takes and carries."""
        return named(self.mechanism)

    @property
    def gates(self) -> GateForm:
        """How the function makes its gates."""
        takes = "A_log" in self.arguments, "dt_bias" in self.arguments
        return GateForm(self.gate_form, self.gate_space, self.lower_bound, *takes)

    @property
    def takes_initial_state(self) -> bool:
        return self.kind.stateful and "initial_state" in self.arguments

    @property
    def returns_state(self) -> bool:
        """Whether the final state comes back: returned, in a buffer, or in place."""
        kept = self.returns == "output-and-state" or bool(self.state_buffer) or self.state_in_place
        return self.kind.stateful and kept

    @property
    def written(self) -> tuple[str, ...]:
        """Our inputs whose tensors the function may write into."""
        return (*self.overwrites, *(("initial_state",) if self.state_in_place else ()))

    @staticmethod
    def resolve(rule: str, dtype: str) -> str:
        """The dtype a rule names for inputs of ``dtype``; "at-least-float32" keeps float64."""
        if rule == "at-least-float32":
            return "float64" if dtype == "float64" else "float32"
        return dtype if rule == "input" else rule


OF_CHUNKS = ("chunk_size", "gate_sums", "corrections", "storage_dtype")


def combined(fields: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of one function: its own before those of all; a recurrent one has no chunks."""
    both = {**fields, **overrides}
    if overrides.get("form") == "recurrent":
        both.pop("chunk_size", None)
    # An entry that states a field no longer assumes it.
    assumed = [f for f in fields.get("not_stated", ()) if f not in overrides]
    assumed += overrides.get("not_stated", ())
    unused = OF_CHUNKS if both.get("form") == "recurrent" else ()
    both["not_stated"] = tuple(f for f in dict.fromkeys(assumed) if f not in unused)
    return both


def function_name(target: str) -> str:
    """The name of the function in a target's text."""
    return target.rpartition(":")[2].split(".")[0]

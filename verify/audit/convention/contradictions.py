"""What a declaration may not say at once, in the words of its fields."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verify.audit.convention.declaration import Declaration

Rules = list[tuple[bool, str]]
"""Whether a rule is broken, and the sentence to say then."""


def contradiction(declared: "Declaration") -> str | None:
    """The first broken rule's sentence; None for a declaration that can be."""
    rules = (*_of_calls(declared), *_of_algorithm(declared), *_of_forms(declared))
    return next((why for broken, why in rules if broken), None)


def _of_algorithm(c: "Declaration") -> Rules:
    kind, missing = c.kind, [f for f in c.kind.tokens if f not in c.arguments]
    own = "name" if c.scale == "argument" else "not name"
    return [
        (bool(missing), f"arguments has no name for {', '.join(missing)}"),
        (
            ("scale" in c.arguments) != (c.scale == "argument"),
            f"scale is {c.scale!r}, so arguments must {own} scale",
        ),
        (
            (c.chunk_size is None) != (c.form == "recurrent"),
            "chunk_size is for chunked functions and needed there, "
            f"got form {c.form!r} with chunk_size {c.chunk_size}",
        ),
        (
            c.accumulate != "nearest" and c.products == "compute",
            f"accumulate {c.accumulate!r} is of factors in tf32, bfloat16 or float16; name that in products",
        ),
        (
            c.gate_sums == "whole" and c.form != "recurrent",
            f"gate_sums 'whole' is of recurrent functions, not of a {c.form} one",
        ),
        (
            c.inverse == "doubling" and not (c.form == "chunked" and kind.erases),
            f"inverse is of chunked functions that erase, not of a {c.form} {c.mechanism}",
        ),
        (
            c.form not in kind.forms,
            f"{c.mechanism} has no form {c.form!r}, only {', '.join(kind.forms)}",
        ),
    ]


def _of_calls(c: "Declaration") -> Rules:
    given = {"returned": c.returns == "output-and-state", "in state_buffer": bool(c.state_buffer)}
    given["in place"] = c.state_in_place
    places = [place for place, here in given.items() if here]
    own = c.output_buffer or c.state_buffer or c.state_in_place or c.overwrites
    return [
        (
            not c.kind.stateful and bool(places),
            f"{c.mechanism} has no state to return; returns must be output or output-first",
        ),
        (len(places) > 1, f"the final state cannot be {' and '.join(places)} at once"),
        (
            (c.returns == "nothing") != bool(c.output_buffer),
            "a function that returns nothing needs an output_buffer, and only such a one has it",
        ),
        (
            bool(c.state_indices) and not c.state_in_place,
            "state_indices names slots of a pool, which needs state_in_place = true",
        ),
        (
            c.state_in_place and not (c.initial_state_required and c.takes_initial_state),
            "a state updated in place needs initial_state_required = true and a name for initial_state",
        ),
        (
            c.token_layout == "THD" and not c.cu_seqlens,
            "packed tokens (token_layout THD) need a name for cu_seqlens",
        ),
        (
            bool(own) and c.gradients != "none",
            "a function that writes into its arguments is not differentiated; gradients must be none",
        ),
    ]


def _of_forms(c: "Declaration") -> Rules:
    return [
        (
            c.gate_form != "value" and c.gate_space != "ln",
            f"gate_space is of gates handed over as values, and gate_form is {c.gate_form!r}",
        ),
        (
            c.gate_infinite and (c.gate_form, c.gate_space) not in (("value", "ln"), ("value", "log2")),
            "gate_infinite is of gates handed over as logarithms, "
            f"got gate_form {c.gate_form!r} with gate_space {c.gate_space!r}",
        ),
        (
            (c.gate_form == "sigmoid") != (c.lower_bound < 0) or c.lower_bound > 0,
            "the sigmoid gate, and only that, needs a lower_bound below 0, "
            f"got gate_form {c.gate_form!r} with lower_bound {c.lower_bound}",
        ),
        (
            c.gate_form == "step" and (c.kind.gate != "head" or "A" not in c.arguments),
            "the step form of gates is one number per head, and arguments must name A",
        ),
    ]

"""Where a target writes results, and the weights its results are differentiated with, for the worker."""

from typing import Any

from verify.audit.case import Array, Case
from verify.audit.convention.convention import Convention
from verify.audit.gradient.functional import Cotangent


def places(c: Convention, case: Case, sequences: int) -> dict[str, Any]:
    """Buffers, a state in place or the slots of a pool, and what else the target may write into."""
    promised = c.promised(case, sequences)
    buffers = {"output": c.output_buffer, "final_state": c.state_buffer}
    # Backwards and with gaps, so that a target that ignores the slots reads NaN.
    slots = list(range(2 * sequences - 1, 0, -2))
    return {
        "buffers": {name: (a, *promised[name]) for name, a in buffers.items() if a},
        "in_place": c.arguments["initial_state"] if c.state_in_place else None,
        "pool": (c.state_indices, slots) if c.state_indices else None,
        "overwrites": [c.arguments[field] for field in c.overwrites],
    }


def cotangents(c: Convention, case: Case, functional: Cotangent) -> dict[str, tuple[Array, str]]:
    """The functional's coefficients in their layout, for the worker to cast."""
    pairs = {"output": (c.their_tokens(case, functional.output), "float64")}
    if c.gradients == "output-and-state" and c.returns_state:
        pairs["final_state"] = c.their_state(case, functional.state), "float64"
    return pairs

"""Reads what a worker's call gave: the tensors it left, and every promise of the convention they break."""

from pathlib import Path
from typing import Any

from verify.audit.case import Array, Case, Outcome, Problem
from verify.audit.convention.convention import Convention
from verify.audit.subject import rawbits


def outcome(
    convention: Convention,
    folder: str,
    case: Case,
    report: dict[str, Any],
    sequences: int,
    memory_limit_gib: float,
) -> Outcome:
    """What a call gave, in our layout, or what went wrong.

    Args:
        convention: how the call was made.
        folder: where the worker left the tensors.
        case: what was handed over.
        report: the worker's.
        sequences: how many there were, packed or not.
        memory_limit_gib: what the worker had.
    """
    seconds = report["seconds"]
    if report["kind"] is not None:
        message = report["message"]
        if report["kind"] == "raised":
            message = f"the target raised {message}"
        elif report["kind"] == "memory":
            message = f"the target ran out of its {memory_limit_gib:g} GiB of memory: {message}"
        return Outcome(None, None, "", "", Problem(report["kind"], message), seconds)
    arrays, dtypes, problem = _read_back(convention, folder, case, report["tensors"], sequences)
    if report["mutated"] is not None:
        problem = Problem("inputs-mutated", report["mutated"])
    output, state = arrays.get("output"), arrays.get("final_state")
    gradients = convention.handed(case)
    return Outcome(
        output=None if output is None else convention.our_tokens(case, output),
        final_state=None if state is None else convention.our_state(case, state),
        output_dtype=dtypes["output"],
        state_dtype=dtypes.get("final_state", ""),
        problem=problem,
        seconds=seconds,
        gradients={
            field: convention.own_gradient(case, field, arrays[f"d_{name}"])
            for field, name in convention.arguments.items()
            if f"d_{name}" in arrays and field in gradients
        },
    )


def _read_back(
    convention: Convention, folder: str, case: Case, headers: list[dict[str, Any]], sequences: int
) -> tuple[dict[str, Array], dict[str, str], Problem | None]:
    """Arrays that have the promised shape, every dtype, and the first broken promise."""
    c, promised = convention, convention.promised(case, sequences)
    for field, (array, dtype) in c.inputs(case).items():
        promised[f"d_{c.arguments[field]}"] = array.shape, dtype
    arrays, problem = {}, None
    with open(Path(folder, "output"), "rb") as file:
        for header in headers:
            raw, name, dtype = file.read(header["bytes"]), header["name"], header["dtype"]
            shape, expected = promised[name]
            got = tuple(header["shape"])
            if dtype != expected:
                message = f"{name} came back in {dtype}; the convention says {expected}"
                problem = problem or Problem("wrong-dtype", message)
            if got != shape:
                message = f"{name} came back with shape {got}; the convention says {shape}"
                message += c.other_layout(name, got, shape)
                problem = problem or Problem("wrong-shape", message)
            elif dtype in rawbits.FORMATS:
                arrays[name] = rawbits.decode(raw, dtype, got)
    return arrays, {h["name"]: h["dtype"] for h in headers}, problem

"""Compile the Triton kernels for Hopper (sm_90) on any machine: ``python tests/gpu/build.py [width [kind]]``.

The kind of products is "ieee" or "tf32x3"; default both. Prints registers, bytes of stack (spilled registers)
and shared memory of each kernel at K = V = ``width`` (default 128), as Triton and its ptxas report them.
Needs no GPU and says nothing about speed. Exit code 1 when a kernel needs more shared memory than a program
can have; a kernel that does not compile raises.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.pop("TRITON_INTERPRET", None)
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from kernels import (
    triton_chunkwise,
    triton_chunkwise_backward,
    triton_gradients,
    triton_recurrence,
    triton_scores,
)
from kernels.softmax import triton_forward
from kernels.softmax import triton_gradients as softmax_gradients
from kernels.triton_runtime import LAUNCH, PRECISIONS

SHARED = 227 << 10
"""Bytes of shared memory that a program can have on sm_90."""

TABLES = ("spans", "bounds", "offsets", "blocks")
NUMBERS = ("count", "tokens", "heads", "keys", "group", "tiles")


def kernels(width: int, precision: str) -> list[tuple[Any, dict[str, Any], dict[str, int]]]:
    """Every kernel, the constants and the options of its launch: tiles of 64 rows, channel decays.

    Where a decay per head or no option at all is another program, that too."""
    rows = min(64, 2 * width)
    wide = {"K": width, "BK": width, "GATES": width, "WIDE": width, "ROWS": rows, "P": precision}
    valued = wide | {"V": width, "SAVED": rows}
    state = triton_chunkwise.STATE_COLUMNS, triton_chunkwise.OUTPUT_COLUMNS
    scan, output = (min(columns, width) for columns in state)
    options = dict.fromkeys(("GATED", "SLOPED", "CAUSAL", "WINDOWED"), True)
    softmax = {"K": width, "BK": width, "V": width, "BV": width, "TILE": rows, "P": precision}
    part = min(triton_gradients.CHANNELS, width)
    gradients = valued | {"BK": part, "WIDE": part, "SHARES": width, "LEVELS": rows.bit_length() - 1}
    per_head = gradients | {"GATES": 1, "WIDE": 1, "SHARES": 1}
    adjoint = {"V": width, "BV": output, "ROWS": rows, "SAVED": rows, "P": precision}
    recurrent = {"K": width, "BK": width, "V": width, "BV": 16, "GATES": width, "PACKED": True}
    return [
        (triton_scores.scores_kernel, wide, triton_scores.SCORES_LAUNCH),
        (triton_scores.inverse_kernel, {"ROWS": rows, "P": precision}, LAUNCH),
        (triton_chunkwise.states_kernel, valued | {"BV": scan, "PACKED": True}, LAUNCH),
        (triton_chunkwise.outputs_kernel, valued | {"BV": output}, LAUNCH),
        (
            triton_chunkwise_backward.adjoint_states_kernel,
            wide | {"V": width, "BV": scan, "PACKED": True},
            LAUNCH,
        ),
        (triton_chunkwise_backward.adjoint_scores_kernel, adjoint, LAUNCH),
        (triton_gradients.gradients_kernel, gradients | {"BV": output}, LAUNCH),
        (triton_gradients.gradients_kernel, per_head | {"BV": output}, LAUNCH),
        (triton_recurrence.recurrence_kernel, recurrent, {}),
        (triton_forward.softmax_kernel, softmax | options | {"SINK": True}, LAUNCH),
        (softmax_gradients.queries_kernel, softmax | options, LAUNCH),
        (softmax_gradients.keys_kernel, softmax | options, LAUNCH),
        (softmax_gradients.keys_kernel, softmax | dict.fromkeys(options, False), LAUNCH),
    ]


def compiled(kernel: Any, constants: dict[str, Any], launch: dict[str, int]) -> tuple[int, str]:
    """Bytes of shared memory, and what ptxas says about registers and stack."""
    names = kernel.arg_names
    kinds = {name: "*i64" if name in TABLES else "i32" if name in NUMBERS else "*fp32" for name in names}
    kinds |= dict.fromkeys(constants, "constexpr") | ({"window": "i32"} if "window" in names else {})
    values = {(names.index(name),): value for name, value in constants.items()}
    built = triton.compile(
        ASTSource(fn=kernel, signature=kinds, constexprs=values),
        target=GPUTarget("cuda", 90, 32),
        options=launch,
    )
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "kernel.cubin"
        binary.write_bytes(built.asm["cubin"])
        tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
        report = subprocess.run([tool, "-res-usage", binary], capture_output=True, text=True, check=True)
    usage = re.search(r"REG:(\d+) STACK:(\d+)", report.stdout)
    assert usage is not None, report.stdout
    return built.metadata.shared, f"{usage[1]:>4} registers {usage[2]:>6} B stack"


def main(width: int, *precisions: str) -> int:
    fits = True
    for precision in precisions or PRECISIONS:
        for kernel, constants, launch in kernels(width, precision):
            shared, usage = compiled(kernel, constants, launch)
            fits &= shared <= SHARED
            print(f"{kernel.__name__:<21} {precision:<7} {usage} {shared:>7} B shared", flush=True)
    return 0 if fits else 1


if __name__ == "__main__":
    sys.exit(main(*(int(x) for x in sys.argv[1:2] or ["128"]), *sys.argv[2:]))

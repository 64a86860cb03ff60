"""The page that the detection benchmark writes."""

from collections.abc import Sequence

from controls import CONTROLS
from fault import Fault

from verify.audit.plain.rules import Rule

TEXT = """\
# Which faults are detected

Written by `tests/bench/bench_detection.py`; the numbers of the faults are those of
`tests/adversarial/catalogue.py`, where each is a broken kernel of this project's own, with the public report
it is modelled on.

Every rule is given exact float64 references, which is more than its own tests have. «Random» is the rule's
own kind of input, at T = {tokens} with K = V = {sizes}; «hard» is the input classes of `attnproof certify`
that show the fault, at all lengths of the fast budget.

| rule | what it asks | its random inputs |
|---|---|---|
| ours | errors within the derived tolerances; outputs that no later token changes in any bit; offsets of \
Triton kernels that do not wrap | those of both rows below, in float32 |
{rules}

Memory that a kernel does not clear holds NaN for ours, as in `attnproof certify`, and 0 for the others (B5).
H1 needs tensors of more than 2³¹ elements, which no row of numbers here has: ours follows the kernel's source
at such a shape, whatever the inputs.

«✓» detected, «·» not.

{table}

{counts}

`attnproof certify` finds all {found} of them on its fast budget, and names what is wrong; none is flagged on
an input where it does no harm (`tests/adversarial/test_catalogue.py`). The standard and thorough budgets have
every cell of the fast one, numbers and all (`tests/unit/audit/test_inputs.py`).

## Correct kernels

«✗» is a false alarm.

{controls}
"""


Row = tuple[Fault, list[bool]]


INPUTS = {
    "flash-linear-attention": "float16; q, k, v uniform in (0, 1), keys normalised; gates log σ(normal), "
    "also times 10; normal states",
    "FlashAttention": "bfloat16; normal q, k, v, keys of recurrences normalised; gates log σ(normal); no "
    "state",
    "torch.testing.assert_close": "float32; as above",
}


def document(rows: Sequence[Row], rules: Sequence[Rule], sizes: Sequence[tuple[int, int]]) -> str:
    """The page; ``rules`` are in the order of a row, after ours, and ``sizes`` are (T, K)."""
    columns = ("ours", *(rule.name.rpartition(".")[2] for rule in rules))
    faults = [(fault, found) for fault, found in rows if fault not in CONTROLS]
    controls = [(fault, found) for fault, found in rows if fault in CONTROLS]
    totals = [sum(found[i] for _, found in faults) for i in range(2 * len(columns))]
    told = (
        f"{name} {totals[2 * i]} on random and {totals[2 * i + 1]} on hard inputs"
        for i, name in enumerate(columns)
    )
    return TEXT.format(
        tokens=" and ".join(str(n) for n, _ in sizes),
        sizes=" and ".join(str(n) for _, n in sizes),
        table=table(faults, columns, "✓"),
        counts=f"Of {len(faults)} faults: {'; '.join(told)}.",
        found=len(faults),
        controls=table(controls, columns, "✗"),
        rules="\n".join(f"| {x.name} | {x.text} | {INPUTS[x.name]} |" for x in rules),
    )


def table(rows: Sequence[Row], columns: Sequence[str], mark: str) -> str:
    head = "| | | " + " | ".join(f"{name}, {kind}" for name in columns for kind in ("random", "hard")) + " |"
    lines = [head, "|---|---" + "|:-:" * 2 * len(columns) + "|"]
    for fault, found in rows:
        cells_of_row = " | ".join(mark if x else "·" for x in found)
        lines.append(f"| {fault.number} | {fault.title} | {cells_of_row} |")
    return "\n".join(lines)

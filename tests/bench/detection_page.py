"""The page that the detection benchmark writes."""

from collections.abc import Sequence

from catalogue import CONTROLS, OUT_OF_SCOPE, Fault

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
| ours | errors within the derived tolerances; outputs that no later token changes in any bit | \
those of both rows below, in float32 |
| flash-linear-attention | RMS error / RMS reference of a tensor < 0.005 (gradients 0.008; gates, β 0.02) | \
float16; q, k, v uniform in (0, 1), keys normalised; gates log σ(normal), also times 10; normal states |
| FlashAttention | largest error ≤ 2 × that of the plain formula in the same dtype | \
bfloat16; normal q, k, v, keys of recurrences normalised; gates log σ(normal); no state |
| `torch.testing.assert_close` | defaults of float32: 1.3·10⁻⁶ relative, 10⁻⁵ absolute | float32; as above |

Memory that a kernel does not clear holds NaN for ours, as in `attnproof certify`, and 0 for the others (B5).

«✓» detected, «·» not.

{table}

{counts}

`attnproof certify` finds all {found} of them on its fast budget, and names what is wrong
(`tests/adversarial/test_catalogue.py`).

## Correct kernels

«✗» is a false alarm.

{controls}

## Not covered

{uncovered}
"""


Row = tuple[Fault, list[bool]]


def document(rows: Sequence[Row], rules: Sequence[str], sizes: Sequence[tuple[int, int]]) -> str:
    """The page; ``rules`` are named in the order of a row, after ours, and ``sizes`` are (T, K)."""
    columns = ("ours", *rules)
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
        uncovered="\n".join(f"- {f.number}, {f.title}: {f.why}." for f in OUT_OF_SCOPE),
    )


def table(rows: Sequence[Row], columns: Sequence[str], mark: str) -> str:
    head = "| | | " + " | ".join(f"{name}, {kind}" for name in columns for kind in ("random", "hard")) + " |"
    lines = [head, "|---|---" + "|:-:" * 2 * len(columns) + "|"]
    for fault, found in rows:
        cells_of_row = " | ".join(mark if x else "·" for x in found)
        lines.append(f"| {fault.number} | {fault.title} | {cells_of_row} |")
    return "\n".join(lines)

"""``attnproof certify``: check a kernel's numerics and write a certificate."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from verify.cli.options import RESULTS, AsJson, Fresh, Results
from verify.model.environment import cache_folder
from verify.model.verdict import Verdict, exit_code

Target = Annotated[str, typer.Argument(help="package.module:function or path/to/file.py:function.")]
Mechanism = Annotated[str, typer.Option(help="What the kernel computes: softmax, linear, delta, gdn or kda.")]
Convention = Annotated[
    str, typer.Option(help="How it is called: ours, fla, transformers, sdpa, or a TOML file of your own.")
]
Dtype = Annotated[str, typer.Option(help="Type of q, k and v: float32, float64, bfloat16 or float16.")]
Python = Annotated[str | None, typer.Option(help="Interpreter the kernel runs under; this one by default.")]
Gradients = Annotated[
    bool, typer.Option("--gradients", help="Differentiate the kernel too, and judge its gradients.")
]
Budget = Annotated[str, typer.Option(help="How many inputs: fast or standard.")]
Seed = Annotated[int, typer.Option(help="Seed of every random input.")]
TimeLimit = Annotated[float, typer.Option(min=0.1, help="Seconds one call of the kernel may take.")]
MemoryLimit = Annotated[float, typer.Option(min=0.1, help="GiB of memory the kernel's process may use.")]


def certify(
    target: Target,
    mechanism: Mechanism,
    convention: Convention = "ours",
    dtype: Dtype = "float32",
    python: Python = None,
    budget: Budget = "fast",
    seed: Seed = 0,
    time_limit: TimeLimit = 60.0,
    memory_limit: MemoryLimit = 8.0,
    gradients: Gradients = False,
    results: Results = RESULTS,
    json_output: AsJson = False,
    fresh: Fresh = False,
) -> int:
    """Certify a kernel against exact references with derived tolerances, or break it and say why.

    The kernel runs in a process of its own. Small-integer inputs must agree bit for bit with the definition
    in exact rationals; float inputs, and with --gradients their gradients, must stay within a tolerance
    derived from the formats; causality, resuming, packed and strided calls and unchanged inputs are checked.
    A failure is shrunk and written as an input file and a script that shows it with torch alone.

    Example: attnproof certify my_kernels.py:chunk_kda --mechanism kda --convention fla
    """
    from verify.audit.certify import certify as run
    from verify.model import certificate

    folder = results / "certify" / _slug(target, dtype)
    data = run(
        target,
        mechanism,
        convention,
        dtype=dtype,
        budget=budget,
        seed=seed,
        python=python,
        time_limit_s=time_limit,
        memory_limit_gib=memory_limit,
        gradients=gradients,
        cache=None if fresh else cache_folder(),
        progress=_progress(),
        folder=folder,
    )
    certificate.write(folder / "certificate.json", data)
    print(json.dumps(data, indent=1, ensure_ascii=False) if json_output else _text(data, folder))
    return exit_code([Verdict(data["verdict"])])


def _slug(target: str, dtype: str) -> str:
    name = "".join(letter if letter.isalnum() else "-" for letter in f"{target}-{dtype}")
    return "-".join(part for part in name.split("-") if part)


def _progress() -> Any:
    if not sys.stderr.isatty():
        return None

    def show(done: int, total: int, what: str) -> None:
        end = "\n" if done == total else "\r"
        print(f"\r\033[K{done}/{total} {what}", end=end, file=sys.stderr, flush=True)

    return show


def _text(data: dict[str, Any], folder: Path) -> str:
    lines = [f"{data['verdict']:<9} {data['target']['requested']}: {data['summary']}"]
    if data["target"].get("dispatches_to"):
        lines.append(f"  this name dispatches to {data['target']['dispatches_to']}")
    for item in data["classes"]:
        lines.append(f"  {item['verdict']:<9} {item['name']:<22} {item['cells']:>3} inputs  {_ratio(item)}")
    lines += _worst_case_lines(data.get("worst_case"))
    lines += _gradient_lines(data.get("gradients", []))
    for item in data["properties"]:
        lines.append(f"  {item['verdict'] or 'not asked':<9} {item['name']}: {item['detail']}")
    for item in data["findings"]:
        lines.append(f"  reason: {item['reason']}. {item['detail']}")
    if data["reproducer"]:
        lines.append(f"  reproduce: python {folder / data['reproducer']['script']}")
    return "\n".join([*lines, f"  certificate: {folder / 'certificate.json'}"])


def _worst_case_lines(entry: dict[str, Any] | None) -> list[str]:
    """The errors beside the proved bound, in one line."""
    if entry is None:
        return []
    if not entry["derived"]:
        return [f"  rigorous: {entry['about']}"]
    if entry["worst_ratio"] is None:
        return ["  rigorous: nothing to measure"]
    word = "met" if entry["met"] else "exceeded"
    return [f"  rigorous: worst-case bound {word}, worst error / bound {float(entry['worst_ratio']):.3g}"]


def _gradient_lines(cells: list[dict[str, Any]]) -> list[str]:
    """One line per class: its verdict and the largest error over tolerance of every input's gradient."""
    from verify.report.gradients import rows

    lines = []
    for row in rows(cells):
        said = ", ".join(f"{field} {float(ratio):.2g}" for field, ratio in row.ratios.items())
        said = f"worst error / tolerance {said}" if said else "nothing to measure"
        said += f"; {row.problem}" if row.problem else ""
        lines.append(f"  {row.verdict:<9} gradients, {row.name:<22} {row.cells:>3} inputs  {said}")
    return lines


def _ratio(item: dict[str, Any]) -> str:
    worst = item["worst_ratio"]
    if worst is None:
        return "nothing to measure"
    return f"worst error / tolerance {worst:.3g}" if isinstance(worst, float) else f"worst error {worst}"

"""``attnproof certify``: check a kernel's numerics and write a certificate."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from verify.cli.options import CORES, RESULTS, AsJson, Cores, Fresh, Results
from verify.model.environment import cache_folder
from verify.model.errors import RequestError
from verify.model.verdict import Verdict, exit_code

Target = Annotated[
    str | None,
    typer.Argument(help="package.module:function or path/to/file.py:function.", show_default=False),
]
Mechanism = Annotated[
    str | None,
    typer.Option(
        help="What the kernel computes: softmax, softmax_window, softmax_sink, linear, linear_normalised, "
        "delta, gdn, kda, mamba2, simple_gla, dplr or gdn2.",
        show_default=False,
    ),
]
Convention = Annotated[
    str,
    typer.Option(
        help="How it is called: ours, fla, transformers, sdpa, flashkda, vllm, sglang, cudnn, mamba, or a "
        "TOML file of your own."
    ),
]
Dtype = Annotated[
    str,
    typer.Option(
        help="Type of q, k and v: float32, float64, bfloat16 or float16; several with commas between, or all."
    ),
]
Python = Annotated[str | None, typer.Option(help="Interpreter the kernel runs under; this one by default.")]
Gradients = Annotated[
    bool, typer.Option("--gradients", help="Differentiate the kernel too, and judge its gradients.")
]
Budget = Annotated[
    str,
    typer.Option(
        help="How many inputs: fast, standard or thorough; at most 1, 10 and 120 minutes for heads of 64 on "
        "two cores. standard and thorough also search for worse inputs; thorough differentiates."
    ),
]
Reference = Annotated[
    str,
    typer.Option(
        help="What judges float inputs: float64 (with a rigorous bound), mpmath (at two precisions: how many "
        "digits stand), ball (encloses the exact result) or exact (rationals, where there are any)."
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue an interrupted certification; nothing judged is lost.")
]
Seed = Annotated[int, typer.Option(help="Seed of every random input.")]
Explain = Annotated[
    str | None,
    typer.Option(
        help="Print a convention in full and exit, as a file of your own to start from: fla, fla:kda or "
        "fla:chunk_kda.",
        show_default=False,
    ),
]
TimeLimit = Annotated[float, typer.Option(min=0.1, help="Seconds one call of the kernel may take.")]
MemoryLimit = Annotated[float, typer.Option(min=0.1, help="GiB of memory the kernel's process may use.")]


def certify(
    target: Target = None,
    mechanism: Mechanism = None,
    convention: Convention = "ours",
    dtype: Dtype = "float32",
    python: Python = None,
    budget: Budget = "fast",
    seed: Seed = 0,
    time_limit: TimeLimit = 60.0,
    memory_limit: MemoryLimit = 8.0,
    gradients: Gradients = False,
    reference: Reference = "float64",
    results: Results = RESULTS,
    json_output: AsJson = False,
    fresh: Fresh = False,
    resume: Resume = False,
    jobs: Cores = CORES,
    explain_convention: Explain = None,
) -> int:
    """Certify a kernel against exact references with derived tolerances, or break it and say why.

    The kernel runs in a process of its own. Small-integer inputs must agree bit for bit with the definition
    in exact rationals; float inputs, and with --gradients their gradients, must stay within a tolerance
    derived from the formats; causality, resuming, packed and strided calls and unchanged inputs are checked.
    A failure is shrunk and written as an input file and a script that shows it with torch alone.

    Example: attnproof certify my_kernels.py:chunk_kda --mechanism kda --convention fla
    """
    if explain_convention is not None:
        print(_explained(explain_convention, json_output))
        return 0
    if target is None or mechanism is None:
        missing = "argument 'TARGET'" if target is None else "option '--mechanism'"
        raise RequestError(f"Missing {missing}; example: attnproof certify my.py:f --mechanism kda")
    from verify.audit.memory import keep_freed_memory
    from verify.audit.record.finished import certified
    from verify.audit.request import Request

    keep_freed_memory()
    request = Request(
        target,
        mechanism,
        convention,
        budget=budget,
        seed=seed,
        python=python,
        time_limit_s=time_limit,
        memory_limit_gib=memory_limit,
        gradients=gradients,
        reference=reference,
    )
    cache = None if fresh else cache_folder()
    made = []
    for name in _dtypes(dtype):
        data, cached = certified(
            dataclasses.replace(request, dtype=name),
            folder := results / "certify" / _slug(target, name),
            cache=cache,
            resume=resume,
            jobs=jobs,
            progress=_progress(),
            say=_say,
        )
        made.append(data)
        if not json_output:
            print(_text(data, folder, cached), flush=True)
    if json_output:
        print(json.dumps(made if len(made) > 1 else made[0], indent=1, ensure_ascii=False))
    return exit_code(Verdict(data["verdict"]) for data in made)


def _dtypes(asked: str) -> list[str]:
    """The dtypes asked for, each once.

    Raises:
        RequestError: one is not known.
    """
    from verify.audit.case import DTYPES, check_dtype

    names = list(DTYPES) if asked == "all" else [name.strip() for name in asked.split(",")]
    for name in names:
        check_dtype(name)
    return list(dict.fromkeys(names))


def _explained(name: str, as_json: bool) -> str:
    from verify.audit.convention.explanation import Explanation

    found = Explanation.of(name)
    return json.dumps(found.data(), indent=1, ensure_ascii=False) if as_json else found.text().rstrip()


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


def _say(sentence: str) -> None:
    print(f"attnproof: {sentence}", file=sys.stderr, flush=True)


def _text(data: dict[str, Any], folder: Path, cached: bool) -> str:
    from verify.report import plain_numbers

    note = "  [cached]" if cached else ""
    lines = [f"{data['verdict']:<9} {data['target']['requested']}: {data['summary']}{note}"]
    if data["target"].get("dispatches_to"):
        lines.append(f"  this name dispatches to {data['target']['dispatches_to']}")
    for item in data["classes"]:
        lines.append(f"  {item['verdict']:<9} {item['name']:<22} {item['cells']:>3} inputs  {_ratio(item)}")
    lines += _reference_lines(data.get("reference"))
    lines += _worst_case_lines(data.get("worst_case"))
    lines += _gradient_lines(data.get("gradients", []))
    lines += _worst_case_lines(data.get("gradient_worst_case"), " of gradients")
    for item in data["properties"]:
        lines.append(f"  {item['verdict'] or 'not asked':<9} {item['name']}: {item['detail']}")
    lines += plain_numbers.lines(data)
    for item in data["findings"]:
        lines.append(f"  reason: {item['reason']}. {item['detail']}")
    if data["reproducer"]:
        lines.append(f"  reproduce: python {folder / data['reproducer']['script']}")
    return "\n".join([*lines, f"  certificate: {folder / 'certificate.json'}"])


def _reference_lines(entry: dict[str, Any] | None) -> list[str]:
    """What judged the inputs, when it was asked for, and how many digits of it stand."""
    if entry is None or entry["asked"] == "float64":
        return []
    used = ", ".join(f"{count} inputs by {level}" for level, count in entry["used"].items())
    lines = [f"  reference: {entry['about']}: {used}"]
    lines += [f"    {note['cells']} inputs, {note['note']}" for note in entry["notes"]]
    for name, digits in (entry["digits"] or {}).items():
        stand = f"at least {digits['fewest']} of {entry['most_digits']} digits stand"
        lines.append(f"    {name}: {stand}, half of the numbers have {digits['median']} or more")
    return lines


def _worst_case_lines(entry: dict[str, Any] | None, of: str = "") -> list[str]:
    """The errors beside the proved bound, in one line."""
    if entry is None:
        return []
    if not entry["derived"]:
        return [f"  rigorous{of}: {entry['about']}"]
    if entry["worst_ratio"] is None:
        return [f"  rigorous{of}: nothing to measure"]
    word = "met" if entry["met"] else "exceeded"
    return [f"  rigorous{of}: worst-case bound {word}, worst error / bound {float(entry['worst_ratio']):.3g}"]


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

"""Certifies the kernels of others that are installed here, and writes what came of it as a Markdown table.

    python examples/certify_real_kernels.py [--only kda] [--budget fast] [--page docs/certify.md]

From the repository root. What is finished is not run again, and after Ctrl-C the same command goes on where
it stopped. A kernel that is not installed here, or needs a GPU, is named and left out.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from verify.audit.inputs.cells import BUDGETS, classes
from verify.audit.mechanism import named
from verify.audit.record.finished import certified
from verify.audit.request import Request
from verify.model.environment import cache_folder
from verify.model.errors import AttnproofError
from verify.model.verdict import Verdict, weakest

BEGIN, END = "<!-- kernels of others: begin -->", "<!-- kernels of others: end -->"
HEAD = "| kernel | mechanism, convention | outputs | gradients | error / worst case |\n|---|---|---|---|---|"
PACKAGES = ("torch", "flash-linear-attention", "transformers", "triton")
INTERPRETER = "examples/fla_on_cpu.py"
INTERPRETED = (
    *("random", "correlated", "constant-key-1", "predicted-value", "small", "integer"),
    *("gate-reset", "gate-threshold", "gate-huge", "logits-large", "logits-offset", "scale-negative"),
)
"""Classes of inputs for Triton's interpreter, which is slow: those of them that the mechanism has."""
TABLE = """
softmax sdpa examples/sdpa_backends.py math flash
gdn transformers qwen3_next torch_chunk_gated_delta_rule torch_recurrent_gated_delta_rule
kda transformers kimi_linear chunk_kimi_delta_attention recurrent_kimi_delta_attention
mamba2 transformers mamba2 mamba2_chunk_scan
mamba2 mamba examples/minimal_ssd.py ssd_minimal_discrete
softmax fla attn naive_parallel_attn
linear fla linear_attn naive_recurrent_linear_attn naive_chunk_linear_attn
linear_normalised fla linear_attn naive_recurrent_linear_attn
simple_gla fla simple_gla naive_recurrent_simple_gla naive_chunk_simple_gla
delta fla delta_rule delta_rule_recurrence delta_rule_chunkwise
gdn fla gated_delta_rule naive_recurrent_gated_delta_rule naive_chunk_gated_delta_rule
kda fla kda naive_recurrent_kda naive_chunk_kda
gdn2 fla gdn2 naive_recurrent_gdn2 naive_chunk_gdn2
dplr fla generalized_delta_rule.dplr dplr_recurrence dplr_chunkwise
softmax fla examples/fla_on_cpu.py parallel_attn
linear fla examples/fla_on_cpu.py chunk_linear_attn fused_recurrent_linear_attn
simple_gla fla examples/fla_on_cpu.py chunk_simple_gla fused_recurrent_simple_gla
delta fla examples/fla_on_cpu.py fused_recurrent_delta_rule
gdn fla examples/fla_on_cpu.py fused_recurrent_gated_delta_rule chunk_gated_delta_rule
gdn2 fla examples/fla_on_cpu.py fused_recurrent_gdn2
kda fla examples/fla_on_cpu.py fused_recurrent_kda
dplr fla examples/fla_on_cpu.py fused_recurrent_dplr_delta_rule chunk_dplr_delta_rule
kda fla examples/fla_on_cpu.py chunk_kda
gdn2 fla examples/fla_on_cpu.py chunk_gdn2
"""
"""Mechanism, convention, file or package, functions; those that are slow come last."""


@dataclass(frozen=True)
class Kernel:
    """A kernel of others, with the convention that calls it."""

    mechanism: str
    convention: str
    target: str

    def request(self, budget: str) -> Request:
        """What to ask for: gradients wherever the convention says that there are any."""
        own = classes(named(self.mechanism))
        chosen = tuple(x for x in INTERPRETED if x in own) if self.target.startswith(INTERPRETER) else None
        request = Request(self.target, self.mechanism, self.convention, budget=budget, classes=chosen)
        return replace(request, time_limit_s=600, gradients=request.loaded().gradients != "none")


def _target(convention: str, place: str, function: str) -> str:
    if convention == "transformers":
        # Under its own name the function may lead to one of flash-linear-attention.
        return f"transformers.models.{place}.modeling_{place}:{function}.__wrapped__"
    return f"{place}:{function}" if place.endswith(".py") else f"fla.ops.{place}.naive:{function}"


def kernels() -> list[Kernel]:
    """The kernels of `TABLE`."""
    rows = [line.split() for line in TABLE.strip().split("\n")]
    return [Kernel(m, c, _target(c, place, name)) for m, c, place, *names in rows for name in names]


def row(kernel: Kernel, data: dict[str, Any]) -> str:
    """The line of a certificate."""
    bound = data["worst_case"]
    ratio = f"{float(bound['worst_ratio']):.2g}" if bound["met"] else "exceeded"
    figures = [cell[part] for cell in data["cells"] for part in ("output", "state") if cell[part]]
    slopes = [x for cell in data["gradients"] for x in cell["inputs"].values()]
    cells = (
        f"`{re.sub(r'^transformers.models.|^examples/|.__wrapped__$', '', kernel.target)}`",
        f"{kernel.mechanism}, {kernel.convention}",
        _said(data["cells"], figures, [p for p in data["properties"] if p["verdict"]]),
        _said(data["gradients"], slopes, []) if data["gradients"] else "not asked",
        ratio if bound["derived"] else "not derived",
    )
    return f"| {' | '.join(cells)} |"


def _said(cells: Sequence[Any], figures: Sequence[Any], properties: Sequence[Any]) -> str:
    """The verdict and the largest error over tolerance, or which inputs and properties failed."""
    verdict = weakest(Verdict(x["verdict"]) for x in (*cells, *properties))
    if verdict is not Verdict.REFUTED:
        worst = max((float(x["worst_ratio"]) for x in figures), default=0.0)
        return f"{'undecided' if verdict is Verdict.UNDECIDED else 'held'} on {len(cells)}: {worst:.2g}"
    failed = [cell["class"] for cell in cells if cell["verdict"] == str(Verdict.REFUTED)]
    where = list(dict.fromkeys(failed))
    where += [f"property {p['name']}" for p in properties if p["verdict"] == str(Verdict.REFUTED)]
    return f"**refuted** on {len(failed)} of {len(cells)}: {', '.join(where)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="kernels whose name or mechanism has this in it")
    parser.add_argument("--budget", default="fast", choices=BUDGETS)
    parser.add_argument("--results", type=Path, default=Path("attnproof-results/real-kernels"))
    parser.add_argument("--page", type=Path, help="page whose table to replace")
    options = parser.parse_args()
    lines, about = [HEAD], ""
    chosen = [kernel for kernel in kernels() if options.only in f"{kernel.mechanism} {kernel.target}"]
    if not chosen:
        parser.error(
            f"no kernel has {options.only!r} in its mechanism or name; without --only all are certified"
        )
    if options.page:
        if options.only:
            parser.error(
                "--page writes the table of all kernels, but --only asks for some: leave one of them out"
            )
        if not options.page.is_file() or BEGIN not in options.page.read_text("utf-8"):
            parser.error(f"--page {options.page} is no file with a line {BEGIN!r}, where the table goes")
    for number, kernel in enumerate(chosen, 1):
        print(f"{number}/{len(chosen)} {kernel.mechanism} {kernel.target}", file=sys.stderr, flush=True)
        folder = options.results / re.sub(r"\W+", "-", f"{kernel.mechanism} {kernel.target}")
        try:
            data, _ = certified(kernel.request(options.budget), folder, cache=cache_folder(), resume=True)
        except AttnproofError as error:
            print(f"  left out: {error}", file=sys.stderr, flush=True)
            continue
        print(f"  {data['summary']}", file=sys.stderr, flush=True)
        lines.append(row(kernel, data))
        made = data["environment"]
        used = ", ".join(f"{name} {made['packages'][name]}" for name in PACKAGES if name in made["packages"])
        about = f"{used}, Python {made['python']}; attnproof at {made['commit']}; budget {options.budget}."
    text = "\n".join([about, "", *lines])
    print(text)
    if options.page and about:
        before, _, rest = options.page.read_text("utf-8").partition(BEGIN)
        options.page.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}", "utf-8")


if __name__ == "__main__":
    main()

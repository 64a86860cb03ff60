"""Which faults of the catalogue each rule detects: ours, and the three that kernels are tested with today.

Those three are `verify.audit.plain.rules`. Each is given exact float64 references, its own random inputs and
then ours, in the dtype that it is used with: float16, bfloat16 and float32.

Run: ``python tests/bench/bench_detection.py`` from the repository root; writes ``docs/detection.md``.
"""

import dataclasses
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from verify.audit.bench import Bench
from verify.audit.case import Array, Case, Outcome
from verify.audit.gradient.functional import Cotangent
from verify.audit.gradient.judge import judge_gradients
from verify.audit.gradient.reference import float64_gradients
from verify.audit.inputs.cells import cells, gradient_cells
from verify.audit.inputs.probes import probe, rounded
from verify.audit.judge import judge
from verify.audit.laboratory import Laboratory
from verify.audit.plain import rules
from verify.audit.plain.formula import formula
from verify.audit.plain.rules import Rule
from verify.audit.plain.rules import Tensor as Compared
from verify.audit.properties.basic import causality, later
from verify.audit.properties.large_tensors import index_arithmetic
from verify.audit.reference.results import float64_reference
from verify.audit.subject.process import Subject
from verify.audit.subject.target import Target
from verify.model.environment import cache_folder
from verify.model.verdict import Verdict

# Before Triton is imported: it then runs on a machine without a GPU.
os.environ["TRITON_INTERPRET"] = "1"
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "adversarial"))

from calling import InProcess, called, loaded, memory_holding  # noqa: E402
from catalogue import FAULTS  # noqa: E402
from controls import CONTROLS  # noqa: E402
from detection_page import document  # noqa: E402
from fault import FOLDER, Fault  # noqa: E402

SIZES = ((63, 32), (150, 24))
"""Tokens and K = V of the random inputs."""
PACKED = (15, 85, 40)
"""Lengths of packed random sequences."""
Run = tuple[Case, Outcome, Cotangent | None]


@dataclass(frozen=True)
class Practice:
    """A rule of today with the inputs it is used on."""

    rule: Rule
    dtype: str
    draw: Callable[[Fault, str], list[Case]]


def draw_like_fla(fault: Fault, dtype: str) -> list[Case]:
    """Uniform positive q, k, v; keys normalised; gates log sigmoid(normal) over 1 and 1/10; normal states."""
    rng = np.random.default_rng(42)
    drawn = []
    for i, case in enumerate(_blank(fault)):
        shapes = {field: array.shape for field, array in case.arrays().items()}
        arrays: dict[str, Array] = {field: rng.random(shapes[field]) for field in ("q", "k", "v")}
        arrays |= _gates(rng, shapes, (1.0, 10.0)[i % 2])
        if case.kind.stateful:
            arrays["initial_state"] = rng.standard_normal(shapes["initial_state"])
        drawn.append(_rounded(case, arrays, dtype))
    return drawn


def draw_normal(fault: Fault, dtype: str) -> list[Case]:
    """Normal q, k, v, keys of the recurrences normalised; gates log sigmoid(normal); no initial state."""
    rng = np.random.default_rng(0)
    drawn = []
    for case in _blank(fault):
        shapes = {field: array.shape for field, array in case.arrays().items()}
        arrays: dict[str, Array] = {field: rng.standard_normal(shapes[field]) for field in ("q", "k", "v")}
        arrays |= _gates(rng, shapes, 1.0)
        drawn.append(_rounded(case.replace(initial_state=None), arrays, dtype))
    return drawn


def _blank(fault: Fault) -> Iterator[Case]:
    """Cases of the shapes in use."""
    for tokens, size in ((n, 16) for n in PACKED) if fault.packed else SIZES:
        yield probe(fault.convention, "float64", tokens, size=size, initial_state=True, grouped=True)


def _gates(
    rng: np.random.Generator, shapes: Mapping[str, tuple[int, ...]], strength: float
) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    if "g" in shapes:
        arrays["g"] = -strength * np.logaddexp(0.0, rng.standard_normal(shapes["g"]))
    if "beta" in shapes:
        arrays["beta"] = 1 / (1 + np.exp(-rng.standard_normal(shapes["beta"])))
    return arrays


def _rounded(case: Case, arrays: dict[str, Array], dtype: str) -> Case:
    if case.kind.stateful:
        arrays["k"] = arrays["k"] / np.linalg.norm(arrays["k"], axis=-1, keepdims=True)
    return rounded(case.replace(dtype="float64", gate_dtype="float64", **arrays), dtype)


def our_inputs(fault: Fault, dtype: str) -> list[Case]:
    """Those of the classes that show the fault."""
    if fault.packed:
        return [probe(fault.convention, dtype, n, seed=n, initial_state=True) for n in PACKED]
    chosen = [c for c in cells(fault.mechanism, dtype, fault.convention) if c.name in fault.classes]
    return gradient_cells(chosen, "fast") if fault.gradients else chosen


def runs(fault: Fault, cases: Sequence[Case]) -> list[Run]:
    """What the kernel gives for each case; all in one call where it is packed."""
    function, convention = loaded(fault), fault.convention
    if fault.packed:
        packed = InProcess(function, convention).run_packed(cases)
        return [(case, outcome, None) for case, outcome in zip(cases, split(packed, cases), strict=True)]
    made: list[Run] = []
    for case in cases:
        functional = Bench(convention, 1).functional(case) if fault.gradients else None
        made.append((case, called(function, convention, case, functional), functional))
    return made


def split(packed: Outcome, cases: Sequence[Case]) -> Iterator[Outcome]:
    start = 0
    assert packed.output is not None
    for i, case in enumerate(cases):
        end = start + case.shape.T
        state = None if packed.final_state is None else packed.final_state[i : i + 1]
        yield dataclasses.replace(packed, output=packed.output[:, start:end], final_state=state)
        start = end


def judged(fault: Fault, run: Run) -> Iterator[Compared]:
    """What the kernel gave beside what it should have given, and what the formula gives in that dtype."""
    case, outcome, functional = run
    seen = fault.convention.as_seen(case)
    reference = float64_reference(seen)
    expected: dict[str, Array] = {"output": reference.output, "state": reference.final_state}
    low = rounded(seen, case.dtype)
    formulas = formula(low)
    given = {
        name: x for name, x in (("output", outcome.output), ("state", outcome.final_state)) if x is not None
    }
    if functional is not None:
        expected |= float64_gradients(seen, functional).values
        formulas |= formula(low, functional)
        given |= outcome.gradients
    dtypes = {"output": outcome.output_dtype, "state": outcome.state_dtype}
    for name, x in given.items():
        dtype = dtypes.get(name) or case.dtype_of(name)
        yield Compared.of(name, x, expected[name], dtype, formulas.get(name))


RULES = tuple(
    Practice(rule, dtype, draw)
    for rule, (dtype, draw) in zip(
        rules.RULES,
        (("float16", draw_like_fla), ("bfloat16", draw_normal), ("float32", draw_normal)),
        strict=True,
    )
)


def they_object(practice: Practice, fault: Fault, cases: Sequence[Case]) -> bool:
    with np.errstate(all="ignore"):
        return any(practice.rule.passes(x) is False for run in runs(fault, cases) for x in judged(fault, run))


def we_object(fault: Fault, cases: Sequence[Case], cache: Path) -> bool:
    """A wrong number, or an output that depends on later tokens in any bit."""
    convention = fault.convention
    subject: Any = InProcess(loaded(fault), convention)
    bench = Bench(convention, len(cases), cache)
    lab = Laboratory(subject, bench, fault.dtype)
    for case, outcome, functional in runs(fault, cases):
        if judge(case, outcome, bench.yardstick(case)).failed:
            return True
        if functional is not None:
            yardstick = bench.gradient_yardstick(case)
            if judge_gradients(case, outcome, yardstick).failed:
                return True
        cut = case.shape.T // 2
        if (
            not fault.packed
            and cut
            and (other := subject.run(later(case, cut, case.kind.tokens))).output is not None
        ):
            assert outcome.output is not None
            if not np.array_equal(outcome.output[:, :cut], other.output[:, :cut], equal_nan=True):
                return True
    return not fault.packed and causality(lab).verdict is Verdict.REFUTED


def wraps(fault: Fault) -> bool:
    """Whether an offset of a Triton kernel wraps at a large shape; no numbers are needed for that."""
    if "import triton" not in (FOLDER / f"{fault.file}.py").read_text(encoding="utf-8"):
        return False
    convention = dataclasses.replace(fault.convention, gradients="none")
    with Subject(Target.parse(fault.target), convention) as subject:
        return (
            index_arithmetic(Laboratory(subject, Bench(convention, 1), fault.dtype)).verdict
            is Verdict.REFUTED
        )


def row(fault: Fault, cache: Path) -> list[bool]:
    """Ours on others' inputs and on ours, then every rule on its own inputs and on ours."""
    borrowed = [*draw_like_fla(fault, fault.dtype), *draw_normal(fault, fault.dtype)]
    groups = [borrowed[: len(borrowed) // 2], borrowed[len(borrowed) // 2 :]]
    with memory_holding(np.nan):
        whatever = wraps(fault)
        found = [whatever or any(we_object(fault, group, cache) for group in groups)]
        found.append(whatever or we_object(fault, our_inputs(fault, fault.dtype), cache))
    with memory_holding(0.0):
        for practice in RULES:
            found.append(they_object(practice, fault, practice.draw(fault, practice.dtype)))
            found.append(they_object(practice, fault, our_inputs(fault, practice.dtype)))
    return found


def main() -> None:
    torch.set_num_threads(1)
    rows: list[tuple[Fault, list[bool]]] = []
    for fault in (*FAULTS, *CONTROLS):
        found = row(fault, cache_folder())
        rows.append((fault, found))
        print(fault.number, fault.title, *("yes" if x else "no" for x in found), sep="; ", flush=True)
    text = document(rows, rules.RULES, SIZES)
    (ROOT / "docs" / "detection.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

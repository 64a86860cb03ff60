"""Which faults of the catalogue each rule detects: ours, and the three that kernels are tested with today.

Every rule is given exact float64 references, its own random inputs and then ours. The rules:

flash-linear-attention: RMS of the error over RMS of the reference, of a whole tensor, at most 0.005
(gradients 0.008; of gates and write strengths 0.02); float16.
FlashAttention: largest error at most twice that of the plain formula in bfloat16.
torch.testing.assert_close with its defaults; float32.

Run: ``python tests/bench/bench_detection.py`` from the repository root; writes ``docs/detection.md``.
"""

import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from verify.audit.bench import Bench
from verify.audit.case import Array, Case, Outcome
from verify.audit.convention.convention import Convention
from verify.audit.gradient.functional import Cotangent
from verify.audit.gradient.judge import judge_gradients
from verify.audit.gradient.reference import float64_gradients
from verify.audit.inputs.cells import cells, gradient_cells
from verify.audit.inputs.probes import probe, rounded
from verify.audit.judge import judge
from verify.audit.laboratory import Laboratory
from verify.audit.properties.basic import causality, later
from verify.audit.reference.results import float64_reference
from verify.model.environment import cache_folder
from verify.model.verdict import Verdict

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "adversarial"))

from calling import InProcess, called, loaded, memory_holding  # noqa: E402
from catalogue import CONTROLS, FAULTS, Fault  # noqa: E402
from detection_page import document  # noqa: E402

SIZES = ((63, 32), (150, 24))
"""Tokens and K = V of the random inputs."""
PACKED = (15, 85, 40)
"""Lengths of packed random sequences."""
Run = tuple[Case, Outcome, Cotangent | None]


@dataclass(frozen=True)
class Rule:
    """A rule of today: its inputs, and whether it objects to what a kernel gave."""

    name: str
    dtype: str
    draw: Callable[[Fault, str], list[Case]]
    objects: Callable[[Fault, Run, dict[str, Array], dict[str, Array]], bool]


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


def tensors(run: Run) -> dict[str, Array]:
    """What the kernel gave, by name."""
    _, outcome, _ = run
    found = {"output": outcome.output, "state": outcome.final_state}
    return {name: x for name, x in found.items() if x is not None} | dict(outcome.gradients)


def exact(convention: Convention, run: Run) -> dict[str, Array]:
    """What it should have given, in float64."""
    case, outcome, functional = run
    seen = convention.as_seen(case)
    reference = float64_reference(seen)
    found = {"output": reference.output, "state": reference.final_state}
    if functional is not None:
        found |= float64_gradients(seen, functional).values
    return {name: found[name] for name in tensors((case, outcome, functional))}


def plain(case: Case, functional: Cotangent | None, convention: Convention) -> dict[str, Array]:
    """The formula in torch, every operation in the case's dtype."""
    dtype = getattr(torch, case.dtype)
    given = {
        field: torch.from_numpy(array).to(dtype).requires_grad_(functional is not None)
        for field, array in case.arrays().items()
    }
    s = case.shape
    inputs = {
        f: x.repeat_interleave(s.HV // s.H, 2) if f in case.kind.shared else x for f, x in given.items()
    }
    if convention.qk_norm != "none":
        for f in ("q", "k"):
            square = inputs[f].square().sum(-1, keepdim=True)
            inputs[f] = inputs[f] * (square + convention.qk_norm_eps).rsqrt()
    q, k, v = inputs["q"] * case.scale, inputs["k"], inputs["v"]
    state = inputs.get("initial_state", torch.zeros(s.B, s.HV, s.K, s.V, dtype=dtype))
    if case.kind.stateful:
        output, state = _recurrence(case, inputs, q, k, v, state)
    else:
        logits = torch.einsum("bthk,bjhk->bhtj", q, k)
        logits = logits.masked_fill(torch.ones(s.T, s.T, dtype=torch.bool).triu(1), -torch.inf)
        output = torch.einsum("bhtj,bjhv->bthv", logits.softmax(-1), v)
    found = {"output": output, "state": state}
    if functional is not None:
        total = (output * torch.from_numpy(functional.output).to(dtype)).sum()
        total = total + (state * torch.from_numpy(functional.state).to(dtype)).sum()
        total.backward()
        found |= {field: x.grad for field, x in given.items() if x.grad is not None}
    return {name: x.detach().double().numpy() for name, x in found.items()}


def _recurrence(
    case: Case, inputs: Mapping[str, Tensor], q: Tensor, k: Tensor, v: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    outputs = []
    for t in range(case.shape.T):
        if "g" in inputs:
            decay = inputs["g"][:, t].exp()
            state = (decay if decay.ndim == 3 else decay[..., None])[..., None] * state
        write = v[:, t]
        if "beta" in inputs:
            write = inputs["beta"][:, t, :, None] * (write - torch.einsum("bhkv,bhk->bhv", state, k[:, t]))
        state = state + torch.einsum("bhk,bhv->bhkv", k[:, t], write)
        outputs.append(torch.einsum("bhkv,bhk->bhv", state, q[:, t]))
    return torch.stack(outputs, 1), state


def fla_objects(fault: Fault, run: Run, given: dict[str, Array], expected: dict[str, Array]) -> bool:
    limits = {"output": 0.005, "state": 0.005, "g": 0.02, "beta": 0.02}
    for name, x in given.items():
        difference = x - expected[name]
        if not np.isfinite(difference).all():
            return True
        ratio = _rms(difference) / (_rms(expected[name]) + 1e-8)
        if np.abs(difference).max(initial=0.0) > 1e-6 and ratio >= limits.get(name, 0.008):
            return True
    return False


def _rms(x: Array) -> float:
    return float(np.sqrt(np.square(x).mean())) if x.size else 0.0


def flash_attention_objects(
    fault: Fault, run: Run, given: dict[str, Array], expected: dict[str, Array]
) -> bool:
    case, _, functional = run
    low = plain(case, functional, fault.convention)
    for name, x in given.items():
        error, allowed = (float(np.abs(y - expected[name]).max(initial=0.0)) for y in (x, low[name]))
        if not error <= 2 * allowed:
            return True
    return False


def assert_close_objects(fault: Fault, run: Run, given: dict[str, Array], expected: dict[str, Array]) -> bool:
    case, _, _ = run
    for name, x in given.items():
        dtype = getattr(torch, case.dtype if name == "output" else case.gate_dtype)
        try:
            torch.testing.assert_close(*(torch.from_numpy(y).to(dtype) for y in (x, expected[name])))
        except AssertionError:
            return True
    return False


RULES = (
    Rule("flash-linear-attention", "float16", draw_like_fla, fla_objects),
    Rule("FlashAttention", "bfloat16", draw_normal, flash_attention_objects),
    Rule("assert_close", "float32", draw_normal, assert_close_objects),
)


def they_object(rule: Rule, fault: Fault, cases: Sequence[Case]) -> bool:
    for run in runs(fault, cases):
        with np.errstate(all="ignore"):
            if rule.objects(fault, run, tensors(run), exact(fault.convention, run)):
                return True
    return False


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


def row(fault: Fault, cache: Path) -> list[bool]:
    """Ours on others' inputs and on ours, then every rule on its own inputs and on ours."""
    borrowed = [*draw_like_fla(fault, fault.dtype), *draw_normal(fault, fault.dtype)]
    groups = [borrowed[: len(borrowed) // 2], borrowed[len(borrowed) // 2 :]]
    with memory_holding(np.nan):
        found = [any(we_object(fault, group, cache) for group in groups)]
        found.append(we_object(fault, our_inputs(fault, fault.dtype), cache))
    with memory_holding(0.0):
        for rule in RULES:
            found.append(they_object(rule, fault, rule.draw(fault, rule.dtype)))
            found.append(they_object(rule, fault, our_inputs(fault, rule.dtype)))
    return found


def main() -> None:
    torch.set_num_threads(1)
    rows: list[tuple[Fault, list[bool]]] = []
    for fault in (*FAULTS, *CONTROLS):
        found = row(fault, cache_folder())
        rows.append((fault, found))
        print(fault.number, fault.title, *("yes" if x else "no" for x in found), sep="; ", flush=True)
    text = document(rows, [rule.name for rule in RULES], SIZES)
    (ROOT / "docs" / "detection.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

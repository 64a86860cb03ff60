"""Writes a failing input and a short script that shows the failure with torch alone."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verify.audit.case import Array, Case
from verify.audit.convention.convention import Convention
from verify.audit.failure.calling import function, is_plain
from verify.audit.failure.definition import definition
from verify.audit.gradient.functional import Cotangent
from verify.audit.gradient.judge import GradientJudgement
from verify.audit.judge import Judgement
from verify.audit.subject.target import Target

SCRIPT, DATA = "reproduce.py", "input.safetensors"
_LATER = "later."
_EXPECTED = "expected."
_WEIGHT = "weight."


@dataclass(frozen=True, eq=False)
class Reproducer:
    """A failing input.

    Args:
        case: the input.
        observed: what happens, in one sentence.
        output_tolerance: largest error of a correct kernel, for the script to print beside the observed one.
        state_tolerance: likewise.
        other: a second input that agrees before token ``cut``, for a violation of causality.
        mutates: whether the failure is that inputs are written into.
        functional: whose gradients are wrong, when gradients are.
        expected: the exact output and final state, for a script that cannot compute them in a few lines.
    """

    case: Case
    observed: str
    output_tolerance: float = 0.0
    state_tolerance: float = 0.0
    other: Case | None = None
    cut: int = 0
    mutates: bool = False
    functional: Cotangent | None = None
    expected: tuple[Array, Array] | None = None

    @classmethod
    def of(cls, failing: Judgement) -> "Reproducer":
        """From a judged cell."""
        if failing.problem is not None:
            mutates = failing.problem.kind == "inputs-mutated"
            return cls(failing.case, failing.problem.message, mutates=mutates)
        parts = []
        for name, measure in (("output", failing.output), ("final state", failing.state)):
            if measure is None or not measure.failed:
                continue
            if measure.nonfinite:
                parts.append(f"{measure.nonfinite} values of the {name} are not finite")
            else:
                parts.append(f"the {name} is {measure.worst_ratio:.3g} tolerances from the definition")
        if failing.beyond_worst_case and not parts:
            parts.append("the error is beyond the worst case of any rounding")
        y = failing.yardstick
        tolerances = (float(y.output_tolerance.max(initial=0.0)), float(y.state_tolerance.max(initial=0.0)))
        return cls(failing.case, " and ".join(parts), *tolerances, expected=(y.output, y.state))

    @classmethod
    def of_gradients(cls, failing: GradientJudgement) -> "Reproducer":
        """From a judged cell whose gradients fail."""
        if failing.problem is not None:
            observed = failing.problem.message
        else:
            fields = ", ".join(failing.nonfinite or failing.failing)
            worst = max(m.worst_ratio for m in failing.measures.values())
            wrong = f"{worst:.3g} tolerances from the definition's"
            wrong = wrong if worst > 1 else "beyond the worst case of any rounding"
            observed = f"gradients of {fields} are {'not finite' if failing.nonfinite else wrong}"
        return cls(failing.case, observed, functional=failing.yardstick.functional)

    def entry(self) -> dict[str, Any]:
        """The certificate's entry."""
        case = self.case
        shape = vars(case.shape)
        return {
            "script": SCRIPT,
            "data": DATA,
            "shape": shape,
            "class": case.name,
            "observed": self.observed,
        }

    def write(self, folder: Path, target: Target, convention: Convention) -> None:
        """Write both files; they need torch, safetensors and the target, not this tool."""
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        tensors = _tensors(self.case, convention)
        if self.other is not None:
            tensors |= {_LATER + name: x for name, x in _tensors(self.other, convention).items()}
        if self.functional is not None:
            tensors |= _weights(self.functional, convention)
        if self.expected is not None and not is_plain(convention):
            tensors |= _expected(self.expected, self.case, convention)
        save_file(tensors, folder / DATA)
        (folder / SCRIPT).write_text(self.script(target, convention), encoding="utf-8")

    def script(self, target: Target, convention: Convention) -> str:
        """At most 30 lines."""
        lines = [
            f'"""{target.requested}: {_one_line(self.observed)}."""',
            "import importlib",
            *(["import sys"] if target.is_file else []),
            "from pathlib import Path",
            "import torch",
            "from safetensors.torch import load_file",
            f'x = load_file(Path(__file__).with_name("{DATA}"))',
            *_import(target),
        ]
        if not is_plain(convention):
            lines += function(self.case, convention, _arguments(self.case, convention, "x"))
        if self.other is not None:
            lines += self._causality(convention)
        elif self.functional is not None:
            lines += self._gradients(convention)
        elif self.mutates:
            lines += self._mutation(convention)
        else:
            lines += self._comparison(convention)
        return "\n".join(lines) + "\n"

    def _call(self, convention: Convention, source: str) -> str:
        if not is_plain(convention):
            return f"call({source})"
        return f"target({_arguments(self.case, convention, source)})"

    def _comparison(self, convention: Convention) -> list[str]:
        c = convention
        compare = "print('{}: largest error', ({} - {}).abs().max().item(), 'allowed', {:.3g})"
        if not is_plain(c):
            names = ("output", "state") if c.returns_state else ("output",)
            sizes = (self.output_tolerance, self.state_tolerance)
            return [
                f"want = {{n: x.pop({_EXPECTED!r} + n) for n in {names}}}",
                f"got = dict(zip({names}, call(x)))",
                *(
                    compare.format(n, f"got[{n!r}].double()", f"want[{n!r}]", size)
                    for n, size in zip(names, sizes, strict=False)
                ),
            ]
        back = {"output": "out = ", "output-first": "out, *_ = "}.get(c.returns, "out, final = ")
        swapped = ".transpose(1, 2)" if c.token_layout == "BHTD" else ""
        lines = [
            back + self._call(c, "x"),
            *definition(self.case, c).splitlines(),
            compare.format("output", f"out.double(){swapped}", "o", self.output_tolerance),
        ]
        if c.returns_state:
            final = "final.double()" + (".mT" if c.state_layout == "VK" else "")
            lines.append(compare.format("final state", final, "S", self.state_tolerance))
        return lines

    def _gradients(self, c: Convention) -> list[str]:
        """Gradients of the target beside those that torch gives for the definition in float64."""
        swapped = ".transpose(1, 2)" if c.token_layout == "BHTD" else ""
        both = c.gradients == "output-and-state" and c.returns_state
        turned = ".mT" if c.state_layout == "VK" else ""
        back = {"output": "out = ", "output-first": "out, *_ = "}.get(c.returns, "out, final = ")
        theirs = f"(out * c['output'].to(out.dtype){swapped}).sum()"
        exact = "(o * c['output']).sum()"
        if both:
            theirs += f" + (final * c['state']{turned}.to(final.dtype)).sum()"
            exact += " + (S * c['state']).sum()"
        compare = "{n: f'largest error {(mine[n].double() - x[n].grad).abs().max():.3g}' for n in x}"
        return [
            f"c = {{n: x.pop({_WEIGHT!r} + n) for n in ('output', 'state') if {_WEIGHT!r} + n in x}}",
            "x = {n: y.requires_grad_() for n, y in x.items()}",
            back + self._call(c, "x"),
            f"({theirs}).backward()",
            "mine, x = {n: y.grad for n, y in x.items()}, "
            "{n: y.detach().double().requires_grad_() for n, y in x.items()}",
            *definition(self.case, c).splitlines(),
            f"({exact}).backward()",
            f"print('gradients:', {compare})",
        ]

    def _causality(self, convention: Convention) -> list[str]:
        c = convention
        pick = "" if c.returns == "output" and is_plain(c) else "[0]"
        axes = {"BHTD": ":, :, :p", "THD": ":p"}.get(c.token_layout, ":, :p")
        return [
            f"y = {{n.removeprefix({_LATER!r}): z for n, z in x.items() if n.startswith({_LATER!r})}}",
            f"one, two = {self._call(c, 'x')}{pick}, {self._call(c, 'y')}{pick}",
            f"p = {self.cut}",
            f"same = all(torch.equal(x[n][{axes}], y[n][{axes}]) for n in y if y[n].ndim > 2)",
            "print('inputs before token', p, 'are the same:', same)",
            f"print('outputs before it differ by', (one - two)[{axes}].abs().max().item())",
        ]

    def _mutation(self, convention: Convention) -> list[str]:
        return [
            "before = {n: y.clone() for n, y in x.items()}",
            self._call(convention, "x"),
            "print('changed:', [n for n in x if not torch.equal(x[n], before[n])])",
        ]


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("\\", "/").replace('"', "'").rstrip(".")


def _import(target: Target) -> list[str]:
    module = target.location
    lines = []
    if target.is_file:
        path = Path(target.location)
        lines.append(f"sys.path.insert(0, {str(path.parent)!r})")
        module = path.stem
    return [*lines, f"target = importlib.import_module({module!r}).{target.attribute}"]


def _arguments(case: Case, convention: Convention, source: str) -> str:
    """The call as source text; ``source`` names the dictionary of tensors."""
    names = convention.arguments
    present = convention.inputs(case)
    words = [f"{source}[{names[f]!r}]" for f in convention.positional]
    words += [f"{names[f]}={source}[{names[f]!r}]" for f in present if f not in convention.positional]
    words += [f"{name}={value}" for name, value in convention.absent(case).items()]
    words += [f"{name}={value!r}" for name, value in convention.numbers(case).items()]
    words += [f"{name}={value!r}" for name, value in convention.extra.items()]
    return ", ".join(words)


def _weights(functional: Cotangent, convention: Convention) -> dict[str, Any]:
    """The functional's coefficients in our layout; those of the state only where it is differentiated."""
    import torch

    arrays = {"output": functional.output}
    if convention.gradients == "output-and-state" and convention.returns_state:
        arrays["state"] = functional.state
    return {
        _WEIGHT + name: torch.tensor(x.tolist(), dtype=torch.float64).reshape(x.shape)
        for name, x in arrays.items()
    }


def _expected(results: tuple[Array, Array], case: Case, convention: Convention) -> dict[str, Any]:
    """The exact results in their layout."""
    import torch

    arrays = {"output": convention.their_tokens(case, results[0])}
    if convention.returns_state:
        arrays["state"] = convention.their_state(case, results[1])
    return {
        _EXPECTED + name: torch.tensor(x.tolist(), dtype=torch.float64).reshape(x.shape)
        for name, x in arrays.items()
    }


def _tensors(case: Case, convention: Convention) -> dict[str, Any]:
    import torch

    def tensor(array: Array, dtype: str) -> Any:
        return (
            torch.tensor(array.tolist(), dtype=torch.float64).reshape(array.shape).to(getattr(torch, dtype))
        )

    handed = convention.inputs(case)
    return {
        convention.arguments[field]: tensor(a, dtype).contiguous() for field, (a, dtype) in handed.items()
    }

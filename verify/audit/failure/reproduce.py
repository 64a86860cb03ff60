"""Writes a failing input and a short script that shows the failure with torch alone."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verify.audit.case import Array, Case
from verify.audit.convention import Convention
from verify.audit.judge import Judgement
from verify.audit.subject.target import Target

SCRIPT, DATA = "reproduce.py", "input.safetensors"
_LATER = "later."
_RECURRENCE = """\
q, k, v, g, beta = (x[n].double() for n in ({names}))
q, k = (y.repeat_interleave(v.shape[2] // y.shape[2], 2) for y in (q, k))
decay = {decay}
decay = decay if decay.ndim == 4 else decay[..., None]
S, o = {state}, torch.zeros_like(v)
for t in range(v.shape[1]):
    S = decay[:, t, :, :, None] * S
    error = v[:, t] - torch.einsum("bhkv,bhk->bhv", S, k[:, t])
    S = S + torch.einsum("bh,bhk,bhv->bhkv", beta[:, t], k[:, t], error)
    o[:, t] = torch.einsum("bhkv,bhk->bhv", S, {scale!r} * q[:, t])
"""
_DECAY = {"ln": "g.exp()", "log2": "g.exp2()", "linear": "g"}


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
    """

    case: Case
    observed: str
    output_tolerance: float = 0.0
    state_tolerance: float = 0.0
    other: Case | None = None
    cut: int = 0
    mutates: bool = False

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
        y = failing.yardstick
        tolerances = (float(y.output_tolerance.max(initial=0.0)), float(y.state_tolerance.max(initial=0.0)))
        return cls(failing.case, " and ".join(parts), *tolerances)

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
        if self.other is not None:
            lines += self._causality(convention)
        elif self.mutates:
            lines += self._mutation(convention)
        else:
            lines += self._comparison(convention)
        return "\n".join(lines) + "\n"

    def _call(self, convention: Convention, source: str) -> str:
        return f"target({_arguments(self.case, convention, source)})"

    def _comparison(self, convention: Convention) -> list[str]:
        c, names = convention, convention.arguments
        keys = ", ".join(repr(names[f]) for f in ("q", "k", "v", "g", "beta"))
        s = self.case.shape
        state = f"torch.zeros({s.B}, {s.HV}, {s.K}, {s.V}, dtype=torch.float64)"
        if self.case.initial_state is not None:
            state = f"x[{names['initial_state']!r}].double()" + (".mT" if c.state_layout == "VK" else "")
        back = "out, final = " if c.returns_state else "out = "
        compare = "print('{}: largest error', ({} - {}).abs().max().item(), 'allowed', {:.3g})"
        lines = [
            back + self._call(c, "x"),
            *_RECURRENCE.format(
                names=keys, decay=_DECAY[c.gate_space], state=state, scale=self.case.scale
            ).splitlines(),
            compare.format("output", "out.double()", "o", self.output_tolerance),
        ]
        if c.returns_state:
            final = "final.double()" + (".mT" if c.state_layout == "VK" else "")
            lines.append(compare.format("final state", final, "S", self.state_tolerance))
        return lines

    def _causality(self, convention: Convention) -> list[str]:
        c = convention
        pick = "[0]" if c.returns_state else ""
        return [
            f"y = {{n.removeprefix({_LATER!r}): z for n, z in x.items() if n.startswith({_LATER!r})}}",
            f"one, two = {self._call(c, 'x')}{pick}, {self._call(c, 'y')}{pick}",
            f"p = {self.cut}",
            "same = all(torch.equal(x[n][:, :p], y[n][:, :p]) for n in y if y[n].ndim > 2)",
            "print('inputs before token', p, 'are the same:', same)",
            "print('outputs before it differ by', (one - two)[:, :p].abs().max().item())",
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
    if "initial_state" in names and "initial_state" not in present:
        words.append(f"{names['initial_state']}=None")
    if "scale" in names:
        words.append(f"{names['scale']}={case.scale!r}")
    words += [f"{name}={value!r}" for name, value in convention.extra.items()]
    return ", ".join(words)


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

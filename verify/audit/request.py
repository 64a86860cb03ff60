"""What a certification is asked for: everything its result depends on besides code and machine."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from verify.audit.convention.convention import Convention
from verify.model import digest


@dataclass(frozen=True)
class Request:
    """One kernel, how it is called, and how hard it is tried.

    Args:
        target: ``package.module:function`` or ``path/to/file.py:function``.
        mechanism: one of ``verify.audit.mechanism.MECHANISMS``.
        convention: name of a preset, path of a TOML file, or a loaded convention.
        dtype: dtype of q, k and v.
        budget: one of ``verify.audit.inputs.cells.BUDGETS``.
        seed: seed of all inputs.
        python: interpreter that runs the kernel; it needs torch. None for this one.
        time_limit_s: limit per run.
        memory_limit_gib: limit on the worker's private memory.
        classes: names of the input classes to use; None for all.
        gradients: whether to differentiate the kernel too and judge its gradients.
        reference: one of ``verify.audit.reference.levels.LEVELS``: what judges all but integer cells.
    """

    target: str
    mechanism: str
    convention: str | Convention = "ours"
    dtype: str = "float32"
    budget: str = "fast"
    seed: int = 0
    python: str | None = None
    time_limit_s: float = 60
    memory_limit_gib: float = 8
    classes: tuple[str, ...] | None = None
    gradients: bool = False
    reference: str = "float64"

    def loaded(self) -> Convention:
        """The convention, read when it was given by name.

        Raises:
            RequestError: there is no such convention, or it is not for this mechanism and function.
        """
        if isinstance(self.convention, Convention):
            return self.convention
        return Convention.load(self.convention, self.mechanism, self.target)

    def digest(self) -> str:
        """A hash of all of it, a convention by what it says."""
        fields: dict[str, Any] = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return digest.of_json(fields | {"convention": dataclasses.asdict(self.loaded())})

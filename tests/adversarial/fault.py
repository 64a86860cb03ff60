"""A broken kernel, or a correct one beside it: how it is called, where a fault shows and where it hides."""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from verify.audit.case import Case
from verify.audit.convention.convention import Convention

FOLDER = Path(__file__).parent / "broken"
Inputs = Callable[[Convention], Case]


@dataclass(frozen=True)
class Fault:
    """A broken kernel.

    Args:
        number: of the fault.
        title: what is wrong, in a few words.
        file: in ``broken``, without its suffix.
        function: in that file.
        classes: input classes that show the fault.
        reasons: the reasons that a certificate then names.
        hides: an input on which the kernel is right; None for a correct one.
        dtype: of q, k and v.
        gradients: whether the fault is one of gradients alone.
        packed: whether the fault is one of packed sequences alone.
        gate_space: what the kernel takes for a gate.
        chunk_size: tokens per chunk, where it works by chunks.
        qk_norm: what the kernel does with queries and keys.
    """

    number: str
    title: str
    file: str
    function: str
    classes: tuple[str, ...]
    reasons: tuple[str, ...]
    hides: Inputs | None
    dtype: str = "float32"
    gradients: bool = False
    packed: bool = False
    gate_space: str = "ln"
    chunk_size: int = 64
    qk_norm: str = "none"

    @property
    def mechanism(self) -> str:
        return self.function.split("_")[1]

    @property
    def target(self) -> str:
        return f"{FOLDER / self.file}.py:{self.function}"

    @property
    def convention(self) -> Convention:
        """Ours, for a kernel that subtracts running sums of gates over chunks of its own size."""
        packed = "cu_seqlens" if self.packed else ""
        ours = Convention.load("ours", self.mechanism, self.target)
        return dataclasses.replace(
            ours,
            gate_sums="running",
            gate_infinite=False,
            cu_seqlens=packed,
            gate_space=self.gate_space,
            chunk_argument="",
            qk_norm=self.qk_norm,
            gradients="none" if self.qk_norm != "none" else ours.gradients,
            chunk_size=self.chunk_size if ours.form == "chunked" else ours.chunk_size,
        )

"""The steps of a certification: how far it is, and which faults of one step leave the others standing."""

from collections.abc import Callable
from dataclasses import dataclass

from verify.model.errors import AttnproofError

Progress = Callable[[int, int, str], None]
"""Called with steps done, steps in all and what comes next."""
KEPT = (AttnproofError, ArithmeticError, MemoryError, ValueError)
"""Errors of one step that leave the results of the others standing."""


@dataclass
class Steps:
    """Tells how far a certification is."""

    total: int
    progress: Progress | None
    done: int = 0

    def next(self, what: str) -> None:
        """Say what is done next."""
        if self.progress is not None:
            self.progress(self.done, self.total, what)
        self.done += 1

"""Engines and checkers found by walking their folders, and asked for their word on an obligation."""

import importlib
import pkgutil
from functools import cache
from typing import Protocol, cast

from verify.model.errors import EnvironmentProblem
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict


class Judge(Protocol):
    """A module of ``verify.engines`` or ``verify.checkers`` that can judge some kinds of obligations.

    Third-party libraries are imported inside ``judge``, which raises ``EnvironmentProblem`` when one is
    missing, so that the module itself always imports.
    """

    NAME: str
    KINDS: frozenset[str]

    def judge(self, obligation: Obligation) -> Check | None:
        """The word on one obligation, ``None`` when it has none to say; never raises for a false one."""
        ...


@cache
def judges(room: str) -> tuple[Judge, ...]:
    """All judges of ``verify.engines`` or ``verify.checkers``, in alphabetical order of their files."""
    package = importlib.import_module(room)
    names = sorted(found.name for found in pkgutil.iter_modules(package.__path__))
    modules = (importlib.import_module(f"{room}.{name}") for name in names)
    return tuple(cast(Judge, module) for module in modules if hasattr(module, "KINDS"))


def ask(room: str, obligation: Obligation) -> list[Check]:
    """The words of every judge of a room that treats this kind; a missing library gives ``undecided``."""
    role = "engine" if room.endswith("engines") else "checker"
    words = []
    for judge in judges(room):
        if obligation.kind in judge.KINDS:
            try:
                word = judge.judge(obligation)
            except EnvironmentProblem as problem:
                word = Check(judge.NAME, role, Verdict.UNDECIDED, str(problem))
            if word is not None:
                words.append(word)
    return words

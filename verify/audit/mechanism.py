"""A mechanism's definition and kernels, found by name when they are needed."""

import importlib
from collections.abc import Callable
from typing import Any

from verify.audit.case import MECHANISMS
from verify.model.errors import unknown_name

FORMS = ("recurrent", "chunked")


def definition(mechanism: str) -> Any:
    """The module that states the mechanism's mathematics once, for every number system."""
    if mechanism not in MECHANISMS:
        raise unknown_name("mechanism", mechanism, MECHANISMS)
    return importlib.import_module(f"derivations.{mechanism}.definition")


def kernel(mechanism: str, form: str) -> Callable[..., Any]:
    """This project's own kernel in one algebraic form: the model whose rounding errors are predicted."""
    if mechanism not in MECHANISMS:
        raise unknown_name("mechanism", mechanism, MECHANISMS)
    if form not in FORMS:
        raise unknown_name("form", form, FORMS)
    function: Callable[..., Any] = getattr(
        importlib.import_module(f"kernels.{mechanism}.{form}"), f"{form}_{mechanism}"
    )
    return function

"""The number systems behind one protocol.

`protocol` has the vocabulary; `exact`, `ball`, `symbolic`, `float64` and `multiprecision` one system each,
its library imported only with it; `dual` derivatives over any of them; `formats` the float formats of
kernels; `triangular` forward substitution; `roundoff` bounds of the rounding errors of whole programs.
"""

import importlib
from typing import Any

from verify.model.errors import RequestError, unknown_name

_CLASSES = {
    "exact": "Exact",
    "ball": "Ball",
    "symbolic": "Symbolic",
    "float64": "Float64",
    "multiprecision": "Multiprecision",
}
_WITH_PRECISION = ("ball", "multiprecision")


def system(name: str, *, precision: int | None = None) -> Any:
    """The `protocol.NumberSystem` called `name`; `precision` in bits, where there is one.

    Raises:
        RequestError: there is no such system, or it has no precision to choose.
    """
    if name not in _CLASSES:
        raise unknown_name("number system", name, _CLASSES)
    if precision is not None and name not in _WITH_PRECISION:
        raise RequestError(f"{name} has no precision to choose; those that do: {', '.join(_WITH_PRECISION)}")
    factory = getattr(importlib.import_module(f"verify.numbers.{name}"), _CLASSES[name])
    return factory() if precision is None else factory(precision=precision)

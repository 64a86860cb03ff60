"""Shapes of calls whose tensors pass 2^31 elements."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from verify.audit.case import Case, Shape
from verify.audit.convention.convention import Convention
from verify.audit.inputs.cells import cell_of
from verify.audit.laboratory import Laboratory

ELEMENTS = 1 << 31
_PRIMES = {"B": 3, "T": 17, "H": 5, "K": 7, "V": 11}
_HEADS = 128
"""K and V, where the convention does not fix them."""
# Many sequences, within the 65535 programs of a grid's further axes; one sequence; the batch of fla#1080.
_BATCHES = ((512, 64), (1, 32), (16, 64))
# Elements of the tensor of keys, in 2^31; other tensors have twice as many, or half.
_PARTS = (17 / 8, 17 / 16, 17 / 32)


@dataclass(frozen=True)
class Sizes:
    """How the shapes of a call follow from its B, T, H = HV, K and V.

    Args:
        case: what the call is like but for its shape.
        small: by name, the shapes of inputs and results at `_PRIMES`, whose products tell axes apart.
        dtypes: of the inputs, by name.
    """

    case: Case
    small: Mapping[str, Mapping[str, Sequence[int]]]
    dtypes: Mapping[str, str]

    @classmethod
    def of(cls, lab: Laboratory) -> "Sizes":
        c, p = lab.convention, _PRIMES
        shape = Shape(B=p["B"], T=p["T"], H=p["H"], HV=p["H"], K=p["K"], V=p["V"])
        case = cell_of("random", c.mechanism, shape, lab.dtype, c.takes_initial_state, 0)
        dtypes = {c.arguments[f]: dtype for f, (_, dtype) in c.inputs(case).items()}
        return cls(case, lab.subject.shapes(case), dtypes)

    def scaled(self, group: str, name: str, sizes: Mapping[str, int]) -> list[int]:
        """The shape of one tensor."""
        return [_scaled(length, sizes) for length in self.small[group][name]]

    def tensors(self, sizes: Mapping[str, int]) -> list[dict[str, object]]:
        """The inputs, as the worker makes them."""
        return [
            {"name": name, "shape": self.scaled("inputs", name, sizes), "dtype": self.dtypes[name]}
            for name in self.small["inputs"]
        ]


def _scaled(length: int, sizes: Mapping[str, int]) -> int:
    factor = 1
    for name, prime in _PRIMES.items():
        while length and length % prime == 0:
            length, factor = length // prime, factor * sizes[name]
    return length * factor


def shapes(convention: Convention) -> Iterator[list[dict[str, int]]]:
    """By batch, those to try, the largest first."""
    width, multiple = convention.head_size or _HEADS, convention.length_multiple
    for batch, heads in _BATCHES:
        lengths = [math.ceil(part * ELEMENTS / (batch * heads * width * multiple)) for part in _PARTS]
        sizes = {"B": batch, "T": 0, "H": heads, "K": width, "V": width}
        yield [sizes | {"T": multiple * length} for length in lengths]

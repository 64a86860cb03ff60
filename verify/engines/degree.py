"""How high the degree of a step's residual can be: what makes a random point a test (Schwartz–Zippel)."""

from dataclasses import dataclass
from typing import Any

from verify.derive.instances import World, residuals


@dataclass(frozen=True)
class Degree:
    """Bounds on the degrees of numerator and denominator of a rational expression."""

    top: int
    bottom: int

    def __add__(self, other: "Degree") -> "Degree":
        return Degree(max(self.top + other.bottom, other.top + self.bottom), self.bottom + other.bottom)

    __sub__ = __add__

    def __mul__(self, other: "Degree") -> "Degree":
        return Degree(self.top + other.top, self.bottom + other.bottom)

    def __truediv__(self, other: "Degree") -> "Degree":
        return Degree(self.top + other.bottom, self.bottom + other.top)

    def __rtruediv__(self, _: int) -> "Degree":
        return Degree(self.bottom, self.top)

    def __neg__(self) -> "Degree":
        return self


def degree_bound(chain: dict[str, Any], instance: dict[str, int]) -> int:
    """The largest degree of a numerator among the residuals of a chain at one instance."""
    world = World(
        number=lambda _: Degree(0, 0), exp=None, log=None, value=lambda _: Degree(1, 0), sizes=instance
    )
    return max((found.value.top for found in residuals(chain, world)), default=0)

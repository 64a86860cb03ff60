"""Runs of the delta recurrence in rounded arithmetic: inputs, formats and the order of every sum."""

from collections.abc import Mapping
from fractions import Fraction
from random import Random
from typing import Any

from verify.model.evidence import Obligation
from verify.numbers.formats import BFLOAT16, FLOAT32, Format

NARROW = Format("4 bits, smallest normal number 2^-4", 4, -4, 4)
"""Narrow enough for underflow to matter."""
Run = dict[str, Any]


def run(
    state: list[list[Fraction]],
    steps: list[dict[str, Any]],
    order: Any,
    compute: Format = FLOAT32,
    stored: Format | None = None,
    *,
    fused: bool = False,
) -> Run:
    """Data of an obligation ``rounded-recurrence`` held against the contract of its own formats and sizes.

    Args:
        state: V columns of K numbers.
        steps: per step ``a``, ``k``, ``beta``, ``v``, ``q``.
        order: the tree of every inner product.
        compute: the format of every operation.
        stored: the format the state and the outputs are stored in, if another.
        fused: whether products are added without being rounded first.
    """
    formats = {"compute": _format(compute), "state": _format(stored), "output": _format(stored)}
    u, kept = compute.unit_roundoff, stored.unit_roundoff if stored else Fraction(0)
    tiny = max(compute.min_normal, stored.min_normal if stored else Fraction(0))
    contract = {"u": u, "decay": u, "state": kept, "output": kept, "tiny": tiny}
    sizes = {"depth": _depth(order), "steps": len(steps)}
    data = {"formats": formats, "order": order, "fused": fused, "state": state, "steps": steps}
    written = _written(data | {"contract": contract})
    return written | {"contract": written["contract"] | sizes}


def within(data: Run, label: str, **contract: int | str) -> Obligation:
    """The run stays within the contract; ``contract`` overrides parts of that (for mutants)."""
    return Obligation(
        "rounded-recurrence", label, "B", data | {"contract": data["contract"] | dict(contract)}
    )


def in_turn(width: int) -> Any:
    """One product after the other is added to the sum so far."""
    tree: Any = 0
    for i in range(1, width):
        tree = [i, tree]
    return tree


def in_pairs(low: int, high: int) -> Any:
    """The sum of two halves, each summed like this."""
    middle = (low + high) // 2
    return low if high - low == 1 else [in_pairs(low, middle), in_pairs(middle, high)]


def drawn(width: int, columns: int, steps: int, strongest: int, seed: int, scale: Fraction) -> Run:
    """Inputs of up to 8 bits from a seeded generator: decays above 3/4, keys of length at most 1.

    Args:
        width: K.
        columns: V.
        steps: T.
        strongest: the largest write strength.
        seed: of the generator.
        scale: of values, queries and the initial state.
    """
    random = Random(seed)
    largest = 127 if width == 1 else int(Fraction(128) / width**0.5)

    def several(count: int, low: int, high: int, unit: Fraction) -> list[Fraction]:
        return [random.randint(low, high) * unit for _ in range(count)]

    unit = Fraction(1, 128)
    listed = [
        {
            "a": several(width, 96, 128, unit),
            "k": several(width, -largest, largest, unit),
            "beta": random.randint(0, 128) * unit * strongest,
            "v": several(columns, -128, 128, unit * scale),
            "q": several(width, -128, 128, unit * scale),
        }
        for _ in range(steps)
    ]
    return {"state": [several(width, -128, 128, unit * scale) for _ in range(columns)], "steps": listed}


def stagnating_state(steps: int) -> Run:
    """A state kept in bfloat16 whose decay, just below 2^-9, is rounded away every time, without writes."""
    quiet = {"k": [Fraction(0)], "beta": Fraction(0), "v": [Fraction(0)], "q": [Fraction(1)]}
    decay = {"a": [1 - Fraction(254, 2**17)]}
    return run([[Fraction(255, 128)]], [decay | quiet for _ in range(steps)], 0, stored=BFLOAT16)


def stagnating_sum(width: int) -> Run:
    """An inner product in which every product after the first is rounded away; its double is erased."""
    key = [Fraction(7, 8)] + [Fraction(5, 128)] * (width - 1)
    step = {"a": [Fraction(1)] * width, "k": key, "beta": Fraction(2), "v": [Fraction(0)], "q": key}
    return run([key], [step], in_turn(width), BFLOAT16)


def vanishing_state() -> Run:
    """A state of a subnormal size that rounds to 0 when it decays."""
    step = {
        "a": [Fraction(3, 8)],
        "k": [Fraction(0)],
        "beta": Fraction(0),
        "v": [Fraction(0)],
        "q": [Fraction(1)],
    }
    return run([[Fraction(1, 2**133)]], [step], 0, BFLOAT16)


def _depth(order: Any) -> int:
    """How many roundings a product meets at most, its own included."""
    return 1 if isinstance(order, int) else 1 + max(_depth(part) for part in order)


def _format(format_: Format | None) -> dict[str, int] | None:
    if format_ is None:
        return None
    return {"precision": format_.precision, "min_exponent": format_.min_exponent}


def _written(value: Any) -> Any:
    """JSON: rationals as text."""
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _written(item) for key, item in value.items()}
    return [_written(item) for item in value] if isinstance(value, list) else value

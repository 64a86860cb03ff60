"""The cells of an audit: which input classes at which lengths and shapes."""

from collections.abc import Iterator, Sequence

from verify.audit.case import Case, Shape
from verify.audit.convention import Convention
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.inputs.integers import draw_integer_case
from verify.audit.mechanism import Mechanism, named
from verify.model.digest import of_json
from verify.model.errors import unknown_name

BUDGETS = ("fast", "standard")
# Around the chunk sizes 16 and 64 of the kernels in use, and just short of two chunks of 64.
_LENGTHS = (1, 15, 16, 17, 63, 64, 65, 127)
# K != V shows a transposed state, H > 1 a wrong head, HV > H a wrong grouping, K = 24 a padded size.
_SHAPES = {
    "fast": ((1, 2, 2, 16, 8), (2, 1, 2, 16, 12), (1, 2, 4, 24, 8), (1, 1, 3, 32, 8)),
    "standard": ((2, 2, 4, 32, 16), (2, 3, 3, 24, 40)),
}
_INTEGER_SHAPES = {
    "fast": ((2, 2, 2, 4, 8), (1, 1, 2, 16, 8), (1, 1, 2, 64, 8)),
    "standard": ((2, 2, 4, 4, 16), (2, 1, 3, 16, 40), (2, 2, 2, 64, 8)),
}
_LONGEST_GRADIENT = 65
_INTEGER_CLASSES = {"integer": False, "integer-reset": True}


def classes(mechanism: Mechanism) -> tuple[str, ...]:
    """The names of the input classes that say something about a mechanism."""
    integers = [name for name, resets in _INTEGER_CLASSES.items() if mechanism.gate or not resets]
    return (*(kind.name for kind in REAL_CLASSES if kind.suits(mechanism)), *integers)


def lengths(convention: Convention) -> tuple[int, ...]:
    """The lengths T in use: around the chunk sizes, each raised to a multiple the convention accepts."""
    m = convention.length_multiple
    return tuple(sorted({-(-t // m) * m for t in _LENGTHS}))


def cells(
    mechanism: str, dtype: str, convention: Convention, budget: str = "fast", seed: int = 0
) -> Iterator[Case]:
    """The cases of an audit, all of which the convention accepts.

    "fast" has every class at two short and two long lengths, so that every length meets a quarter of the
    classes or more; "standard" has every class at every length, every shape, with and without a state.

    Args:
        mechanism: one of ``verify.audit.mechanism.MECHANISMS``.
        dtype: dtype of q, k and v.
        convention: what the kernel accepts: lengths, grouped heads, an initial state.
        budget: "fast" or "standard".
        seed: the values of every cell are drawn from this and the cell's own description.

    Raises:
        RequestError: the budget is not known.
    """
    if budget not in BUDGETS:
        raise unknown_name("budget", budget, BUDGETS)
    names = classes(named(mechanism))
    plan = _fast(convention, names) if budget == "fast" else _standard(convention, names)
    seen = set()
    for name, shape, with_state in plan:
        if not convention.grouped_heads:
            shape = Shape(shape.B, shape.T, shape.HV, shape.HV, shape.K, shape.V)
        with_state = with_state and convention.takes_initial_state
        cell = (name, shape, with_state)
        if cell in seen:
            continue
        seen.add(cell)
        case = _draw(name, mechanism, shape, dtype, with_state, seed)
        if convention.refusal(case) is None:
            yield case


def gradient_cells(cases: Sequence[Case], budget: str) -> list[Case]:
    """Those of an audit's cases to differentiate too: with "fast" one of each class, of middle length.

    Exact classes are left out: backward, intermediate results need not be integers.
    """
    real = [case for case in cases if case.name not in _INTEGER_CLASSES]
    if budget != "fast":
        return real
    chosen: dict[str, Case] = {}
    for case in real:
        best = chosen.setdefault(case.name, case)
        chosen[case.name] = max(best, case, key=lambda c: (c.shape.T <= _LONGEST_GRADIENT, c.v.size))
    return list(chosen.values())


def _fast(convention: Convention, names: tuple[str, ...]) -> Iterator[tuple[str, Shape, bool]]:
    every = lengths(convention)
    half = max(1, len(every) // 2)
    short, long = every[:half], every[half:] or every
    for i, name in enumerate(names):
        table = (_INTEGER_SHAPES if name in _INTEGER_CLASSES else _SHAPES)["fast"]
        chosen = (
            short[i % len(short)],
            long[i % len(long)],
            short[(i + 1) % len(short)],
            long[(i + 2) % len(long)],
        )
        for j, length in enumerate(chosen):
            yield name, _shape(table[(i + j) % len(table)], length), (i + j) % 2 == 0


def _standard(convention: Convention, names: tuple[str, ...]) -> Iterator[tuple[str, Shape, bool]]:
    for name in names:
        table = (_INTEGER_SHAPES if name in _INTEGER_CLASSES else _SHAPES)["standard"]
        for length in lengths(convention):
            for sizes in table:
                yield name, _shape(sizes, length), False
                yield name, _shape(sizes, length), True


def _shape(sizes: tuple[int, int, int, int, int], length: int) -> Shape:
    b, h, hv, k, v = sizes
    return Shape(B=b, T=length, H=h, HV=hv, K=k, V=v)


def _draw(name: str, mechanism: str, shape: Shape, dtype: str, with_state: bool, seed: int) -> Case:
    s = shape
    description = [name, mechanism, dtype, s.B, s.T, s.H, s.HV, s.K, s.V, with_state, seed]
    own_seed = int(of_json(description)[:8], 16)
    if name in _INTEGER_CLASSES:
        return draw_integer_case(
            mechanism, s, dtype=dtype, seed=own_seed, with_state=with_state, resets=_INTEGER_CLASSES[name]
        )
    kind = next(kind for kind in REAL_CLASSES if kind.name == name)
    return draw_case(kind, mechanism, s, dtype=dtype, seed=own_seed, with_state=with_state)

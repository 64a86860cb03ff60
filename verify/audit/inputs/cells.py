"""The cells of an audit: which input classes at which lengths and shapes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from verify.audit.case import Case, Shape, check_dtype
from verify.audit.convention.convention import Convention
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.inputs.integers import KEY_SIZES, draw_integer_case
from verify.audit.mechanism import Mechanism, named
from verify.model.digest import of_json
from verify.model.errors import unknown_name

BUDGETS = ("fast", "standard", "thorough")
"""At most 1, 10 and 120 minutes for heads of 64 on two cores."""
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
# More than one tile of values, and key sizes that are padded to a power of two: slow, so at one length only.
_WIDE_SHAPES = ((1, 1, 1, 72, 80), (1, 1, 2, 104, 72))
# Many chunks, more than a tile of keys, and the sizes of heads in use.
_LONG_SHAPES = ((1, 1, 2, 64, 64), (1, 1, 1, 128, 128))
_LONG_LENGTHS = (257, 512, 1000)
_CHUNK = 64
"""The largest chunk of most kernels: longer sequences carry a state from one to the next."""
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

    "fast" has every class at two short and two long lengths, one of each with a state, so that every length
    meets a quarter of the classes or more and every class crosses a chunk with a state; "standard" has those,
    and every class at every length, every shape, with and without a state, and wide shapes at one length;
    "thorough" draws all of that twice, and has sequences of many chunks with heads of 64 and 128.

    Args:
        mechanism: one of ``verify.audit.mechanism.MECHANISMS``.
        dtype: dtype of q, k and v.
        convention: what the kernel accepts: lengths, grouped heads, an initial state.
        budget: one of `BUDGETS`.
        seed: the values of every cell are drawn from this and the cell's own description.

    Raises:
        RequestError: the budget or the dtype is not known.
    """
    if budget not in BUDGETS:
        raise unknown_name("budget", budget, BUDGETS)
    check_dtype(dtype)
    names = classes(named(mechanism))
    plan = list(_fast(convention, names))
    if budget != "fast":
        plan += _standard(convention, names)
    further = list(_long(convention, names)) if budget == "thorough" else []
    yield from _cells(mechanism, dtype, convention, plan + further, seed)
    if budget == "thorough":
        yield from _cells(mechanism, dtype, convention, plan, [seed, 1])


def _cells(
    mechanism: str,
    dtype: str,
    convention: Convention,
    plan: Iterable[tuple[str, Shape, bool]],
    seed: int | list[int],
) -> Iterator[Case]:
    """Those of a plan that the convention accepts, each once."""
    seen = set()
    for name, shape, with_state in plan:
        if not convention.grouped_heads:
            shape = replace(shape, H=shape.HV)
        if convention.head_size:
            shape = replace(shape, K=convention.head_size, V=convention.head_size)
        with_state = with_state and convention.takes_initial_state
        cell = (name, shape, with_state)
        if cell in seen or (name in _INTEGER_CLASSES and shape.K not in KEY_SIZES):
            continue
        seen.add(cell)
        case = cell_of(name, mechanism, shape, dtype, with_state, seed)
        if convention.refusal(case) is None:
            yield case


def gradient_cells(cases: Sequence[Case], budget: str) -> list[Case]:
    """Those of an audit's cases to differentiate too.

    With "fast" one of each class, of more tokens than a chunk and with an initial state, where the convention
    takes such cases; with "standard" those, and one of each class and length; with "thorough" those, and
    every one that "standard" has too and the long ones.

    Exact classes are left out: backward, intermediate results need not be integers.
    """
    real = [case for case in cases if case.name not in _INTEGER_CLASSES]
    chosen: dict[str, Case] = {}
    for case in real:
        best = chosen.setdefault(case.name, case)
        chosen[case.name] = max(best, case, key=_telling)
    if budget == "fast":
        return list(chosen.values())
    parts = ("name", "shape", "state") if budget == "thorough" else ("name", "T")
    ordered = [*chosen.values(), *real]
    return list({_described(case, parts): case for case in reversed(ordered)}.values())[::-1]


def _described(case: Case, parts: tuple[str, ...]) -> tuple[object, ...]:
    """Some of what tells cases apart."""
    s, with_state = case.shape, case.initial_state is not None
    known = {"name": case.name, "T": s.T, "shape": s, "state": with_state}
    return tuple(known[part] for part in parts)


def _telling(case: Case) -> tuple[bool, bool, int]:
    """How much a case says about gradients for its cost."""
    tokens = case.shape.T
    crosses = tokens > _CHUNK
    return crosses, case.initial_state is not None, -tokens if crosses else tokens


def _fast(convention: Convention, names: tuple[str, ...]) -> Iterator[tuple[str, Shape, bool]]:
    every = lengths(convention)
    half = max(1, len(every) // 2)
    short, long = every[:half], every[half:] or every
    crossing = _crossing(convention)
    others = [length for length in long if length != crossing] or long
    for i, name in enumerate(names):
        table = (_INTEGER_SHAPES if name in _INTEGER_CLASSES else _SHAPES)["fast"]
        chosen = (
            (short[i % len(short)], i % 2 == 0),
            (others[i % len(others)], False),
            (short[(i + 1) % len(short)], i % 2 == 1),
            (crossing, True),
        )
        for j, (length, with_state) in enumerate(chosen):
            yield name, _shape(table[(i + j) % len(table)], length), with_state


def _crossing(convention: Convention) -> int:
    """The smallest length of more than one chunk, or the longest in use."""
    every = lengths(convention)
    return next((length for length in every if length > _CHUNK), every[-1])


def _standard(convention: Convention, names: tuple[str, ...]) -> Iterator[tuple[str, Shape, bool]]:
    for name in names:
        table = (_INTEGER_SHAPES if name in _INTEGER_CLASSES else _SHAPES)["standard"]
        for length in lengths(convention):
            for sizes in table:
                yield name, _shape(sizes, length), False
                yield name, _shape(sizes, length), True
        if name not in _INTEGER_CLASSES:
            for i, sizes in enumerate(_WIDE_SHAPES):
                yield name, _shape(sizes, _crossing(convention)), i % 2 == 0


def _long(convention: Convention, names: tuple[str, ...]) -> Iterator[tuple[str, Shape, bool]]:
    m = convention.length_multiple
    for name in names:
        if name in _INTEGER_CLASSES:
            continue
        for i, length in enumerate(_LONG_LENGTHS):
            yield name, _shape(_LONG_SHAPES[0], -(-length // m) * m), i % 2 == 0
        yield name, _shape(_LONG_SHAPES[1], _crossing(convention)), True


def _shape(sizes: tuple[int, int, int, int, int], length: int) -> Shape:
    b, h, hv, k, v = sizes
    return Shape(B=b, T=length, H=h, HV=hv, K=k, V=v)


def cell_of(
    name: str, mechanism: str, shape: Shape, dtype: str, with_state: bool, seed: int | list[int]
) -> Case:
    """The case of a class, shape and seed; of exact classes only for a K of `KEY_SIZES`."""
    s = shape
    description = [name, mechanism, dtype, s.B, s.T, s.H, s.HV, s.K, s.V, with_state, seed]
    own_seed = int(of_json(description)[:8], 16)
    if name in _INTEGER_CLASSES:
        return draw_integer_case(
            mechanism, s, dtype=dtype, seed=own_seed, with_state=with_state, resets=_INTEGER_CLASSES[name]
        )
    kind = next(kind for kind in REAL_CLASSES if kind.name == name)
    return draw_case(kind, mechanism, s, dtype=dtype, seed=own_seed, with_state=with_state)

"""One head of a GDN or KDA layer: its projections read from arrays, and their meaning.

A token is x ∈ R^D. With the names and shapes of the arrays:

    q = n(w_q x), k = n(w_k x)    w_q, w_k [K, D]; n(y) = y / √(Σ y² + 10⁻⁶), the l2 norm of the kernels
    v = w_v x                     w_v [V, D]
    β = σ(w_beta·x)               w_beta [D]
    ln α = −e^A_log · ln(1 + e^(w_gate x + dt_bias))
                                  w_gate [D] (GDN, one decay) or [K, D] (KDA, one decay per channel);
                                  A_log one number, dt_bias one number (GDN) or [K] (KDA); both 0 when absent

The state follows derivations/gdn or derivations/kda; softmax attention reads the same q, k and v with scale
K^−½.
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from verify.model.errors import MOST_LISTED, RequestError
from verify.numbers.convert import to_fraction

Rows = list[list[Fraction]]

NEEDED = ("w_q", "w_k", "w_v", "w_beta", "w_gate")
OPTIONAL = ("A_log", "dt_bias")
LARGEST_A_LOG = 32
MOST_UNKNOWNS = 256
PRIME = 2**61 - 1
NORM_EPS = Fraction(1, 10**6)


@dataclass(frozen=True)
class Layer:
    """The exact weights of a head: w_q, w_k (K×D), w_v (V×D), w_beta (1×D), w_gate (1×D for GDN, K×D)."""

    mechanism: str
    w_q: Rows
    w_k: Rows
    w_v: Rows
    w_beta: Rows
    w_gate: Rows
    a_log: Fraction
    dt_bias: list[Fraction]

    @property
    def sizes(self) -> tuple[int, int, int]:
        """(K, V, D)."""
        return len(self.w_k), len(self.w_v), len(self.w_k[0])

    def data(self) -> dict[str, Any]:
        """As JSON data, all numbers as text."""
        matrices = {name: getattr(self, name) for name in NEEDED}
        return {
            "mechanism": self.mechanism,
            **{name: [list(map(str, row)) for row in rows] for name, rows in matrices.items()},
            "A_log": str(self.a_log),
            "dt_bias": list(map(str, self.dt_bias)),
            "eps": str(NORM_EPS),
        }


def read(arrays: Mapping[str, Any], mechanism: str | None = None) -> Layer:
    """The layer in arrays of numbers (nested lists, or anything with ``tolist``), named as above.

    Args:
        arrays: floats stand for the binary fractions they store.
        mechanism: ``"gdn"`` or ``"kda"``, to be confirmed; otherwise the shape of w_gate tells.

    Raises:
        RequestError: a name is missing or unknown, a shape does not fit, the state is too large, a number is
            not finite, or w_k or w_v has dependent rows, which every state reached would share.
    """
    _names(arrays)
    _small_enough(arrays)
    w_q, w_k, w_v = (_matrix(name, arrays[name]) for name in ("w_q", "w_k", "w_v"))
    keys, width = len(w_k), len(w_k[0])
    single = _depth(arrays["w_gate"]) == 1
    w_beta = [_vector("w_beta", arrays["w_beta"])]
    w_gate = _matrix("w_gate", arrays["w_gate"], single)
    found = "gdn" if single else "kda"
    if mechanism not in (None, found):
        raise RequestError(f"w_gate of {_shape(w_gate)} makes this a {found.upper()} head, not {mechanism}")
    gates = 1 if single else keys
    wanted = {"w_q": keys, "w_v": len(w_v), "w_beta": 1, "w_gate": gates}
    for (name, rows), given in zip(wanted.items(), (w_q, w_v, w_beta, w_gate), strict=True):
        if (len(given), len(given[0])) != (rows, width):
            raise RequestError(f"{name} is {_shape(given)}, but w_k of {_shape(w_k)} asks for {rows}×{width}")
    bias = _vector("dt_bias", arrays.get("dt_bias", [0] * gates))
    a_log = _vector("A_log", arrays.get("A_log", [0]))
    for name, vector, size in (("dt_bias", bias, gates), ("A_log", a_log, 1)):
        if len(vector) != size:
            raise RequestError(
                f"{name} has {len(vector)} numbers, but this {found.upper()} head needs {size}"
            )
    if abs(a_log[0]) > LARGEST_A_LOG:
        raise RequestError(
            f"A_log = {float(a_log[0]):g} is beyond ±{LARGEST_A_LOG}; decays vanish or stand still"
        )
    _independent("w_k", w_k, "key")
    _independent("w_v", w_v, "value")
    return Layer(found, w_q, w_k, w_v, w_beta, w_gate, a_log[0], bias)


def rank(rows: Rows) -> int:
    """The exact rank: full when full modulo a prime, otherwise by exact elimination, which is slow."""
    from flint import nmod_mat

    from verify.numbers.exact import Exact

    full = min(len(rows), len(rows[0]))
    if not any(x.denominator % PRIME == 0 for row in rows for x in row):
        reduced = [x.numerator * pow(x.denominator, -1, PRIME) % PRIME for row in rows for x in row]
        if nmod_mat(len(rows), len(rows[0]), reduced, PRIME).rank() == full:
            return full
    return int(Exact().matrix(rows).rank())


def _independent(name: str, rows: Rows, what: str) -> None:
    found = rank(rows)
    if found < len(rows):
        raise RequestError(
            f"{name} is singular: rank {found} with {len(rows)} rows, so its {what}s fill no more than"
            f" {found} dimensions; drop dependent rows"
        )


def _names(arrays: Mapping[str, Any]) -> None:
    missing = [name for name in NEEDED if name not in arrays]
    if missing:
        raise RequestError(
            f"the weights lack {', '.join(missing)}; needed: {', '.join(NEEDED)}; optional:"
            f" {', '.join(OPTIONAL)}; given: {_listed(arrays) or 'nothing'}"
        )
    unknown = sorted(set(arrays) - {*NEEDED, *OPTIONAL})
    if unknown:
        raise RequestError(
            f"the weights have {_listed(unknown)}, which this head does not use and which could change what"
            f" it computes; remove them or rename them to one of {', '.join((*NEEDED, *OPTIONAL))}"
        )


def _small_enough(arrays: Mapping[str, Any]) -> None:
    """Asked before anything else: reading the weights of a large head exactly takes minutes."""
    keys, values = (len(_plain(arrays[name])) if _depth(arrays[name]) else 1 for name in ("w_k", "w_v"))
    if keys * values > MOST_UNKNOWNS:
        raise RequestError(
            f"a state of {keys}×{values} gives {keys * values} unknowns, and the test inverts a matrix of"
            f" that size; at most {MOST_UNKNOWNS}: give some of the head's key and value rows"
        )


def _listed(names: Iterable[str]) -> str:
    """The first dozen, in order."""
    ordered = sorted(names)
    more = f" … ({len(ordered)} in all)" if len(ordered) > MOST_LISTED else ""
    return ", ".join(ordered[:MOST_LISTED]) + more


def _plain(array: Any) -> Any:
    return array.tolist() if hasattr(array, "tolist") else array


def _depth(array: Any) -> int:
    plain = _plain(array)
    return 1 + _depth(plain[0]) if isinstance(plain, list | tuple) and plain else 0


def _shape(rows: Rows) -> str:
    return f"{len(rows)}×{len(rows[0])}"


def _vector(name: str, array: Any) -> list[Fraction]:
    """A vector; a single number, or a matrix of one row, is one too."""
    plain = _plain(array)
    if not isinstance(plain, list | tuple):
        plain = [plain]
    if len(plain) == 1 and isinstance(plain[0], list | tuple):
        plain = plain[0]
    return [_number(name, item, (i,)) for i, item in enumerate(plain)]


def _matrix(name: str, array: Any, single: bool = False) -> Rows:
    plain = [_plain(array)] if single else _plain(array)
    if (
        not isinstance(plain, list | tuple)
        or not plain
        or not all(isinstance(r, list | tuple) for r in plain)
    ):
        raise RequestError(f"{name} is not a matrix; it needs rows and columns, both at least 1")
    if len({len(row) for row in plain}) != 1 or not plain[0]:
        raise RequestError(f"{name} is not a matrix: its rows have {sorted({len(r) for r in plain})} entries")
    return [[_number(name, item, (i, j)) for j, item in enumerate(row)] for i, row in enumerate(plain)]


def _number(name: str, value: Any, place: tuple[int, ...]) -> Fraction:
    try:
        return to_fraction(value)
    except RequestError as problem:
        raise RequestError(f"{name}{list(place)}: {problem}") from None


def drawn(mechanism: str, keys: int, values: int, width: int, seed: int) -> Layer:
    """A random head: entries about 2/√D in size, multiples of 1/16; dt_bias −2, so that decay is slow."""
    rng = random.Random(seed)

    def rows(count: int) -> list[list[Fraction]]:
        sizes = ([rng.gauss(0, 2 / width**0.5) for _ in range(width)] for _ in range(count))
        return [[Fraction(round(16 * size), 16) for size in row] for row in sizes]

    arrays = {"w_q": rows(keys), "w_k": rows(keys), "w_v": rows(values), "w_beta": rows(1)}
    if mechanism == "gdn":
        return read({**arrays, "w_gate": rows(1)[0], "dt_bias": [-2]})
    return read({**arrays, "w_gate": rows(keys), "dt_bias": [-2] * keys})

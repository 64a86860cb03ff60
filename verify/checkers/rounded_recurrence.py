"""The delta recurrence run in rounded arithmetic and exactly, its error held against the error contract.

Data: ``formats`` with ``compute``, ``state`` and ``output``, each ``{"precision", "min_exponent"}`` or null
where nothing is rounded again; ``order``, the tree of every inner product (an index, or a pair of trees);
``fused``, whether a product is added without being rounded first; ``state``, V columns of K numbers;
``steps``, each with ``a``, ``k``, ``beta``, ``v`` and ``q``; ``contract`` with its ``u``, ``decay``,
``state`` and ``output`` (relative errors of an operation, of decaying, of storing), ``tiny``, ``depth`` (of
the order) and ``steps``; and, where the run shall come near the contract, ``attains``, the share of it that
the last state's error exceeds. Rounding is to nearest, ties to even, with subnormals and without a largest
number.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import chain
from math import isqrt
from typing import Any

from verify.checkers.enclosure import decimal
from verify.checkers.reading import Matrix, Vector, Wrong, dot, flag, matrix, natural, vector, word
from verify.checkers.terms import IllFormed, rational
from verify.model.evidence import Check, Obligation

NAME = "rounded recurrence"
KINDS = frozenset({"rounded-recurrence"})
LARGEST = 2**14
"""Most roundings of a state's entries."""

Round = Callable[[Fraction], Fraction]
Tree = Any


def judge(obligation: Obligation) -> Check:
    """``proved`` when every state and every output of the run stays within the contract."""
    return word(NAME, obligation, _held)


def _held(data: Mapping[str, Any]) -> str:
    computed = matrix(data["state"])
    exact, width, fused = computed, len(computed[0]), flag(data["fused"])
    if sorted(_leaves(data["order"])) != list(range(width)):
        raise IllFormed("the order does not name every index once")
    if len(data["steps"]) * width * len(computed) > LARGEST:
        raise IllFormed("more numbers than are treated here")
    compute, state, output = (_rounding(data["formats"][name]) for name in ("compute", "state", "output"))
    contract = Contract(data["contract"], len(computed) * width)
    error, share = Fraction(0), Fraction(0)
    for t, step in enumerate(data["steps"]):
        a, k, q, v = (vector(step[name]) for name in ("a", "k", "q", "v"))
        beta, before = rational(step["beta"]), _length(exact)
        if min(a) < 0 or beta < 0 or {len(a), len(k), len(q)} != {width} or len(v) != len(computed):
            raise IllFormed(f"step {t + 1} does not fit the state, or has a negative decay or strength")
        columns = list(zip(computed, v, strict=True))
        stepped = [_step(column, a, k, beta, x, data["order"], fused, compute) for column, x in columns]
        computed = [[state(x) for x in column] for column in stepped]
        exact = [_exact(column, a, k, beta, x) for column, x in zip(exact, v, strict=True)]
        if t < contract.steps:
            error = contract.after(error, before, max(a), dot(k, k), beta, _length([v]))
        share = _within(f"state after step {t + 1}", computed, exact, error)
        read = [output(_sum(data["order"], q, column, fused, compute)) for column in computed]
        bound = contract.read(_length([q]), _length(exact) + error, error)
        _within(f"output of step {t + 1}", [read], [[dot(q, column) for column in exact]], bound)
    if "attains" in data and share <= rational(data["attains"]) ** 2:
        raise Wrong(f"the error is at most {data['attains']} of the contract")
    return f"the last state's error is {decimal(_root(share))} of the contract"


def _within(what: str, computed: Matrix, exact: Matrix, bound: Fraction) -> Fraction:
    """The square of error over bound."""
    pairs = zip(chain(*computed), chain(*exact), strict=True)
    square = sum(((x - y) ** 2 for x, y in pairs), Fraction(0))
    if square > bound**2:
        raise Wrong(f"{what}: squared error {decimal(square)}, but the contract is {decimal(bound**2)}")
    return square / bound**2 if bound else Fraction(0)


class Contract:
    """The theorem's recursion, with rational upper bounds in place of lengths."""

    def __init__(self, data: Mapping[str, Any], entries: int) -> None:
        u, decay, state, output = (1 + rational(data[name]) for name in ("u", "decay", "state", "output"))
        depth, self.steps = natural(data["depth"]), natural(data["steps"])
        self._spread = u ** (depth + 4) * decay * state - 1
        self._read = u**depth * output - 1
        self._room = entries * rational(data["tiny"])

    def after(
        self, error: Fraction, size: Fraction, alpha: Fraction, key: Fraction, beta: Fraction, value: Fraction
    ) -> Fraction:
        """The error after one more step; ``key`` is the key's squared length."""
        kappa, b, g = max(_root(key), Fraction(1)), max(beta, Fraction(1)), max(beta * key - 1, Fraction(1))
        decayed = alpha * (size + error) + self._room
        return g * alpha * error + self._spread * (g * decayed + b * kappa * (value + kappa * decayed))

    def read(self, query: Fraction, size: Fraction, error: Fraction) -> Fraction:
        """The error of an output."""
        return query * error + self._read * (query * size + self._room)


def _step(
    s: Vector, a: Vector, k: Vector, beta: Fraction, v: Fraction, order: Tree, fused: bool, rounded: Round
) -> Vector:
    decayed = [rounded(x * y) for x, y in zip(a, s, strict=True)]
    write = rounded(beta * rounded(v - _sum(order, k, decayed, fused, rounded)))
    products = [x * write if fused else rounded(x * write) for x in k]
    return [rounded(x + y) for x, y in zip(decayed, products, strict=True)]


def _exact(s: Vector, a: Vector, k: Vector, beta: Fraction, v: Fraction) -> Vector:
    decayed = [x * y for x, y in zip(a, s, strict=True)]
    write = beta * (v - dot(k, decayed))
    return [x + y * write for x, y in zip(decayed, k, strict=True)]


def _sum(order: Tree, x: Vector, y: Vector, fused: bool, rounded: Round) -> Fraction:
    if isinstance(order, int):
        return rounded(x[order] * y[order])
    left, right = order
    other = _sum(right, x, y, fused, rounded)
    if fused and isinstance(left, int):
        return rounded(x[left] * y[left] + other)
    return rounded(_sum(left, x, y, fused, rounded) + other)


def _leaves(order: Tree) -> list[int]:
    if isinstance(order, int):
        return [natural(order)]
    left, right = order
    return _leaves(left) + _leaves(right)


def _rounding(data: Mapping[str, Any] | None) -> Round:
    if data is None:
        return lambda x: x
    precision, lowest = natural(data["precision"]), int(data["min_exponent"])

    def rounded(x: Fraction) -> Fraction:
        exponent = abs(x.numerator).bit_length() - x.denominator.bit_length()
        exponent -= abs(x) < Fraction(2) ** exponent
        quantum = Fraction(2) ** (max(exponent, lowest) - precision + 1)
        return round(x / quantum) * quantum

    return rounded


def _length(columns: Matrix) -> Fraction:
    """An upper bound of the Euclidean length of all entries."""
    return _root(sum((dot(column, column) for column in columns), Fraction(0)))


def _root(x: Fraction) -> Fraction:
    """An upper bound of the square root, less than 2^-60 of it above."""
    if not x:
        return x
    scale = 2 ** max(0, 64 - (x.numerator.bit_length() - x.denominator.bit_length()) // 2)
    return Fraction(isqrt(x.numerator * scale**2 // x.denominator) + 1, scale)

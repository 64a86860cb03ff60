"""What decays leave of earlier tokens of a KDA head: ceilings for any keys, and shares for given ones.

Data: ``gates``, a row per token with one decay per channel, or one for all; ``logarithms``, whether they are
g = ln α in place of α; ``betas``; ``keys``, a row per token (directions, scaled to length 1 here) or null;
``exact``, whether shares are computed without rounding; ``rows``, for some tokens j (from 1) in their order:
``ceiling`` β_jΠ_{i>j} max_c α_ic, ``channels`` Π_{i>j} α_ic for each c, and with keys ``share`` k_j·w and
``length`` ‖w‖² for w = Π_{i>j}(I − β_ik_ik_iᵀ)Diag(α_i)·β_jk_j, each as [low, high] around the value.

No step lengthens a vector when β is in [0, 2] and α in [0, 1], so rounding errors add up without growing:
matrices are kept in multiples of 2^−GRID and the sum of all errors is added to the answer.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Any

from verify.checkers.enclosure import LARGEST, Interval, decimal, exp
from verify.checkers.reading import Matrix, Vector, Wrong, flag, matrix, natural, vector, word
from verify.checkers.terms import IllFormed
from verify.model.evidence import Check, Obligation

NAME = "retention replay"
KINDS = frozenset({"retention"})
GRID, SPARE = 200, 64
CEILINGS, SHARES = ("ceiling", "channels"), ("share", "length")


@dataclass(frozen=True)
class _Head:
    gates: Matrix
    logarithms: bool
    betas: Vector
    keys: Matrix | None
    exact: bool


def judge(obligation: Obligation) -> Check:
    """``proved`` when every stated pair of bounds holds the value recomputed here."""
    return word(NAME, obligation, _retention)


def _retention(data: Mapping[str, Any]) -> str:
    head = _head(data)
    tokens = len(head.gates)
    rows = {natural(row["token"]): row for row in data["rows"]}
    if not rows or list(rows) != sorted(rows) or len(rows) != len(data["rows"]) or not _within(rows, tokens):
        raise IllFormed("rows must name tokens of the history, each once and in order")
    _compare(rows, CEILINGS, _ceilings(head, set(rows)))
    if head.keys is not None:
        _compare(rows, SHARES, _shares(head, head.keys, set(rows)))
    oldest, what = min(rows), "ceilings" if head.keys is None else "ceilings and shares"
    left = vector(rows[oldest]["ceiling"])[1]
    return f"{what} of {len(rows)} tokens hold; at most {decimal(left)} of token {oldest} is left"


def _head(data: Mapping[str, Any]) -> _Head:
    gates, betas, logarithms = matrix(data["gates"]), vector(data["betas"]), flag(data["logarithms"])
    keys = None if data["keys"] is None else matrix(data["keys"])
    exact = flag(data["exact"])
    for gate in (gate for row in gates for gate in row):
        if gate > 0 if logarithms else not 0 <= gate <= 1:
            raise Wrong(f"a decay outside [0, 1]: {'g = ' if logarithms else ''}{gate}")
    if not all(0 <= beta <= 2 for beta in betas):
        raise Wrong("a strength outside [0, 2]")
    if exact and logarithms:
        raise IllFormed("e^g has no exact value")
    if len(betas) != len(gates) or (keys is not None and len(keys) != len(gates)):
        raise IllFormed("gates, strengths and keys of different numbers of tokens")
    if keys is not None and (len(gates[0]) not in (1, len(keys[0])) or not all(map(any, keys))):
        raise IllFormed("a key is 0, or has another number of channels than the gates")
    return _Head(gates, logarithms, betas, keys, exact)


def _within(tokens: Mapping[int, Any], last: int) -> bool:
    return all(1 <= token <= last for token in tokens)


def _compare(
    rows: Mapping[int, Any], names: Sequence[str], found: Iterator[tuple[int, dict[str, list[Interval]]]]
) -> None:
    for token, values in found:
        for name in names:
            stated = rows[token][name] if name == "channels" else [rows[token][name]]
            if len(stated) != len(values[name]):
                raise IllFormed(f"{len(stated)} {name} of token {token}")
            for bounds, value in zip(stated, values[name], strict=True):
                low, high = vector(bounds)
                if not (low <= value.low and value.high <= high):
                    raise Wrong(
                        f"{name} of token {token} is in {value}, not in [{decimal(low)}, {decimal(high)}]"
                    )


def _ceilings(head: _Head, wanted: set[int]) -> Iterator[tuple[int, dict[str, list[Interval]]]]:
    """Products from the last token back; numerators and denominators apart, as reducing them is slow."""
    width = len(head.gates[0])
    sums = [Fraction(0)] * (width + 1)
    products = [(1, 1)] * (width + 1)
    for token in range(len(head.gates), 0, -1):
        if token in wanted:
            kept = [_exponential(x) for x in sums] if head.logarithms else [_quotient(*x) for x in products]
            beta = head.betas[token - 1]
            capped = Interval(beta * kept[-1].low, beta * kept[-1].high)
            yield token, {"ceiling": [capped], "channels": kept[:-1]}
        gates = [*head.gates[token - 1], max(head.gates[token - 1])]
        if head.logarithms:
            sums = [x + gate for x, gate in zip(sums, gates, strict=True)]
        else:
            products = [
                (n * g.numerator, d * g.denominator) for (n, d), g in zip(products, gates, strict=True)
            ]


def _quotient(numerator: int, denominator: int) -> Interval:
    return Interval.point(Fraction(numerator, denominator))


def _exponential(x: Fraction) -> Interval:
    """e^x for x <= 0; what is too small to write out lies below e^−LARGEST."""
    return exp(x) if x >= -LARGEST else Interval(Fraction(0), exp(Fraction(-LARGEST)).high)


def _shares(head: _Head, keys: Matrix, wanted: set[int]) -> Iterator[tuple[int, dict[str, list[Interval]]]]:
    """The product P = after/scale of all steps after token j, from the last back: P ← P(I − βkkᵀ)Diag(α)."""
    width = len(keys[0])
    after, scale = [[int(i == j) for j in range(width)] for i in range(width)], 1
    error = Fraction(0)
    for token in range(len(keys), 0, -1):
        key, beta = _integral(keys[token - 1]), head.betas[token - 1]
        square = sum(k * k for k in key)
        image = [sum(x * k for x, k in zip(row, key, strict=True)) for row in after]
        if token in wanted:
            # ‖P̃ − P‖ ≤ error, and ‖w‖ ≤ β ≤ 2: the squared lengths differ by at most (2·2 + error)·β·error.
            read = beta * Fraction(sum(x * k for x, k in zip(image, key, strict=True)), square * scale)
            length = beta**2 * Fraction(sum(x * x for x in image), square * scale**2)
            squared = _around(length, (4 + 2 * error) * beta * error)
            yield token, {"share": [_around(read, beta * error)], "length": [squared]}
        decays, slack = _decays(head, token)
        # Errors stay far below 1, so the computed product lengthens no vector to more than twice its length.
        error += 2 * slack
        common = lcm(*(decay.denominator for decay in decays))
        factors = [decay.numerator * (common // decay.denominator) for decay in decays]
        factors = factors * width if len(factors) == 1 else factors
        kept = square * beta.denominator
        after = [
            [
                (x * kept - beta.numerator * read_out * k) * f
                for x, k, f in zip(row, key, factors, strict=True)
            ]
            for row, read_out in zip(after, image, strict=True)
        ]
        scale *= kept * common
        if not head.exact:
            after, scale = [[(x << GRID) // scale for x in row] for row in after], 1 << GRID
            error += Fraction(width, scale)


def _integral(key: Vector) -> list[int]:
    """The same direction in integers."""
    common = lcm(*(x.denominator for x in key))
    return [int(x * common) for x in key]


def _decays(head: _Head, token: int) -> tuple[Vector, Fraction]:
    """Rational decays, and how far each may be from the true one."""
    gates = head.gates[token - 1]
    if not head.logarithms:
        return gates, Fraction(0)
    return [_near_exponential(gate) for gate in gates], Fraction(1, 2**GRID)


def _near_exponential(x: Fraction) -> Fraction:
    """A number within 2^−GRID of e^x for x <= 0, in [0, 1]: Taylor's series of x/2^n, then squares.

    Below −GRID e^x is that small itself. Otherwise n <= 10; rounding down costs the series less than 2^8
    units of 2^−(GRID + SPARE), and each squaring of a number of at most 1 triples that at most: below 2^24.
    """
    if x < -GRID:
        return Fraction(0)
    bits = GRID + SPARE
    halvings = max(0, abs(x.numerator).bit_length() - x.denominator.bit_length() + 2)
    small = (x.numerator << bits) // (x.denominator << halvings)
    term, total, count = 1 << bits, 0, 0
    while term not in (0, -1):
        total += term
        count += 1
        term = (term * small >> bits) // count
    for _ in range(halvings):
        total = total * total >> bits
    return Fraction(min(max(total, 0), 1 << bits), 1 << bits)


def _around(middle: Fraction, error: Fraction) -> Interval:
    return Interval(middle - error, middle + error)

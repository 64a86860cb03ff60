"""The inertia checker: bounds around known singular values, planted falsehoods, malformed data."""

import copy
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from verify.checkers import singular_values
from verify.checkers.inertia import exp, negative_pivots
from verify.model.evidence import Check, Obligation
from verify.model.verdict import Verdict

Data = dict[str, Any]


def floors(values: list[list[str]]) -> list[Data]:
    ends = [[Fraction(x) for x in row] for row in values]
    found = []
    for m in range(len(ends)):
        rest = [sum(row[side] ** 2 for row in ends[m:]) for side in (0, 1)]
        frobenius = [
            str(Fraction(float(rest[0]) ** 0.5 * 0.999)),
            str(Fraction(float(rest[1]) ** 0.5 * 1.001)),
        ]
        found.append({"features": m, "spectral": values[m], "frobenius": frobenius})
    return found


# Queries 0 and ln-like 1 against keys 0, 1: rows (1/2, 1/2) and (1, e)/(1 + e).
VALUES = [["1027/1000", "1028/1000"], ["224/1000", "225/1000"]]
TRUE: Data = {
    "queries": [["0"], ["1"]],
    "keys": [["0"], ["1"]],
    "scale": "1",
    "bits": 128,
    "singular_values": VALUES,
    "rank": [2, 2],
    "floors": floors(VALUES),
}


def judged(data: Any) -> Check:
    return singular_values.judge(Obligation("singular-values", "a matrix", "B", data))


def changed(*path: str | int, to: object) -> Data:
    data = copy.deepcopy(TRUE)
    place: Any = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return data


def test_true_bounds_are_accepted() -> None:
    e = np.e
    values = np.linalg.svd(np.array([[0.5, 0.5], [1 / (1 + e), e / (1 + e)]]))[1]
    for (low, high), value in zip(VALUES, values, strict=True):
        assert Fraction(low) < Fraction(value) < Fraction(high)
    check = judged(TRUE)
    assert check.verdict is Verdict.PROVED, check.detail


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (changed("singular_values", 0, 0, to="10278/10000"), "are below"),
        (changed("singular_values", 0, to=["1", "1027/1000"]), "is not"),
        (changed("singular_values", 1, to=["225/1000", "1"]), "are below"),
        (changed("singular_values", 1, to=["1/1000", "224/1000"]), "is not"),
        (changed("singular_values", 1, to=["0", "0"]), "do not show 2"),
        (changed("singular_values", 1, to=["225/1000", "224/1000"]), "not 2 intervals"),
        (changed("singular_values", to=VALUES[:1]), "not 2 intervals"),
        (changed("rank", to=[3, 3]), "do not show 3"),
        (changed("rank", to=[1, 1]), "at most 1"),
        (changed("floors", 1, "spectral", to=["2241/10000", "225/1000"]), "spectral"),
        (changed("floors", 1, "spectral", to=["224/1000", "2249/10000"]), "spectral"),
        (changed("floors", 0, "frobenius", 0, to="1052/1000"), "need not reach"),
        (changed("floors", 0, "frobenius", 1, to="105/100"), "may exceed"),
        (changed("floors", 1, "frobenius", 0, to="226/1000"), "need not reach"),
        (changed("floors", 1, "frobenius", 1, to="224/1000"), "may exceed"),
        (changed("floors", 1, "features", to=2), "no singular value after"),
        (changed("keys", to=[["0"], ["0"]]), "may count"),
        (changed("scale", to="2"), "is"),
    ],
)
def test_a_planted_falsehood_is_refuted(data: Data, reason: str) -> None:
    if data["keys"] == [["0"], ["0"]]:
        data["rank"] = [2, 0]
    if data["singular_values"] != VALUES:
        data["floors"] = []
    check = judged(data)
    assert check.verdict is Verdict.REFUTED
    assert reason in check.detail


def test_too_few_bits_are_undecided_not_refuted() -> None:
    """For a bound at the singular value itself the last pivot is 0 in exact arithmetic."""
    one = {
        **TRUE,
        "queries": [["0"]],
        "keys": [["0"], ["0"]],
        "singular_values": [["0", "1"]],
        "rank": [0, 1],
        "floors": [],
    }
    # The matrix is (1/2, 1/2) and its value √½; a bound above it by 2⁻²⁰⁰ needs more than 64 bits.
    below = str(Fraction(int(2**20 * 0.5**0.5), 2**20))
    assert judged({**one, "singular_values": [["0", below]]}).verdict is Verdict.REFUTED
    with mpmath.workprec(400):
        root = mpmath.sqrt(mpmath.mpf(1) / 2)
        close = str(Fraction(int(mpmath.ceil(root * 2**200)), 2**200))
    assert judged({**one, "bits": 64, "singular_values": [["0", close]]}).verdict is Verdict.UNDECIDED
    assert judged({**one, "bits": 300, "singular_values": [["0", close]]}).verdict is Verdict.PROVED


def test_equal_queries_leave_exact_zeros() -> None:
    data = {
        **TRUE,
        "queries": [["1"], ["1"]],
        "singular_values": [["1", "2"], ["0", "0"]],
        "rank": [1, 1],
        "floors": [],
    }
    assert judged(data).verdict is Verdict.PROVED
    wrong = {**TRUE, "singular_values": [VALUES[0], ["0", "0"]], "rank": [1, 2], "floors": []}
    assert "nothing shows that value 2 is 0" in judged(wrong).detail


@pytest.mark.parametrize("junk", [None, 0.5, "1/0", "x", [], [[]], {}, True, "1e9"], ids=repr)
def test_malformed_data_is_refuted_and_never_raises(junk: object) -> None:
    assert judged({}).verdict is Verdict.REFUTED
    for name in TRUE:
        data = {**TRUE, name: junk}
        if not (name == "floors" and junk in ([], {})):
            assert judged(data).verdict is Verdict.REFUTED, name


@pytest.mark.parametrize("x", ["0", "-1/1000000", "-1/3", "-1", "-20", "-127", "-129", "-100000"])
@pytest.mark.parametrize("bits", [64, 129, 700])
def test_the_exponential_is_enclosed(x: str, bits: int) -> None:
    value = Fraction(x)
    low, high = exp(value, bits)
    with mpmath.workprec(2 * bits + 64):
        exact = mpmath.exp(mpmath.mpf(value.numerator) / value.denominator) * mpmath.mpf(2) ** bits
        assert low <= exact <= high
    assert high - low <= 2


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_negative_pivots_are_negative_eigenvalues(size: int) -> None:
    source = np.random.default_rng(size)
    bits = 128
    for _ in range(5):
        whole = source.integers(-9, 10, (size, size))
        symmetric = whole + whole.T
        expected = int((np.linalg.eigvalsh(symmetric) < 0).sum())
        table = [[(int(x) << bits, int(x) << bits) for x in row[: i + 1]] for i, row in enumerate(symmetric)]
        minors = [round(np.linalg.det(symmetric[:k, :k])) for k in range(1, size + 1)]
        if all(minors):
            assert negative_pivots(table, bits) == expected

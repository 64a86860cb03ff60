"""An inverse with errors: roundings that conspire against one sum of its product's entries stay within it."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
import torch
from conspiring import Conspiring
from torch import Tensor

from verify.audit.tolerance.worst_case.chunk_scores import Rounding
from verify.audit.tolerance.worst_case.enclosed import UP, Enclosed
from verify.audit.tolerance.worst_case.triangular import System, echoes, system

C = 48
U = 2.0**-24
ROUNDING = Rounding(U / (1 - U), 1e-38, C, "", 87.0)
KEYS = ("constant", "near", "random")


class Exact:
    """Products without errors."""

    def product(self, a: Tensor, b: Tensor) -> Tensor:
        return a @ b


def rows(a: Conspiring | Exact, m: Tensor) -> Tensor:
    found = torch.ones(1, 1, dtype=torch.float64)
    for i in range(1, len(m)):
        unit = torch.eye(len(m), dtype=torch.float64)[i : i + 1, : i + 1]
        below = torch.nn.functional.pad(a.product(-m[i : i + 1, :i], found), (0, 1))
        found = torch.cat([torch.nn.functional.pad(found, (0, 1)), below + unit])
    return found


def merged(a: Conspiring, m: Tensor, cut: int, *, left: bool, exact: bool = False) -> Tensor:
    if len(m) <= 16:
        return rows(Exact() if exact else a, m)
    cut = min(cut, len(m) - 16)
    x, y = (merged(a, part, 16, left=left, exact=exact) for part in (m[:cut, :cut], m[cut:, cut:]))
    between = m[cut:, :cut]
    lower = a.product(y, a.product(between, x)) if left else a.product(a.product(y, between), x)
    upper = torch.nn.functional.pad(x, (0, len(m) - cut))
    return torch.cat([upper, torch.cat([-lower, y], dim=1)])


INVERSES: dict[str, Callable[[Conspiring, Tensor], Tensor]] = {
    "rows": rows,
    **{
        f"{order} from {cut}": lambda a, m, cut=cut, order=order: merged(a, m, cut, left=order == "left")
        for order in ("left", "right")
        for cut in (16, 32)
    },
}


def setting(keys: str, strength: float) -> tuple[np.ndarray, np.ndarray, System]:
    rng = np.random.default_rng(2)
    k = rng.standard_normal((C, 4)) + {"constant": 1e9, "near": 4.0, "random": 0.0}[keys]
    k /= np.linalg.norm(k, axis=1, keepdims=True)
    strict = np.tril(strength * k @ k.T, -1)
    return (
        strict,
        20 * U * np.abs(strict),
        system(Enclosed(strict, 1e-15 * np.abs(strict)), 20 * U * np.abs(strict), ROUNDING),
    )


def applied(
    found: System, strict: np.ndarray, right: np.ndarray, solution: np.ndarray
) -> tuple[np.ndarray, ...]:
    left = [np.linalg.norm(right - strict[:, :a] @ solution[:a], axis=1) for a in found.starts]
    return found.applied(left, np.linalg.norm(solution, axis=1))


@pytest.mark.parametrize("inverse", INVERSES)
@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("strength", [1.0, 2.0])
def test_no_conspiracy_exceeds_what_is_applied(inverse: str, keys: str, strength: float) -> None:
    strict, error, found = setting(keys, strength)
    right = np.random.default_rng(5).standard_normal((C, 1))
    exact = np.linalg.inv(np.eye(C) + strict)
    before, beside = applied(found, strict, right, exact @ right)
    bound = np.abs(exact) @ before + beside
    m, r, largest = torch.from_numpy(strict), torch.from_numpy(right), 0.0
    for row in (C - 1, C // 2, 17):
        conspiracy = Conspiring(U)

        def entry(row: int = row, conspiracy: Conspiring = conspiracy) -> Tensor:
            lost = torch.from_numpy(error) * conspiracy.chosen(m.shape)
            return (INVERSES[inverse](conspiracy, m + lost) @ r)[row, 0]

        off = abs(conspiracy.worst(entry).item() - (exact @ right)[row, 0])
        assert off <= bound[row] * (1 + 1e-9)
        largest = max(largest, off / bound[row])
    assert largest > 1 / 4


@pytest.mark.parametrize("cut", [16, 32])
@pytest.mark.parametrize("order", ["left", "right"])
@pytest.mark.parametrize("keys", KEYS)
def test_merges_alone_exceed_nothing(keys: str, order: str, cut: int) -> None:
    """Blocks of sixteen and M without errors: what is left is that of A X, Y A and their products."""
    strict, error, _ = setting(keys, 1.0)
    found = system(Enclosed(strict, 1e-16 * np.abs(strict)), 0 * error, ROUNDING)
    found = dataclasses.replace(found, rows=0 * error)
    right = np.random.default_rng(5).standard_normal((C, 1))
    exact = np.linalg.inv(np.eye(C) + strict)
    before, beside = applied(found, strict, right, exact @ right)
    bound, largest = np.abs(exact) @ before + beside, 0.0
    m, r = torch.from_numpy(strict), torch.from_numpy(right)
    for row in (C - 1, 33, 20):
        conspiracy = Conspiring(U)

        def entry(row: int = row, conspiracy: Conspiring = conspiracy) -> Tensor:
            return (merged(conspiracy, m, cut, left=order == "left", exact=True) @ r)[row, 0]

        off = abs(conspiracy.worst(entry).item() - (exact @ right)[row, 0])
        assert off <= bound[row] * (1 + 1e-9)
        largest = max(largest, off / bound[row])
    assert largest > 1 / 5


def test_an_echo_is_the_inverse() -> None:
    gain = np.tril(np.random.default_rng(1).random((20, 20))) / 4
    exact = np.linalg.inv(np.eye(20) - gain)
    assert (echoes(gain) >= exact * (1 - 1e-14)).all()
    # Rounded up twice at the start, 2 e + 1 times by each of 4 squarings, and as often by each product: under
    # 128 times, a third more where 1 / (1 - x) is taken of a diagonal x of at most 1/4.
    assert (echoes(gain) <= exact * UP**171).all()
    with np.errstate(invalid="ignore"):
        assert not np.isfinite(echoes(4 * gain + np.eye(20))).all()


def test_what_earlier_rows_explain_is_not_multiplied_by_errors() -> None:
    """Where all of R is explained by its first row, later blocks meet nothing but what is off by then."""
    strict, _, found = setting("constant", 1.0)
    solution = np.zeros((C, 1))
    solution[0] = 1
    right = (np.eye(C) + strict) @ solution
    before, beside = applied(found, strict, right, solution)
    blunt = found.before @ np.abs(right)[:, 0]
    assert before[-1] < blunt[-1] / 2
    assert beside.max() < (found.beside @ np.abs(right)[:, 0]).max() / 3

"""Errors carried through transitions that do not contract: never beyond the bound, and near it."""

import dataclasses

import numpy as np
import pytest

from verify.audit.reference.carried import Carried, Transition

K, V, T = 6, 3, 40


def transition(rng: np.random.Generator, before_decay: bool, decay: float, off: float = 0.0):
    """A transition, and the matrix it stands for, which may differ from it by ``off`` of its size."""
    alpha = np.exp(-decay * rng.random((1, 1, K)))
    out, read = rng.standard_normal((2, 1, 1, K))
    out, read = out / np.linalg.norm(out), read / np.linalg.norm(read)
    size = 1 + np.linalg.norm(out) * np.linalg.norm(read) * np.ones((1, 1))
    diagonal, one = np.diag(alpha[0, 0]), np.outer(out, read)
    exact = diagonal + one if before_decay else (np.eye(K) + one) @ diagonal
    norm = np.linalg.norm(exact, 2) * np.ones((1, 1)) * (1 + 1e-12)
    moved = exact + off * rng.choice([-1.0, 1.0]) * np.eye(K)
    unsure = off / size + 1e-15
    return Transition(alpha, out, read, before_decay, norm + off, size, unsure), moved


def added(rng: np.random.Generator, length: float) -> np.ndarray:
    """Along one direction and column, or along all."""
    x = rng.standard_normal((K, V)) if rng.random() < 0.5 else np.outer(*rng.standard_normal((2, K)))[:, :V]
    return length * x / np.linalg.norm(x)


@pytest.mark.parametrize("before_decay", [True, False])
@pytest.mark.parametrize(("decay", "off"), [(0.0, 0.0), (1.0, 0.0), (1.0, 1e-3), (30.0, 0.0)])
def test_no_error_exceeds_it(before_decay: bool, decay: float, off: float) -> None:
    largest = {"along": 0.0, "length": 0.0, "shortest": 0.0}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        carried, error, alike = Carried.nothing(1, 1, K), np.zeros((K, V)), rng.random() < 0.5
        fixed = transition(rng, before_decay, decay, off)
        for _ in range(T):
            step, matrix = fixed if alike else transition(rng, before_decay, decay, off)
            length = float(10 ** rng.uniform(-3, 0)) * (rng.random() < 0.7)
            carried, error = carried.moved(step), matrix @ error
            # Those that add to what is there are the worst.
            more = length * error / max(np.linalg.norm(error), 1e-300)
            error = error + (more if rng.random() < 0.7 and error.any() else added(rng, length))
            carried = carried.grown(np.full((1, 1), length))
            row = rng.standard_normal(K) if rng.random() < 0.5 else error[:, 0]
            seen = np.linalg.norm(row @ error) / carried.along(row[None, None])[0, 0]
            size = np.linalg.norm(error)
            found = {"along": seen, "length": size / carried.length[0, 0]}
            found["shortest"] = size / carried.shortest[0, 0]
            largest = {name: max(x, found[name]) for name, x in largest.items()}
            # The tests' own sums round too.
            assert max(found.values()) <= 1 + 1e-12
    assert min(largest.values()) > 0.3


def test_what_no_token_reads_again_does_not_grow() -> None:
    """Every transition lengthens something by 1.6; none lengthens what the one before it lengthened."""
    carried = Carried.nothing(1, 1, K).grown(np.ones((1, 1)))
    rng, product = np.random.default_rng(0), 1.0
    exact = np.eye(K)
    for _ in range(60):
        step, matrix = transition(rng, False, 1.0)
        carried, exact, product = carried.moved(step), matrix @ exact, product * float(step.norm[0, 0])
    assert np.linalg.norm(exact, 2) <= carried.shortest[0, 0] <= 1.5 * np.linalg.norm(exact, 2)
    assert product > 1e6 * carried.shortest[0, 0]


def test_what_a_transition_may_be_off_by_is_carried() -> None:
    """Each one lengthens by a thousandth what it is said to leave as it is."""
    carried, ones = Carried.nothing(1, 1, K).grown(np.ones((1, 1))), np.ones((1, 1))
    still = Transition(*np.zeros((3, 1, 1, K)), True, 10 * ones, ones, 1e-3 * ones)
    still = dataclasses.replace(still, alpha=np.ones((1, 1, K)))
    for tokens in range(1, 21):
        carried = carried.moved(still)
        assert 1.001**tokens <= carried.along(np.eye(K)[None, None, 0])[0, 0] <= 1.006**tokens


def test_the_largest_eigenvalue_is_found() -> None:
    """Of a long error of unknown direction the norms say more than ten times what M says."""
    carried, ones = Carried.nothing(1, 1, 100).grown(np.ones((1, 1))), np.ones((1, 1))
    still = Transition(np.ones((1, 1, 100)), *np.zeros((2, 1, 1, 100)), True, 10 * ones, ones, 0 * ones)
    carried = carried.moved(still)
    assert 1 <= carried.shortest[0, 0] < 1.4 < 3 < carried.length[0, 0]


def test_where_transitions_contract_it_is_no_longer_than_their_norms_say() -> None:
    carried, length, rng = Carried.nothing(1, 1, K), 0.0, np.random.default_rng(0)
    for _ in range(50):
        step, _ = transition(rng, True, 1.0)
        step = Transition(
            step.alpha, 0 * step.out, step.read, True, step.alpha.max(-1), step.size, step.unsure
        )
        carried = carried.moved(step).grown(np.ones((1, 1)))
        length = length * float(step.norm[0, 0]) + 1
        assert carried.length[0, 0] <= length * (1 + 1e-6)


def test_along_a_direction_that_was_erased_little_is_left() -> None:
    carried = Carried.nothing(1, 1, K).grown(np.ones((1, 1)))
    key, ones = np.eye(K)[None, None, 0], np.ones((1, 1))
    erase = Transition(np.ones((1, 1, K)), -key, key, False, ones, 2 * ones, 1e-15 * ones)
    carried = carried.moved(erase)
    assert carried.along(key)[0, 0] < 1e-6
    assert carried.along(np.eye(K)[None, None, 1])[0, 0] == pytest.approx(1, rel=1e-6)


def test_what_leaves_the_range_is_bounded_by_infinity() -> None:
    carried, step = Carried.nothing(1, 1, 2).grown(np.full((1, 1), 1e200)), np.full((1, 1), 1e200)
    large = Transition(np.ones((1, 1, 2)), *(np.full((1, 1, 2), 1e100),) * 2, True, step, step, 0 * step)
    carried = carried.moved(large).grown(step)
    assert np.isinf(carried.length).all()
    assert np.isinf(carried.along(np.ones((1, 1, 2)))).all()
    assert np.isinf(carried.shortest).all()

"""Each part of the chunk's bound against the worst that its own errors can do, computed anew."""

import numpy as np
import pytest

from verify.audit.tolerance.worst_case.chunk_scores import Chunk, Rounding, scores
from verify.audit.tolerance.worst_case.corrections import Correction, Exact, State, Through, Writing
from verify.audit.tolerance.worst_case.directed.errors import StateError
from verify.audit.tolerance.worst_case.enclosed import Enclosed
from verify.audit.tolerance.worst_case.triangular import system

C, K = 20, 3
U = 2.0**-24
ROUNDING = Rounding(U / (1 - U), 1e-38, C, "", 87.0)
NOTHING = np.zeros((1, 1, C))
LOWER = np.tri(C)


@pytest.fixture
def made():
    """One chunk without decay, one value column, and its exact matrices in float64."""
    rng = np.random.default_rng(8)
    q, k = rng.standard_normal((2, C, K))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    beta, v, state = 0.5 + rng.random(C), rng.standard_normal((C, 1)), rng.standard_normal((K, 1))
    ones, zeros = np.ones((1, 1, C, 1)), np.zeros((1, 1, C, 1))
    chunk = Chunk(q[None, None], k[None, None], beta[None, None], zeros, ones, zeros)
    found = scores(chunk, ROUNDING)
    solved = system(found.kk, found.kk_error, ROUNDING)
    inverse = np.linalg.inv(np.eye(C) + np.tril(k @ k.T * beta, -1))
    rest = v - k @ state
    exact = Exact(
        before=state[None, None],
        before_error=np.zeros((1, 1)),
        values=v[None, None],
        miss=(inverse @ rest)[None, None],
        miss_error=NOTHING,
        passed=np.ones((1, 1, C)),
        reached=np.ones((1, 1, C)),
    )
    writing = Writing(
        chunk,
        exact,
        State(np.zeros((1, 1)), np.zeros((1, 1)), np.abs(state)[None, None]),
        found,
        solved,
        ROUNDING,
    )
    matrices = {
        "q": q,
        "k": k,
        "b": np.diag(beta),
        "t": inverse,
        "p": np.tril(q @ k.T),
        "r": rest,
        "v": v,
        "s": state,
    }
    return chunk, found, solved, writing, matrices


def correction(**parts: np.ndarray) -> Correction:
    empty = {
        name: NOTHING[..., 0] if name.endswith(("length", "state")) else NOTHING
        for name in Correction._fields
    }
    return Correction(**{**empty, **parts})


@pytest.mark.parametrize("part", ["right", "inverse", "own"])
def test_errors_are_led_to_the_output_and_the_state(made, part: str) -> None:
    chunk, found, solved, _, m = made
    through = Through.of(chunk, found, solved)
    sizes = np.random.default_rng(3).random(C)
    rows = {part: sizes[None, None]}
    if part != "own":
        rows[f"{part}_length"] = np.full((1, 1), np.linalg.norm(sizes))
    bound = correction(**rows)
    after = m["b"] @ m["t"] if part == "right" else m["b"]
    for matrix, given in (
        (after, through.written(bound)),
        (m["p"] @ after, through.output(bound)),
    ):
        # The worst signs of the rows, for each row of the result.
        worst = np.abs(matrix) @ sizes
        least = np.minimum(worst, np.linalg.norm(matrix, axis=1) * np.linalg.norm(sizes))
        assert (given[0, 0] >= least * (1 - 1e-12)).all()
        assert (given[0, 0] <= worst * (1 + 1e-6) + 1e-12).all()
    columns = m["k"].T @ after
    largest = max(np.linalg.norm(columns @ (sizes * sign)) for sign in signs(columns))
    state = through.state([bound])
    given = sum(x.size.item() for x in state)
    assert StateError(np.ones((1, 1)), state).size.item() == pytest.approx(1 + given)
    assert largest <= given <= np.linalg.norm(columns, axis=0) @ sizes * (1 + 1e-6) + 1e-12
    # One that the next reader meets along those columns, and one whose direction is not known.
    matrix = np.random.default_rng(7).standard_normal((2, K))
    reads = StateError(np.ones((1, 1)), state).read(
        Enclosed(matrix[None, None], np.zeros((1, 1, 2, K))), np.linalg.norm(matrix, axis=1)
    )
    worst = np.abs(matrix @ columns) @ sizes
    least = np.minimum(worst, np.linalg.norm(matrix @ columns, axis=1) * np.linalg.norm(sizes))
    assert (reads[0, 0] >= least + np.linalg.norm(matrix, axis=1)).all()
    assert (reads[0, 0] <= (worst + np.linalg.norm(matrix, axis=1)) * (1 + 1e-6)).all()
    # And what a step leaves of both.
    step = np.random.default_rng(9).standard_normal((K, K))
    kept = StateError(np.ones((1, 1)), state).after(
        Enclosed(step[None, None], np.zeros((1, 1, K, K))), np.full((1, 1), 3.0)
    )
    largest = max(np.linalg.norm(step @ columns @ (sizes * sign)) for sign in signs(step @ columns))
    assert largest <= kept.item() - 3
    assert kept.item() - 3 <= np.linalg.norm(step @ columns, axis=0) @ sizes * (1 + 1e-6) + 1e-12


def test_the_state_goes_through_the_exact_step(made) -> None:
    """Errors of a state along any direction: exact matrices of the whole chunk say where they go."""
    chunk, found, solved, _, m = made
    through = Through.of(chunk, found, solved)
    for given, exact in (
        (through.reads, m["q"] - m["p"] @ m["b"] @ m["t"] @ m["k"]),
        (through.step, np.eye(K) - m["k"].T @ m["b"] @ m["t"] @ m["k"]),
    ):
        assert (np.abs(given.mid[0, 0] - exact) <= 1e-12).all()
        assert (given.rad < 1e-10).all()
    step = np.linalg.multi_dot(
        [np.eye(K) - b * np.outer(k, k) for k, b in zip(m["k"], np.diag(m["b"]), strict=True)][::-1]
    )
    assert np.allclose(through.step.mid[0, 0], step, atol=1e-12)


def signs(columns: np.ndarray):
    yield from np.random.default_rng(1).choice([-1.0, 1.0], (50, columns.shape[1]))
    yield from np.sign(columns)


def grown(roundings: np.ndarray | float) -> np.ndarray:
    return (1 + U) ** roundings - 1


def terms(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (np.abs(a) > 1e-12).astype(float) @ (np.abs(b) > 1e-12).astype(float)


def product_error(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What the worst order of the sums of a b does."""
    return grown(terms(a, b)) * (np.abs(a) @ np.abs(b))


def test_scores_err_by_their_roundings(made) -> None:
    _, found, _, _, m = made
    worst = {"kk": np.tril(grown(K + 1) * np.abs(m["k"]) @ np.abs(m["k"]).T @ m["b"], -1)}
    worst["qk"] = np.tril(grown(K + 1) * np.abs(m["q"]) @ np.abs(m["k"]).T)
    for name, least in worst.items():
        given = getattr(found, f"{name}_error")[0, 0]
        assert (given >= least).all()
        assert (given <= 6 * least + 1e-30).all()


def test_what_the_inverse_multiplies_errs_by_its_reads(made) -> None:
    *_, writing, m = made
    # One sum of K + 1 terms in any order.
    least = grown(K + 1) * (np.abs(m["v"]) + np.abs(m["k"]) @ np.abs(m["s"]))[:, 0]
    for found in writing.ways("factored"):
        assert (found.right[0, 0] >= least).all()


def test_a_product_with_the_inverse_errs_by_its_sums(made) -> None:
    *_, writing, m = made
    by_inverse, by_substitution, by_mixing, by_factors = writing.ways("factored")
    least = product_error(m["t"], m["r"])[:, 0]
    assert (by_inverse.own[0, 0] >= least).all()
    assert (by_inverse.own[0, 0] <= 10 * least + 1e-5).all()
    # A solve by substitution instead solves a system whose entries are off by as many roundings.
    solution, strict = np.abs(m["t"] @ m["r"]), np.abs(np.tril(m["k"] @ m["k"].T @ m["b"], -1))
    off = grown(np.arange(C))[:, None] * strict
    assert (by_substitution.right[0, 0] >= (off @ solution)[:, 0]).all()
    factors = product_error(m["t"], m["v"]) + product_error(m["t"], m["k"]) @ np.abs(m["s"])
    assert (by_factors.own[0, 0] >= factors[:, 0]).all()
    writes = m["b"] @ m["t"]
    mixed = product_error(m["p"], writes) @ np.abs(m["r"]) + grown(1) * np.abs(m["p"] @ writes) @ np.abs(
        m["r"]
    )
    ended = product_error(m["k"].T, writes) @ np.abs(m["r"])
    assert (by_mixing.mixed[0, 0] >= mixed[:, 0]).all()
    assert by_mixing.mixed_state.item() >= np.linalg.norm(ended)


def test_the_inverse_before_beside_and_backward(made) -> None:
    _, _, solved, writing, m = made
    strict = np.abs(np.tril(m["k"] @ m["k"].T @ m["b"], -1))
    rounded = grown(np.arange(C))[:, None] * strict
    assert (solved.backward[0, 0] >= rounded).all()
    # Substitution sums M T~ column by column; merging sixteen rows with four rounds A X and Y (A X).
    own_rows = np.tril(product_error(strict, np.abs(m["t"])), -1)
    assert (solved.rounded[0, 0] >= own_rows * (1 - 1e-9)).all()
    x, y, between = m["t"][:16, :16], m["t"][16:, 16:], -np.linalg.inv(m["t"])[16:, :16]
    own, of_y = product_error(between, x), solved.rounded[0, 0][16:, 16:] @ np.abs(between @ x)
    assert (of_y > 0).any()
    assert (solved.rounded[0, 0][16:, :16] >= own + of_y).all()
    assert (solved.beside[0, 0][16:, :16] >= product_error(y, between @ x)).all()
    by_inverse = writing.ways("solved")[0]
    # What the last rows meet of R is what the first sixteen leave of it.
    left = m["r"][16:] - between @ m["t"][:16, :16] @ m["r"][:16]
    spoilt = solved.error[0, 0] @ np.abs(m["t"] @ m["r"])
    spoilt[16:] += solved.rounded[0, 0][16:, 16:] @ np.abs(left) + own @ np.abs(m["r"][:16])
    assert (by_inverse.right[0, 0] >= spoilt[:, 0]).all()
    assert (
        by_inverse.inverse[0, 0][16:] >= (product_error(y, between @ x) @ np.abs(m["r"][:16]))[:, 0]
    ).all()

"""The scores of DPLR and GDN-2 in a chunk: they enclose the exact ones, and bound the errors of computing."""

import numpy as np
import pytest

from verify.audit.reference.enclosed_exp import enclosed_exp
from verify.audit.tolerance.worst_case.chunk_scores import Rounding
from verify.audit.tolerance.worst_case.directed.scores import Scores, Tokens, scores

C, K = 7, 5
U = 2.0**-24
ROUNDING = Rounding(U / (1 - U), 1e-37, C, "segment", 87.0)


def found(before_decay: bool) -> tuple[Scores, dict[str, np.ndarray]]:
    rng = np.random.default_rng(2)
    q, reader, out, key = rng.standard_normal((4, 1, 1, C, K))
    gates = 3 * rng.random((1, 1, C, K)) ** 4
    tokens = Tokens(q, reader, (out, key), gates, *enclosed_exp(-gates), before_decay)
    exact = {
        name: x.astype(np.longdouble)[0, 0]
        for name, x in {"q": q, "reader": reader, "out": out, "key": key, "gates": gates}.items()
    }
    return scores(tokens, ROUNDING), exact


def between(gates: np.ndarray, first: int, last: int) -> np.ndarray:
    """Decays of rows first ... last - 1."""
    return np.exp(-gates[first:last].sum(0))


@pytest.mark.parametrize("before_decay", [True, False])
def test_they_enclose_the_exact_ones(before_decay: bool) -> None:
    made, x = found(before_decay)
    shift = 0 if before_decay else 1
    for n, writer in enumerate(("out", "key")):
        for i in range(C):
            for j in range(C):
                decay = between(x["gates"], j + 1, i + shift)
                read = (x["reader"][i] * x[writer][j] * decay).sum() if j < i else 0
                seen = (x["q"][i] * x[writer][j] * between(x["gates"], j + 1, i + 1)).sum() if j <= i else 0
                for score, exact in ((made.read[n], read), (made.seen[n], seen)):
                    apart = abs(score.exact.mid[0, 0, i, j] - exact)
                    assert apart <= score.exact.rad[0, 0, i, j] <= 1e-13
            end = made.ends[n].exact
            apart = np.abs(end.mid[0, 0, i] - x[writer][i] * between(x["gates"], i + 1, C))
            assert (apart <= end.rad[0, 0, i]).all()
    for i in range(C):
        for held, name, rows in ((made.reader, "reader", i + shift), (made.query, "q", i + 1)):
            apart = np.abs(held.exact.mid[0, 0, i] - x[name][i] * between(x["gates"], 0, rows))
            assert (apart <= held.exact.rad[0, 0, i]).all()
    assert (made.total[0, 0] >= between(x["gates"], 0, C)).all()


@pytest.mark.parametrize("before_decay", [True, False])
def test_errors_that_conspire_stay_within_their_bounds(before_decay: bool) -> None:
    made, x = found(before_decay)
    shift, largest = 0 if before_decay else 1, 0.0
    for i in range(1, C):
        for j in range(i):
            gates = x["gates"][j + 1 : i + shift].sum(0)
            for sign in (-1.0, 1.0):
                # A sum of gates, the exponential, two decays, the reader, the products and their sum.
                off = gates * ((1 + U) ** (i + shift - j - 2) - 1) + np.log1p((4 + 2 * gates) * U)
                decay = np.exp(-gates + sign * off)
                terms = x["reader"][i] * x["out"][j] * decay * (1 + sign * U) ** (3 + K)
                exact = x["reader"][i] * x["out"][j] * np.exp(-gates)
                error = np.abs(terms - exact).sum() / made.read[0].error[0, 0, i, j]
                largest = max(largest, float(error))
    assert 1 / 5 < largest <= 1

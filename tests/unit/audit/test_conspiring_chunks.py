"""Several chunks of a delta rule whose every rounding conspires against one number of the result."""

import dataclasses

import pytest
import torch
from conspiring import Conspiring
from torch import Tensor

from verify.audit.case import Case, Shape
from verify.audit.inputs.classes import REAL_CLASSES, draw_case
from verify.audit.reference.results import float64_reference
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.worst_case.rigorous import worst_case
from verify.numbers.formats import FLOAT32

KINDS = {kind.name: kind for kind in REAL_CLASSES}
U = float(FLOAT32.unit_roundoff)


def inverse(a: Conspiring, m: Tensor) -> Tensor:
    """Row by row."""
    found = torch.ones(1, 1, dtype=torch.float64)
    for i in range(1, len(m)):
        below = torch.nn.functional.pad(a.product(-m[i : i + 1, :i], found), (0, 1))
        unit = torch.nn.functional.one_hot(torch.tensor([i]), i + 1).double()
        found = torch.cat([torch.nn.functional.pad(found, (0, 1)), below + unit])
    return found


def chunks(a: Conspiring, case: Case, rows: int, *, solve: bool) -> tuple[Tensor, Tensor]:
    """Output [T, V] and final state of the only head."""
    q, k, v, beta = (torch.from_numpy(x[0, :, 0]) for x in (case.q * case.scale, case.k, case.v, case.beta))
    state, outputs = torch.from_numpy(case.initial_state[0, 0]), []
    for first in range(0, len(q), rows):
        part = slice(first, first + rows)
        key, query, b = k[part], q[part], beta[part, None]
        m = a.product(key, key.T).tril(-1) * b.T
        right = a.product(torch.cat([v[part], -key], 1), torch.cat([torch.eye(v.shape[1]).double(), state]))
        if solve:
            miss = right[:1]
            for i in range(1, len(m)):
                miss = torch.cat([miss, right[i : i + 1] - a.product(m[i : i + 1, :i], miss)])
        else:
            miss = a.product(inverse(a, m), right)
        weights = a.product(query, key.T).tril()
        outputs.append(a.product(torch.cat([query, weights], 1), torch.cat([state, b * miss])))
        state = state + a.product(key.T, b * miss)
    return torch.cat(outputs), state


@pytest.mark.parametrize(
    "name", ["random", "constant-key-0.97", "constant-key-1", "constant-key-2", "correlated"]
)
@pytest.mark.parametrize("solve", [False, True])
def test_what_one_chunk_leaves_to_the_next_is_bounded(name: str, solve: bool) -> None:
    shape = Shape(B=1, T=24, H=1, HV=1, K=3, V=1)
    case = draw_case(KINDS[name], "delta", shape, dtype="float32", seed=5, with_state=True)
    reference = float64_reference(case)
    algorithm = Algorithm("chunked", 8, "float32", "float32", "float32")
    bound = worst_case(case, reference, dataclasses.replace(algorithm, corrections="solved"))
    largest = 0.0
    for row in (7, 8, 15, 23, None):
        conspiracy = Conspiring(U)

        def number(row: int | None = row, conspiracy: Conspiring = conspiracy) -> Tensor:
            output, state = chunks(conspiracy, case, 8, solve=solve)
            return state[0, 0] if row is None else output[row, 0]

        found = conspiracy.worst(number).item()
        if row is None:
            ratio = abs(found - reference.final_state[0, 0, 0, 0]) / bound.state[0, 0]
        else:
            ratio = abs(found - reference.output[0, row, 0, 0]) / bound.output[0, row, 0]
        assert ratio <= 1
        largest = max(largest, ratio)
    assert largest > 1 / 20

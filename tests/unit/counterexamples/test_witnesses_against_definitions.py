"""The literal witnesses agree with the mechanisms as they are defined once, in exact arithmetic."""

from fractions import Fraction
from typing import Any

import pytest

from counterexamples.delta import order, overwrite
from counterexamples.kda import gate_basis, no_shear
from derivations.delta.definition import recurrence
from derivations.kda.definition import step
from verify.model.claim import Claim
from verify.model.evidence import Obligation
from verify.numbers.exact import Exact

EXACT = Exact()


def column(items: list[Any]) -> Any:
    return EXACT.matrix([[item] for item in items])


def obligations(claim: Claim, kind: str) -> list[Obligation]:
    return [item for part in claim.parts() for item in part.obligations if item.kind == kind]


@pytest.mark.parametrize(
    "obligation", obligations(overwrite.CLAIM, "delta-read") + obligations(order.CLAIM, "delta-read")
)
def test_delta_reads_follow_the_definition(obligation: Obligation) -> None:
    data = obligation.data
    query, writes = column(data["query"]), data["writes"]
    keys, values = ([column(write[name]) for write in writes] for name in ("key", "value"))
    strengths = [EXACT.number(write["beta"]) for write in writes]
    state = EXACT.zeros(len(data["query"]), len(data["output"]))
    outputs, _ = recurrence(
        EXACT, [query] * len(writes), keys, values, strengths, scale=EXACT.number(1), state=state
    )
    assert outputs[-1] == column(data["output"])


def transition(direction: list[int], norm_squared: int, alpha: list[Any], beta: Any) -> Any:
    """The matrix that one KDA step applies to the state, by stepping from the identity with a zero value.

    The key is direction/√norm_squared; only kkᵀ enters, so β is divided instead.
    """
    size = len(direction)
    state, _ = step(
        EXACT,
        EXACT.eye(size),
        EXACT.zeros(size, 1),
        column(direction),
        EXACT.zeros(size, 1),
        column(alpha),
        EXACT.number(Fraction(beta) / norm_squared),
        EXACT.number(1),
    )
    return state


@pytest.mark.parametrize("obligation", obligations(gate_basis.CLAIM, "kda-step"))
def test_kda_steps_follow_the_definition(obligation: Obligation) -> None:
    data = obligation.data
    found = transition(data["direction"], int(data["norm_squared"]), data["alpha"], data["beta"])
    assert found == EXACT.matrix(data["matrix"])


def test_the_entries_of_the_certificates_are_those_of_the_definition() -> None:
    key, alpha, strength = [2, -3, 5], [Fraction(1, 2), Fraction(2, 3), Fraction(3, 4)], Fraction(1, 7)
    found = transition(key, 1, alpha, strength)
    point = {
        no_shear.beta: strength, no_shear.k_i: 2, no_shear.k_j: -3, no_shear.lam: 0,
        no_shear.alpha_i: alpha[0], no_shear.alpha_j: alpha[1],
        gate_basis.k1: 2, gate_basis.k2: -3, gate_basis.k3: 5, gate_basis.t: 0,
        gate_basis.a1: alpha[0], gate_basis.a3: alpha[2],
    }  # fmt: skip
    wanted = {
        (0, 0): [no_shear.AT_II + 1, gate_basis.AT_11],
        (0, 1): [no_shear.AT_IJ],
        (1, 0): [no_shear.AT_JI, gate_basis.AT_21],
        (0, 2): [gate_basis.AT_13],
        (1, 2): [gate_basis.AT_23],
    }
    for place, entries in wanted.items():
        for entry in entries:
            value = entry.subs(point)
            assert found[place] == EXACT.number(Fraction(int(value.p), int(value.q))), place

"""The witnesses on the GDN form agree with softmax and with the recurrence as they are defined once."""

from fractions import Fraction
from typing import Any

import flint
import pytest

from counterexamples.gdn import form_unstable, is_it_better, local_not_global
from counterexamples.gdn._construct import EXACT, states
from derivations.softmax.definition import attend
from verify.model.claim import Claim
from verify.model.evidence import Obligation
from verify.numbers.ball import Ball

BALL = Ball()


def obligations(claim: Claim, kind: str) -> list[Obligation]:
    return [item for part in claim.parts() for item in part.obligations if item.kind == kind]


def softmax(query: Any, keys: Any, values: Any) -> Any:
    """The output of one channel, as a ball."""
    return attend(
        BALL,
        BALL.matrix([[query]]),
        [BALL.matrix([[key]]) for key in keys],
        [BALL.matrix([[value]]) for value in values],
        scale=BALL.number(1),
    )[0, 0]


@pytest.mark.parametrize(
    "obligation",
    obligations(form_unstable.CLAIM, "centred-delta") + obligations(local_not_global.CLAIM, "centred-delta"),
)
def test_stated_states_are_those_of_the_recurrence(obligation: Obligation) -> None:
    data = obligation.data
    keys, values = ([[Fraction(x) for x in row] for row in data[name]] for name in ("keys", "values"))
    found = states(keys, values, erase=data["erase"])
    assert found == [EXACT.matrix(state) for state in data["states"]]


def test_softmax_stays_in_the_hull_where_the_form_leaves_it() -> None:
    long = next(o for o in obligations(form_unstable.CLAIM, "centred-delta") if "outputs" in o.data)
    keys, values = ([Fraction(row[0]) for row in long.data[name]] for name in ("keys", "values"))
    outputs = [Fraction(row[0]) for row in long.data["outputs"]]
    assert max(abs(output) for output in outputs) > 8 * 10**6
    for time in (3, 17, 40):
        assert abs(softmax(1, keys[:time], values[:time])) < 1


def test_the_gradient_of_softmax_vanishes_where_the_form_has_a_slope() -> None:
    small = Fraction(1, 1000)
    keys, values = ([row[0] for row in rows] for rows in (local_not_global.KEYS, local_not_global.VALUES))
    ups, downs = (softmax(sign * small, keys, values) for sign in (1, -1))
    slope = (ups - downs) / (2 * flint.arb(flint.fmpq(1, 1000)))
    assert slope.contains(0)
    form = EXACT.entry(states(local_not_global.KEYS, local_not_global.VALUES)[2], 0, 0)
    assert form == EXACT.number(Fraction(-2, 3))


def test_two_queries_have_two_states() -> None:
    two = BALL.log(BALL.number(2))
    for query, wanted in ((1, flint.fmpq(2, 3)), (2, flint.fmpq(4, 5))):
        assert softmax(query, [0, two], [0, 1]).overlaps(flint.arb(wanted))


def test_a_measurement_compares_what_its_sentence_says() -> None:
    for part in is_it_better.CLAIM.parts():
        for item in part.obligations:
            if item.kind == "paired-errors":
                assert item.data["deviation"] in item.label
                assert item.data["history"] in item.label
                assert item.best.value == "sampled"

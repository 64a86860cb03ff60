"""Recurrences with directions of their own: every term of their bound is somewhere nearly all of the error.

There the bound without that term is below the error, which balls then contradict.
"""

import dataclasses

import numpy as np
import pytest

from verify.audit.case import Case
from verify.audit.reference import transition
from verify.audit.reference.confirm import confirm
from verify.audit.reference.enclosed_exp import enclosed_exp
from verify.audit.reference.results import Reference

SEQUENCES = 300


def case(mechanism, tokens, state, **inputs):
    """One head of many sequences; whatever is not given is 0, and the query reads the first channel."""
    b, _, k, v = state.shape
    sizes = {"g": k, "a": k, "b": k, "w": v, "k": k, "v": v}
    names = ("g", "a", "b") if mechanism == "dplr" else ("g", "b", "w")
    fields = {
        name: np.broadcast_to(np.asarray(inputs.get(name, 0.0), float), (b, tokens, 1, sizes[name])).copy()
        for name in ("k", "v", *names)
    }
    query = np.zeros((b, tokens, 1, k))
    query[..., 0] = 1
    return Case(mechanism, "term", 0, "float64", q=query, beta=None, initial_state=state, scale=1.0, **fields)


def sums():
    """The same number again and again: the roundings of one sum agree, and all are carried to the end."""
    rng = np.random.default_rng(0)
    return case("dplr", 60, np.zeros((40, 1, 1, 1)), k=1, v=rng.random((40, 1, 1, 1)))


def one_sum():
    """A little is added to much."""
    rng = np.random.default_rng(0)
    added = 2.0**-20 * rng.random((SEQUENCES, 1, 1, 1))
    return case("dplr", 1, 1 + rng.random((SEQUENCES, 1, 1, 1)), k=1, v=added)


def products():
    """w v, and k times that, each rounded."""
    rng = np.random.default_rng(0)
    k, v, w = (1 + rng.random((SEQUENCES, 1, 1, 1)) for _ in range(3))
    return case("gdn2", 1, np.zeros((SEQUENCES, 1, 1, 1)), k=k, v=v, w=w)


def reading():
    """What is read cancels, its roundings do not, and a long vector spreads them."""
    rng = np.random.default_rng(0)
    half = 1 + rng.random((SEQUENCES, 1, 16, 1))
    state = np.concatenate([half, half * (1 + 2.0**-30)], axis=2)
    order = rng.permutation(32)
    signs = np.repeat([1.0, -1.0], 16)[order]
    return case("dplr", 1, state[:, :, order], a=signs, b=100)


def decays():
    """Gates on which the exponential errs the most."""
    from flint import arb, ctx

    gates = -np.random.default_rng(0).random(4000)
    with ctx.workprec(120):
        values = enclosed_exp(gates)[0]
        pairs = zip(gates.tolist(), values.tolist(), strict=True)
        off = [float((arb(value) / arb(gate).exp() - 1) * 2**53) for gate, value in pairs]
    worst = gates[np.argsort(-np.abs(off))[:20]]
    state = 1 + np.random.default_rng(1).random((20 * 40, 1, 1, 1))
    return case("dplr", 1, state, g=np.repeat(worst, 40)[:, None, None, None])


CASES = {"carried": sums, "sums": one_sum, "products": products, "reading": reading, "decays": decays}
REMOVED = {
    "decays": {"decay_rounding": 0.0},
    "reading": {"gamma": -2 * transition.U},
    "carried": {"norm": 0.0},
}
"""What the constants of the bound would be without a term."""


@pytest.mark.parametrize("term", list(CASES))
def test_the_bound_holds_where_one_term_is_nearly_all_of_it(term):
    outcome = confirm(drawn := CASES[term](), Reference(*transition.float64(drawn)))
    assert outcome.holds
    # Of reading: the roundings of a sum of 32 come to a hundredth of the worst case of any order.
    assert outcome.worst > (0.005 if term == "reading" else 0.05)


@pytest.mark.parametrize("term", list(REMOVED))
def test_without_that_term_it_does_not(term, monkeypatch):
    right = transition.steps

    def steps(case, c):
        changes = {name: getattr(c, name) * 0 + value for name, value in REMOVED[term].items()}
        return right(case, dataclasses.replace(c, **changes))

    monkeypatch.setattr(transition, "steps", steps)
    drawn = CASES[term]()
    assert confirm(drawn, Reference(*transition.float64(drawn))).contradicted > 0

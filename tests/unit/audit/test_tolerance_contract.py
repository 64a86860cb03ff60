"""The number of the certifier is the number of the theorem: Coq and the claim's checker compute it too."""

import shutil
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest
import torch

from verify.audit.tolerance.worst_case.contract import (
    Roundoff,
    Token,
    error_after,
    output_error,
    state_errors,
)
from verify.checkers.rounded_recurrence import Contract
from verify.engines import coq_engine
from verify.model import coq_build
from verify.model.errors import RequestError
from verify.numbers.formats import BFLOAT16, FLOAT32

needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed")

ROUNDOFF = Roundoff(Fraction(1, 16), Fraction(1, 12), Fraction(1, 8), Fraction(1, 7), Fraction(1, 1024))
TOKENS = [
    Token(Fraction(9, 10), Fraction(5, 4), Fraction(2), Fraction(3), Fraction(7, 2)),
    Token(Fraction(1), Fraction(3, 5), Fraction(1, 2), Fraction(1, 3), Fraction(4)),
    Token(Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(0), Fraction(1)),
]
STATEMENTS = "Attnproof.derivations.kernel.statements"


def real(x: Fraction) -> str:
    return f"({x.numerator} / {x.denominator})"


def sequence(values: Sequence[Fraction]) -> str:
    cases = " ".join(f"| {i}%nat => {real(x)}" for i, x in enumerate(values))
    return f"(fun t => match t with {cases} | _ => 0 end)"


def agrees(tmp_path: Path, term: str, value: Fraction) -> bool:
    """Whether Coq proves that the term of the theorem is this number."""
    coq_engine.build([STATEMENTS])
    text = (
        f"Require Import Reals.\nRequire Import {STATEMENTS}.\nOpen Scope R_scope.\n"
        f"Goal {term} = {real(value)}.\nProof.\n"
        "cbv [error_bound fresh spread output_error error_after INR pow Nat.add]; field.\nQed.\n"
    )
    file = tmp_path / "number.v"
    file.write_text(text, encoding="utf-8")
    done = coq_build.run("coqc", "-q", "-Q", str(coq_build.folder()), "Attnproof", str(file), cwd=tmp_path)
    return done.returncode == 0


def spread_in_coq() -> str:
    return f"(spread {real(ROUNDOFF.operation)} {real(ROUNDOFF.decay)} {real(ROUNDOFF.state)} 2)"


ROOM = f"(INR 3 * (INR 2 * {real(ROUNDOFF.tiny)}))"


@needs_coq
def test_coq_computes_the_same_error_of_a_state(tmp_path: Path) -> None:
    start = Fraction(1, 100)
    parts = [
        sequence([token.decay for token in TOKENS]),
        sequence([max(Fraction(1), token.key) for token in TOKENS]),
        sequence([max(Fraction(1), token.strength) for token in TOKENS]),
        sequence([token.growth for token in TOKENS]),
        sequence([token.state for token in TOKENS]),
        sequence([token.value for token in TOKENS]),
    ]
    term = f"error_bound {spread_in_coq()} {ROOM} {' '.join(parts)} {real(start)} 2"
    found = state_errors(ROUNDOFF, 2, 3, TOKENS[:2], start, bits=None)[-1]
    assert agrees(tmp_path, term, found)
    assert not agrees(tmp_path, term, found + Fraction(1, 10**6))


@needs_coq
def test_coq_computes_the_same_error_of_an_output(tmp_path: Path) -> None:
    query, state, error = Fraction(3, 2), Fraction(5), Fraction(1, 10)
    u, stored = real(ROUNDOFF.operation), real(ROUNDOFF.output)
    term = f"output_error {u} {stored} {ROOM} 2 {real(query)} {real(state + error)} {real(error)}"
    assert agrees(tmp_path, term, output_error(ROUNDOFF, 2, 3, query, state, error))


@needs_coq
def test_coq_computes_the_same_bound_linear_in_the_tokens(tmp_path: Path) -> None:
    fine = Roundoff(Fraction(1, 4096), Fraction(1, 2048), Fraction(0), Fraction(0), ROUNDOFF.tiny)
    largest = Token(Fraction(1), Fraction(1), Fraction(2), Fraction(3), Fraction(7))
    spread = f"(spread {real(fine.operation)} {real(fine.decay)} {real(fine.state)} 2)"
    term = f"error_after {spread} {ROOM} 5 1 2 7 3"
    assert agrees(tmp_path, term, error_after(fine, 2, 3, 5, largest))


def test_the_checker_of_the_claim_computes_the_same_numbers() -> None:
    data = {"u": "1/16", "decay": "1/12", "state": "1/8", "output": "1/7", "tiny": "1/1024"}
    contract = Contract({**data, "depth": 2, "steps": 3}, 6)
    error, errors = Fraction(1, 100), state_errors(ROUNDOFF, 2, 3, TOKENS, Fraction(1, 100), bits=None)
    for token, expected in zip(TOKENS, errors[1:], strict=True):
        # The checker takes the key's squared length and bounds the root from above.
        error = contract.after(error, token.state, token.decay, token.key**2, token.strength, token.value)
        assert expected <= error <= expected * (1 + Fraction(1, 2**50))
        error = expected
        read = contract.read(Fraction(3, 2), token.state + error, error)
        assert read == output_error(ROUNDOFF, 2, 3, Fraction(3, 2), token.state, error)


def test_the_bound_linear_in_the_tokens_covers_the_recursion_and_ends_where_it_must() -> None:
    roundoff = Roundoff.nearest(FLOAT32)
    largest = Token(Fraction(1), Fraction(1), Fraction(2), Fraction(3), Fraction(7))
    errors = state_errors(roundoff, 64, 8, [largest] * 6)
    linear = error_after(roundoff, 64, 8, 6, largest)
    assert errors[6] < linear < errors[6] * Fraction(1001, 1000)
    with pytest.raises(RequestError, match="token by token"):
        error_after(Roundoff.nearest(BFLOAT16), 64, 8, 6, largest)
    with pytest.raises(RequestError, match="growth"):
        error_after(
            roundoff, 64, 8, 6, Token(Fraction(1), Fraction(2), Fraction(1), Fraction(1), Fraction(1))
        )
    with pytest.raises(RequestError, match="negative"):
        Token(Fraction(-1), Fraction(1), Fraction(1), Fraction(1), Fraction(1))


def test_rounding_up_keeps_the_bound() -> None:
    exact = state_errors(ROUNDOFF, 2, 3, TOKENS, bits=None)
    rounded = state_errors(ROUNDOFF, 2, 3, TOKENS, bits=12)
    assert exact[0] == rounded[0] == 0
    pairs = list(zip(exact, rounded, strict=True))[1:]
    assert all(low < high < low * Fraction(1002, 1000) for low, high in pairs)


def test_a_shallow_order_has_a_smaller_bound() -> None:
    in_turn, in_pairs = Roundoff.nearest(FLOAT32), Roundoff.nearest(FLOAT32, depth=8)
    assert Roundoff.nearest(FLOAT32, depth=128).spread(128) == in_turn.spread(128)
    ratio = in_turn.spread(128) / in_pairs.spread(128)
    assert Fraction(132, 14) < ratio < Fraction(134, 12)


def upper(x: torch.Tensor) -> Fraction:
    """An upper bound of a length that was computed in float64."""
    return Fraction(float(x)) * Fraction(2**40 + 1, 2**40)


@pytest.mark.parametrize("keys_alike", [False, True])
def test_our_recurrent_kernel_stays_within_it(keys_alike: bool) -> None:
    from kernels.kda.recurrent import recurrent_kda

    rng = torch.Generator().manual_seed(5)
    keys, values, steps = 16, 4, 24

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(1, steps, 1, *shape, generator=rng)

    q, k, v, start = drawn(keys), drawn(keys), drawn(values), torch.randn(1, 1, keys, values, generator=rng)
    k = k[:, :1] + 1e-3 * k if keys_alike else k
    k = k / (1.0001 * k.norm(dim=-1, keepdim=True))
    g, beta = -torch.rand(1, steps, 1, keys, generator=rng) / 8, 2 * torch.rand(1, steps, 1, generator=rng)
    # A float32 exponential errs by less than 2 units in the last place.
    roundoff = Roundoff.nearest(FLOAT32, decay_error=4 * FLOAT32.unit_roundoff)
    states, exact, tokens = start, start.double(), []
    for t in range(steps):
        one = [x[:, t : t + 1] for x in (q, k, v, g, beta)]
        wide = [x.double() for x in one]
        tokens.append(
            Token(
                decay=upper(wide[3].exp().max()),
                key=upper(wide[1].norm()),
                strength=upper(wide[4].max()),
                value=upper(wide[2].norm()),
                state=upper(exact.norm()),
            )
        )
        output, states = recurrent_kda(*one, scale=1.0, initial_state=states, output_final_state=True)
        wanted, exact = recurrent_kda(*wide, scale=1.0, initial_state=exact, output_final_state=True)
        bound = state_errors(roundoff, keys, values, tokens)[-1]
        assert 0 < float((states.double() - exact).norm()) < bound < 1e-3
        reading = output_error(roundoff, keys, values, upper(wide[0].norm()), upper(exact.norm()), bound)
        assert float((output.double() - wanted).norm()) < reading
    forgotten = recurrent_kda(q, k, v, 0 * g, beta, initial_state=start, output_final_state=True)[1]
    assert float((forgotten.double() - exact).norm()) > bound

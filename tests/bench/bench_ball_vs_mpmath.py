"""How much faster balls are than mpmath on the KDA recurrence: T = 64, K = V = 64, 128 bits, one head.

Reports no ratio unless the balls contain the exact result on a small size, and mpmath's 256-bit values on the
size measured. Run: ``python tests/bench/bench_ball_vs_mpmath.py`` from the repository root.
"""

import random
import time
from typing import Any

import flint
import mpmath

from derivations.kda import definition as kda
from verify.numbers.ball import Ball, contains
from verify.numbers.exact import Exact
from verify.numbers.multiprecision import Multiprecision, to_rational

BITS = 128


def recurrence(numbers: Any, tokens: int, width: int) -> tuple[float, Any, Any]:
    """(seconds, T×V outputs, final state K×V) of the KDA recurrence on fixed random inputs, K = V = width."""
    rng = random.Random(0)

    def columns(draw: Any) -> list[Any]:
        return [numbers.matrix([[draw()] for _ in range(width)]) for _ in range(tokens)]

    q, k, v = (columns(lambda: rng.gauss(0, 1) / width**0.5) for _ in range(3))
    alpha = columns(lambda: rng.uniform(0.5, 1))
    beta = [numbers.number(rng.random()) for _ in range(tokens)]
    state = numbers.matrix([[rng.gauss(0, 1) for _ in range(width)] for _ in range(width)])
    scale = numbers.number(width**-0.5)
    start = time.perf_counter()
    outputs, state = kda.recurrence(numbers, q, k, v, alpha, beta, scale=scale, state=state)
    return time.perf_counter() - start, numbers.stack_rows(outputs), state


def as_rationals(matrix: Any) -> flint.fmpq_mat:
    """An mpmath matrix, exactly."""
    return Exact().matrix([[to_rational(x) for x in row] for row in matrix.tolist()])


def check(balls: flint.arb_mat, precise: flint.fmpq_mat) -> int:
    """The fewest correct bits of any ball, after checking that each contains the precise value."""
    if not contains(balls, precise):
        raise SystemExit("red: a ball does not contain mpmath's value; no ratio is reported")
    return min(int(x.rel_accuracy_bits()) for x in balls.entries())


def main() -> None:
    """Check, time both once, print the ratio."""
    _, small_balls, small_state = recurrence(Ball(BITS), 4, 8)
    _, small_exact, small_exact_state = recurrence(Exact(), 4, 8)
    check(small_balls, small_exact)
    check(small_state, small_exact_state)
    ball_seconds, balls, ball_state = recurrence(Ball(BITS), 64, 64)
    mpmath_seconds, _, _ = recurrence(Multiprecision(BITS), 64, 64)
    _, precise, precise_state = recurrence(Multiprecision(2 * BITS), 64, 64)
    bits = min(check(balls, as_rationals(precise)), check(ball_state, as_rationals(precise_state)))
    print(f"balls contain mpmath's {2 * BITS}-bit values; at least {bits} correct bits in each")
    print(f"ball {ball_seconds:.3f} s, mpmath ({mpmath.libmp.BACKEND} integers) {mpmath_seconds:.3f} s")
    print(f"ratio {mpmath_seconds / ball_seconds:.1f}")


if __name__ == "__main__":
    main()

"""Null vectors of exact features: pivots modulo a prime, entries by one exact solve."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import gcd, lcm
from random import Random

from verify.model.errors import RequestError

PRIME_BITS = 62

Integers = Sequence[Sequence[int]]


def null_vector(features: Sequence[Sequence[Fraction]]) -> list[int]:
    """A z ≠ 0 with featuresᵀ z = 0, integers without a common divisor, for features T×m.

    The first token whose features depend on those of the tokens before it has z > 0; later tokens have
    z = 0.

    Raises:
        RequestError: the features of the tokens are independent, so that T ≤ m and there is no such z.
    """
    from flint import fmpz_mat

    conditions = [_integers(column) for column in zip(*features, strict=True)]
    tokens = range(len(features))
    for prime in primes():
        basis = pivots(conditions, prime)
        if len(basis) == len(tokens):
            raise RequestError(no_collision(len(tokens), len(conditions)))
        z = _combination(conditions, next(token for token in tokens if token not in basis), prime)
        # A combination modulo an unlucky prime need not be one over the integers.
        if not any((fmpz_mat(conditions) * fmpz_mat(len(z), 1, z)).entries()):
            return z
    raise AssertionError("there are infinitely many primes")


def no_collision(tokens: int, features: int) -> str:
    """Why T tokens with m independent features need not collide."""
    return (
        f"T = {tokens} tokens and m = {features} features: no collision is forced while T ≤ m; give at least"
        f" {features + 1} tokens"
    )


def pivots(rows: Integers, prime: int) -> list[int]:
    """The columns that depend on none before them, modulo a prime."""
    from flint import nmod_mat

    width = len(rows[0])
    reduced, rank = nmod_mat(len(rows), width, [x % prime for row in rows for x in row], prime).rref()
    found: list[int] = []
    for column in range(width):
        if len(found) < rank and int(reduced[len(found), column]) == 1:
            found.append(column)
    return found


def _combination(conditions: Integers, token: int, prime: int) -> list[int]:
    """The token's features from those of the tokens before it, which are independent."""
    from flint import fmpq_mat, fmpz_mat

    z = [0] * len(conditions[0])
    z[token] = 1
    if token:
        chosen = pivots([[row[t] for row in conditions] for t in range(token)], prime)
        square = fmpz_mat([list(conditions[row][:token]) for row in chosen])
        target = fmpz_mat(token, 1, [-conditions[row][token] for row in chosen])
        solved = fmpq_mat(square).solve(fmpq_mat(target))
        numerators, denominator = solved.numer_denom()
        z[:token] = [int(x) for x in numerators.entries()]
        z[token] = int(denominator)
    divisor = gcd(*z)
    return [x // divisor for x in z]


def _integers(column: Sequence[Fraction]) -> list[int]:
    """The column times its least common denominator, which changes no null vector."""
    scale = lcm(*(x.denominator for x in column))
    return [x.numerator * (scale // x.denominator) for x in column]


def primes() -> Iterator[int]:
    """Primes of ``PRIME_BITS`` bits, the same ones every time."""
    from flint import fmpz

    source = Random(PRIME_BITS)
    while True:
        candidate = source.getrandbits(PRIME_BITS) | 1 << (PRIME_BITS - 1) | 1
        if fmpz(candidate).is_prime():
            yield candidate

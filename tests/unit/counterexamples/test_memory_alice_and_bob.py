"""Alice and Bob: every bit comes back through exact attention, and small states confuse histories."""

import random
from fractions import Fraction

import pytest

from counterexamples.memory._alice_and_bob import Bob, address_keys, alice, confused, gain, spell
from verify.model.errors import RequestError


@pytest.mark.parametrize("n", [1, 2, 3, 5, 9])
def test_bob_recovers_every_bit(n):
    source = random.Random(n)
    bits = tuple(tuple(source.randint(0, 1) for _ in range(3)) for _ in range(n))
    bob = Bob(alice(bits), address_keys(n))
    assert tuple(bob.row(i) for i in range(n)) == bits


def test_a_text_comes_back():
    bits = spell("kv cache")
    bob = Bob(alice(bits), address_keys(len(bits)))
    assert "".join(chr(int("".join(map(str, bob.row(i))), 2)) for i in range(len(bits))) == "kv cache"


@pytest.mark.parametrize("n", range(1, 40))
def test_keys_are_orthogonal_and_the_gain_suffices(n):
    keys = address_keys(n)
    width = len(keys[0])
    assert [[sum(x * y for x, y in zip(a, b, strict=True)) for b in keys] for a in keys] == [
        [width * (i == j) for j in range(n)] for i in range(n)
    ]
    assert 2 ** (gain(n) * width) > n - 1


def test_bob_does_not_guess():
    bob = Bob(lambda _: [Fraction(1, 2)], address_keys(1))
    with pytest.raises(RequestError, match="one side of 1/2"):
        bob.row(0)


@pytest.mark.parametrize(
    "compress",
    [
        lambda bits: tuple(map(sum, zip(*bits, strict=True))),
        lambda bits: bits[0],
        lambda bits: min(int("".join(str(x) for row in bits for x in row), 2), 14),
    ],
)
def test_a_smaller_state_confuses_two_histories(compress):
    one, two, i, c = confused(compress, 2, 2)
    assert compress(one) == compress(two)
    rows = [Bob(alice(bits), address_keys(2)).row(i) for bits in (one, two)]
    assert rows[0][c] != rows[1][c]


def test_a_state_that_keeps_everything_confuses_nothing():
    with pytest.raises(RequestError, match="nothing is lost"):
        confused(lambda bits: bits, 2, 2)


def test_spelling_refuses_wide_characters():
    with pytest.raises(RequestError, match="eight bits"):
        spell("τ")

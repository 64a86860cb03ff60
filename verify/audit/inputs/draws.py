"""Keys, queries, gates, write strengths and sizes of values on which kernels differ, drawn at random."""

from collections.abc import Callable

import numpy as np

from verify.audit.case import RESET, Array, Shape
from verify.numbers.formats import FLOAT32

Draw = Callable[[np.random.Generator, Shape], Array]
"""Draws keys or queries [B, T, H, K], or write strengths [B, T, HV]."""
Gate = Callable[[np.random.Generator, tuple[int, ...]], Array]
"""Draws gates of a shape whose axes are [B, T, HV] or [B, T, HV, K]."""
Queries = Callable[[np.random.Generator, Shape, Array], Array]
"""Draws queries [B, T, H, K] beside keys of that shape."""
Sizes = Callable[[int], Array]
"""Sizes of the values of T tokens."""

_BLOCK = 16


def _unit(x: Array) -> Array:
    """Rows of length 1; a row of zeros stays."""
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    return np.asarray(np.divide(x, length, out=np.zeros_like(x), where=length > 0))


def gaussian_keys(rng: np.random.Generator, s: Shape) -> Array:
    """Independent directions."""
    return _unit(rng.standard_normal((s.B, s.T, s.H, s.K)))


def positive_keys(rng: np.random.Generator, s: Shape) -> Array:
    """Uniform entries in (0, 1), as flash-linear-attention's tests draw them: mean cosine 3/4."""
    return _unit(1 - rng.random((s.B, s.T, s.H, s.K)))


def constant_keys(rng: np.random.Generator, s: Shape) -> Array:
    """One key per sequence and head: a prompt that repeats one token."""
    return np.repeat(_unit(rng.standard_normal((s.B, 1, s.H, s.K))), s.T, axis=1)


def correlated_keys(rng: np.random.Generator, s: Shape) -> Array:
    """Pairwise cosine 0.8: a common direction and an orthogonal part of a fifth of the squared length."""
    common = _unit(rng.standard_normal((s.B, 1, s.H, s.K)))
    other = rng.standard_normal((s.B, s.T, s.H, s.K))
    other -= common * (common * other).sum(-1, keepdims=True)
    return np.asarray(np.sqrt(0.8) * common + np.sqrt(0.2) * _unit(other))


def rising_keys(rng: np.random.Generator, s: Shape) -> Array:
    """One direction, longer from token to token: every token is the largest logit so far."""
    return np.asarray(constant_keys(rng, s) * np.linspace(1, 16, s.T)[:, None, None])


def falling_keys(rng: np.random.Generator, s: Shape) -> Array:
    """The same the other way round: the first token is the largest."""
    return rising_keys(rng, s)[:, ::-1]


def offset_keys(rng: np.random.Generator, s: Shape) -> Array:
    """A large common part and a small own one: logits of size 100 that differ by about 1."""
    return np.asarray(100 * constant_keys(rng, s) + gaussian_keys(rng, s))


def near_keys(rng: np.random.Generator, s: Shape) -> Array:
    """One direction of length 100 and a small own part: logits of size 60 000 can still differ by about 1."""
    return np.asarray(100 * constant_keys(rng, s) + gaussian_keys(rng, s) / 512)


def own_queries(rng: np.random.Generator, s: Shape, keys: Array) -> Array:
    """Independent directions, whatever the keys."""
    return gaussian_keys(rng, s)


def long_queries(rng: np.random.Generator, s: Shape, keys: Array) -> Array:
    """Independent directions, for logits of up to 80."""
    return np.asarray(80 * s.K**0.5 * gaussian_keys(rng, s))


def queries_toward(length: float) -> Queries:
    """Toward the first key, besides an own part: for logits of ``length`` and 1 per unit of key."""

    def draw(rng: np.random.Generator, s: Shape, keys: Array) -> Array:
        return np.asarray(s.K**0.5 * (length * _unit(keys[:, :1]) + gaussian_keys(rng, s)))

    return draw


def no_gate(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """No decay."""
    return np.zeros(shape)


def slow_gate(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Decay over a thousand tokens."""
    return np.asarray(-2e-3 * rng.random(shape))


def mild_gate(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """The gates of flash-linear-attention's tests: log of a sigmoid, divided by 16."""
    return np.asarray(-np.logaddexp(0.0, rng.standard_normal(shape)) / 16)


def strong_gate(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """-5 everywhere, the usual lower bound: a chunk of 64 spans 320, past the range of float32."""
    return np.full(shape, -5.0)


def mixed_gate(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """0 or -5 at random: some channels remember all, others nothing."""
    return np.asarray(-5.0 * rng.integers(0, 2, shape))


def reset_gate(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Mild, but a full reset at one token in eight."""
    return np.where(rng.random(shape) < 1 / 8, RESET, mild_gate(rng, shape))


def infinite_gate(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Mild, but a decay of exactly 0, whose logarithm is -inf, at one token in eight."""
    return np.where(rng.random(shape) < 1 / 8, -np.inf, mild_gate(rng, shape))


def block_start_gate(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Mild, but -100 on the first row of every block of 16 after the first."""
    gates = mild_gate(rng, shape)
    gates[:, _BLOCK::_BLOCK] = -100.0
    return gates


def middle_reset_gate(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Mild, but a full reset at the middle token, in every channel."""
    gates = mild_gate(rng, shape)
    middle = shape[1] // 2
    gates[:, middle : middle + 1] = RESET
    return gates


def huge_gate(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """0 or between -1e8 and -2e8 at random: their float32 sums round by more than the range of exp."""
    return np.asarray(-1e8 * (1 + rng.random(shape)) * rng.integers(0, 2, shape))


def threshold_gate(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """One gate per sequence, head and channel, 1 % to one side of where a sum of them passes float32.

    e^x overflows float32 from x = 88.72 on. The sums are over 8 rows (a middle anchor in a block of 16), 15,
    16, 31, 32, 63 and 64 rows (the first row of a block, or the row before it).
    """
    limit = float(np.log(float(FLOAT32.max)))
    near = np.array([limit / rows * side for rows in (8, 15, 16, 31, 32, 63, 64) for side in (0.99, 1.01)])
    gates = -near[rng.integers(0, len(near), (shape[0], 1, *shape[2:]))]
    return np.broadcast_to(gates, shape).copy()


def uneven_gate(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """No decay in head 0, up to -10 in the last; in channels of the others, from 0 up to that of the head."""
    share = np.arange(shape[2]) / max(shape[2] - 1, 1)
    if len(shape) == 4:
        share = np.outer(share, (1 + np.arange(shape[3])) / shape[3])
    return np.broadcast_to(-10 * share, shape).copy()


def sigmoid_beta(rng: np.random.Generator, s: Shape) -> Array:
    """The sigmoid of a normal number, as layers compute it."""
    return np.asarray(1 / (1 + np.exp(-rng.standard_normal((s.B, s.T, s.HV)))))


def beta_above_one(rng: np.random.Generator, s: Shape) -> Array:
    """Between 1 and 2: negative eigenvalues."""
    return 1 + rng.random((s.B, s.T, s.HV))


def fixed_beta(value: float) -> Draw:
    """The same strength at every token."""

    def draw(rng: np.random.Generator, s: Shape) -> Array:
        return np.full((s.B, s.T, s.HV), value)

    return draw


def even_sizes(tokens: int) -> Array:
    """All alike."""
    return np.ones(tokens)


def fading_sizes(tokens: int) -> Array:
    """2^20 before the middle token, 1 from it on."""
    return np.where(np.arange(tokens) < tokens // 2, 2.0**20, 1.0)

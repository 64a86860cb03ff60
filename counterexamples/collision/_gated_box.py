"""From two histories that nearly share a state to two that certainly do.

Given K·V entries of the second history as unknowns, Newton's method solves for the state of the first, is
refined with residuals in balls, and Krawczyk's test shows that a box around its end holds a zero.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import arb, arb_mat
from numpy.typing import NDArray

from counterexamples.collision._gated_head import Head
from counterexamples.collision._gated_layer import Layer, Rows
from counterexamples.collision._gated_pair import Collision
from verify.model.errors import RequestError
from verify.numbers.ball import Ball
from verify.numbers.dual import Dual, Duals
from verify.numbers.float64 import Float64
from verify.numbers.protocol import M, NumberSystem, S

Array = NDArray[np.float64]
Place = tuple[int, int]
FloatHead = Head[Dual[Array], Dual[Array]]

STEPS = 40
"""Newton steps at most, of each kind."""
NUMBERS = Ball(256)
FLOATS = Float64()
GRID = 2**96
"""Unknowns are multiples of 1/GRID at the centre of their box."""
RADII = tuple(Fraction(1, 2**bits) for bits in (30, 40, 50, 60))
INVERSE_BITS = 32
FARTHEST = 10.0
"""A Newton step longer than this in some entry has left the neighbourhood it started from."""


class Stopped(Exception):
    """An attempt ended without a certified collision; the text says where."""


def derivative(
    base: NumberSystem[S, M],
    head: Head[Dual[S], Dual[M]],
    history: Sequence[Sequence[S]],
    unknown: Sequence[Place],
) -> tuple[M, list[M]]:
    """The state K×V after a history T×D, and its derivative (K×V each) in the entries at ``unknown``.

    The head is one over ``Duals(base)``.
    """
    tokens = [Dual(base.matrix([[x] for x in row])) for row in history]
    units = base.row_vectors(base.eye(len(history[0])))
    for n, (t, i) in enumerate(unknown):
        tokens[t] = Dual(tokens[t].value, {**tokens[t].slopes, n: units[i]})
    found = head.state(tokens)
    zero = base.zeros(*base.shape(found.value))
    return found.value, [found.slopes.get(n, zero) for n in range(len(unknown))]


def float_head(layer: Layer) -> FloatHead:
    """The head in floats with derivatives."""
    return Head(Duals(FLOATS), layer)


def in_floats(
    head: FloatHead, history: Sequence[Sequence[float]], unknown: Sequence[Place]
) -> tuple[Array, Array]:
    """The state, flat, and its derivative with one column for each unknown."""
    scalars = [[np.asarray(x, np.float64) for x in row] for row in history]
    state, slopes = derivative(FLOATS, head, scalars, unknown)
    flat = state.ravel()
    return flat, np.array([slope.ravel() for slope in slopes]).reshape(len(slopes), flat.size).T


class Box:
    """Two histories and the unknowns of the second, on the way to a certified collision."""

    def __init__(self, layer: Layer, first: Rows, second: Rows, unknown: Sequence[Place]) -> None:
        self.layer = layer
        self.first = first
        self.second = [list(row) for row in second]
        self.unknown = list(unknown)
        self._head = Head(Duals(NUMBERS), layer)
        self._goal, _ = derivative(NUMBERS, self._head, _balls(first), [])

    def collision(self, next_tokens: Sequence[list[Fraction]]) -> Collision:
        """The certified collision, with that of the next tokens which tells it apart best.

        Raises:
            Stopped: Newton's method, Krawczyk's test or the separation failed.
        """
        with np.errstate(all="ignore"):
            inverse = self._newton()
        self._refine(inverse)
        radius = self._certified(inverse)
        return self._separated(next_tokens, radius, inverse)

    def _newton(self) -> Rows:
        """Steps in floats; the inverse of the derivative where they end."""
        head = float_head(self.layer)
        goal, _ = in_floats(head, [[float(x) for x in row] for row in self.first], [])
        history = [[float(x) for x in row] for row in self.second]
        for _ in range(STEPS):
            state, slope = in_floats(head, history, self.unknown)
            try:
                inverse = np.asarray(np.linalg.inv(slope), np.float64)
            except np.linalg.LinAlgError:
                raise Stopped("met a singular derivative") from None
            step = inverse @ (goal - state)
            if not np.abs(step).max() < FARTHEST:
                raise Stopped("strayed when the other entries were rounded")
            for (t, i), move in zip(self.unknown, step, strict=True):
                history[t][i] += float(move)
            if np.abs(step).max() < 1e-12:
                break
        for t, i in self.unknown:
            self.second[t][i] = on_grid(history[t][i], GRID)
        return _rounded(inverse)

    def _step(self, inverse: Rows) -> arb_mat:
        """inverse · (state − wanted state) at the centre, n×1."""
        state, _ = derivative(NUMBERS, self._head, _balls(self.second), [])
        error = NUMBERS.sub(state, self._goal).entries()
        return NUMBERS.matmul(NUMBERS.matrix(inverse), NUMBERS.matrix([[x] for x in error]))

    def _refine(self, inverse: Rows) -> None:
        """Steps with residuals in balls and the inverse kept, until they are as short as the grid."""
        for _ in range(STEPS):
            step = self._step(inverse).entries()
            if not all(abs(x) < FARTHEST for x in step):
                break
            moves = [on_grid(_exact(x.mid()), GRID) for x in step]
            for (t, i), move in zip(self.unknown, moves, strict=True):
                self.second[t][i] -= move
            if max(map(abs, moves)) < Fraction(16, GRID):
                return
        raise Stopped("came near a zero where the derivative is almost singular")

    def _certified(self, inverse: Rows) -> Fraction:
        """The radius of the first box X with m − Y f(m) + (I − Y f′(X))(X − m) inside X."""
        step, weights = self._step(inverse), NUMBERS.matrix(inverse)
        for radius in RADII:
            limit = NUMBERS.number(radius)
            spread = NUMBERS.matrix([[arb(mid=0, rad=limit)]] * len(self.unknown))
            try:
                left = NUMBERS.sub(
                    NUMBERS.eye(len(self.unknown)), NUMBERS.matmul(weights, self._slope(radius))
                )
            except RequestError:
                continue  # Over so wide a box some root or quotient may not exist.
            image = NUMBERS.sub(NUMBERS.matmul(left, spread), step)
            if all(abs(x) < limit for x in image.entries()):
                return radius
        raise Stopped(f"found a zero, but no box down to radius {float(RADII[-1]):.0e} passed the test")

    def _slope(self, radius: Fraction) -> arb_mat:
        """The derivative over the box, one column for each unknown."""
        box = _balls(self.second, self.unknown, radius)
        _, slopes = derivative(NUMBERS, self._head, box, self.unknown)
        return NUMBERS.transpose(NUMBERS.matrix([item.entries() for item in slopes]))

    def _separated(self, next_tokens: Sequence[list[Fraction]], radius: Fraction, inverse: Rows) -> Collision:
        head = Head(NUMBERS, self.layer)
        sides = (_balls(self.first), _balls(self.second, self.unknown, radius))
        columns = [[NUMBERS.matrix([[x] for x in row]) for row in side] for side in sides]

        def apart(token: list[Fraction]) -> Fraction:
            after = NUMBERS.matrix([[x] for x in token])
            one, other = (head.softmax([*side, after]) for side in columns)
            return max(_exact(abs(x).lower()) for x in NUMBERS.sub(one, other).entries())

        best = max(next_tokens, key=apart)
        gap = apart(best)
        if gap <= 0:
            raise Stopped("found one state with softmax outputs too close to tell apart")
        return Collision(
            self.layer, self.first, self.second, self.unknown, radius, inverse, best, _two_digits(gap)
        )


def on_grid(value: float | Fraction, grid: int) -> Fraction:
    """The nearest multiple of 1/grid."""
    return Fraction(round(Fraction(value) * grid), grid)


def _balls(rows: Rows, unknown: Sequence[Place] = (), radius: Fraction = Fraction(0)) -> list[list[arb]]:
    balls = [[NUMBERS.number(x) for x in row] for row in rows]
    for t, i in unknown:
        balls[t][i] = arb(mid=balls[t][i], rad=NUMBERS.number(radius))
    return balls


def _rounded(inverse: Array) -> Rows:
    """Its entries as multiples of 2^−INVERSE_BITS, relative to the largest."""
    grid = Fraction(2) ** (INVERSE_BITS - int(np.frexp(np.abs(inverse).max())[1]))
    return [[Fraction(round(Fraction(float(x)) * grid)) / grid for x in row] for row in inverse]


def _exact(x: arb) -> Fraction:
    """A ball of radius 0."""
    mantissa, exponent = x.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _two_digits(value: Fraction) -> Fraction:
    """A positive number rounded down to two significant decimal digits."""
    scale = Fraction(1)
    while value * scale < 10:
        scale *= 10
    while value * scale >= 100:
        scale /= 10
    return Fraction(int(value * scale)) / scale

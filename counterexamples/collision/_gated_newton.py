"""Newton's search for a second history with the state of a first.

The state is a smooth map of all token entries, K·V numbers from many more. Some entries of the first token
are changed for good; then damped minimum-norm steps over the other entries lead the state back. K·V of them,
chosen so that the derivative is far from singular, become the unknowns of a square system; the others are
rounded.
"""

import math
import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from counterexamples.collision._gated_box import (
    GRID,
    STEPS,
    Array,
    Box,
    FloatHead,
    Place,
    Stopped,
    float_head,
    in_floats,
    on_grid,
)
from counterexamples.collision._gated_layer import Layer, Rows, rank
from counterexamples.collision._gated_pair import Collision
from verify.model.errors import RequestError, SearchEnded

HALVINGS = 12
"""Times a step that does not help is halved."""
NEAR = 1e-10
"""Relative distance from the wanted state at which the steps over all entries may stop."""
CLOSE = 1e-6
"""Relative distance from which Newton's method in the unknowns alone takes over."""
ROUNDED = 2**10
"""Entries that are not unknowns become multiples of 1/ROUNDED."""
NEXT_TOKENS = 8
"""Next tokens tried for the widest separation."""


def search(layer: Layer, tokens: int, seed: int, starts: int) -> Collision:
    """A collision of two histories of so many tokens.

    Args:
        layer: the head.
        tokens: T of both histories.
        seed: of the random histories.
        starts: how many to try.

    Raises:
        RequestError: so few tokens force no collision.
        SearchEnded: no start led to a certified collision; says how far each got.
    """
    forced(layer, tokens)
    ends: Counter[str] = Counter()
    for start in range(starts):
        rng = random.Random(f"{seed}/{start}")
        first, second, free = _start(layer, tokens, rng)
        try:
            unknown = _descend(layer, first, second, free)
            after = [_token(layer, rng) for _ in range(NEXT_TOKENS)]
            return Box(layer, first, second, unknown).collision(after)
        except Stopped as end:
            ends[str(end)] += 1
    raise SearchEnded(
        f"no collision certified from {starts} random starts (seed {seed}), at most {STEPS} Newton steps"
        f" each; they {', '.join(f'{end} ({count})' for end, count in ends.most_common())};"
        " try more --starts, another --seed or more --tokens"
    )


def plenty(layer: Layer) -> int:
    """Tokens enough for twice the numbers of the state, and for twice the tokens that full rank takes."""
    keys, values, _ = layer.sizes
    return max(2 * min(keys, values), -(-2 * keys * values // _told(layer)))


def _told(layer: Layer) -> int:
    """How many independent numbers of a token the state depends on."""
    return rank([*layer.w_k, *layer.w_v, *layer.w_beta, *layer.w_gate])


def forced(layer: Layer, tokens: int) -> None:
    """Refuse sizes for which counting numbers forces no collision.

    A token acts on the state through k, v, β and α alone, so its numbers count only as far as these
    projections tell them apart. Each token adds a matrix of rank one, and decay and erase raise no rank.

    Raises:
        RequestError: says how many tokens are needed.
    """
    keys, values, _ = layer.sizes
    size = keys * values
    told = _told(layer)
    if tokens < 1 or tokens * told <= size:
        raise RequestError(
            f"{tokens} tokens of {told} numbers each are {max(tokens, 0) * told}, not more than the {size} of"
            f" the state: no collision is forced; give at least {size // told + 1} tokens"
        )
    if tokens < min(keys, values):
        raise RequestError(
            f"{tokens} tokens give {keys}×{values} states of rank at most {tokens}, where the derivative is"
            f" singular; give at least {min(keys, values)} tokens"
        )


def _token(layer: Layer, rng: random.Random) -> list[Fraction]:
    """Standard normal entries, as multiples of 1/8."""
    _, _, width = layer.sizes
    return [on_grid(rng.gauss(0, 1), 8) for _ in range(width)]


def _start(layer: Layer, tokens: int, rng: random.Random) -> tuple[Rows, Rows, list[Place]]:
    """A history, another with some entries of its first token changed, and entries free to be searched."""
    keys, values, width = layer.sizes
    first = [_token(layer, rng) for _ in range(tokens)]
    changed = min(width, tokens * width - keys * values)
    second = [[*_token(layer, rng)[:changed], *first[0][changed:]], *(list(row) for row in first[1:])]
    places = [(t, i) for t in range(tokens) for i in range(width)][changed:]
    # Beyond a few times the unknowns, more entries cost time and help no further.
    return first, second, sorted(rng.sample(places, min(len(places), 4 * keys * values)))


def _descend(layer: Layer, first: Rows, second: Rows, free: list[Place]) -> list[Place]:
    """Damped minimum-norm steps over the free entries, written into ``second``; the unknowns chosen there.

    Raises:
        Stopped: the wanted state was not reached.
    """
    with np.errstate(all="ignore"):
        head = float_head(layer)
        goal, _ = in_floats(head, [[float(x) for x in row] for row in first], [])
        history = [[float(x) for x in row] for row in second]
        size = float(np.abs(goal).max())
        for _ in range(STEPS):
            state, slope = in_floats(head, history, free)
            if not (np.isfinite(state).all() and np.isfinite(slope).all()):
                raise Stopped("left the range of floating point")
            if np.abs(goal - state).max() <= NEAR * size:
                break
            step = np.asarray(np.linalg.lstsq(slope, goal - state, rcond=1e-12)[0], np.float64)
            shorter = _shortened(head, history, free, step, goal)
            if shorter is None:
                break
            history = shorter
        distance = float(np.abs(goal - state).max()) / size
    if not distance <= CLOSE:
        decade = 10.0 ** math.floor(math.log10(distance)) if math.isfinite(distance) else math.nan
        raise Stopped(f"stalled at a relative distance over {decade:.0e} from the wanted state")
    unknown = sorted(free[j] for j in _pivots(slope))
    for t, i in free:
        second[t][i] = on_grid(history[t][i], GRID if (t, i) in unknown else ROUNDED)
    return unknown


def _shortened(
    head: FloatHead, history: list[list[float]], free: list[Place], step: Array, goal: Array
) -> list[list[float]] | None:
    """The history after the step, halved until it comes nearer to the wanted state; ``None`` if never."""
    state, _ = in_floats(head, history, [])
    before = float(np.linalg.norm(goal - state))
    for halving in range(HALVINGS):
        trial = [list(row) for row in history]
        for (t, i), move in zip(free, step / 2**halving, strict=True):
            trial[t][i] += float(move)
        state, _ = in_floats(head, trial, [])
        if np.linalg.norm(goal - state) < before:
            return trial
    return None


def _pivots(slope: Array) -> Iterator[int]:
    """As many columns as rows, one after the other, each the furthest from the span of those before it."""
    rest = slope.copy()
    for _ in range(len(slope)):
        lengths = np.linalg.norm(rest, axis=0)
        best = int(lengths.argmax())
        if not lengths[best] > 0:
            raise Stopped("met a singular derivative")
        yield best
        direction = rest[:, best] / lengths[best]
        rest -= np.outer(direction, direction @ rest)
        rest[:, best] = 0

"""Inputs on which attention is exact: every weight is 0 or one over a power of two.

Token j has a colour c_j and the key L e_(c_j); a query is L' e_c for a colour that 1, 2, 4, ... of the
tokens up to its own have. Then scale q^T k_j is 1024 for those and 0 for the others, and e^-1024 is
0 in every format. So with or without a maximum subtracted, tile by tile or at once, every weight before the
division is 0 or a power of two shared by all, every sum is one of few small integers times it, and the
division by their number is exact. A kernel that lets one token too many or too few in shows it in every bit.

Colour 0 is that of token 0 alone, so that every query has a colour to ask for; once it has left a window,
whose length is a power of two, who asks for it sees all its tokens alike. The weight of a sink is 0 beside
such logits. For linear attention with its normaliser keys and queries have length 1, and products are the
scale or 0.
"""

import numpy as np
from numpy.typing import NDArray

from verify.audit.case import Array, Case, Shape
from verify.audit.mechanism import named
from verify.model.errors import RequestError
from verify.numbers.formats import format_named

_LOGIT = 1024.0
# e^-800 < 10^-347, below every format; a gate converted to another space and back may miss -1000 by a little.
VANISHES = -800.0


def draw_counted_case(mechanism: str, shape: Shape, *, dtype: str, seed: int) -> Case:
    """A case on which correct attention is exact, for K a power of four."""
    s, kind = shape, named(mechanism)
    rng = np.random.default_rng(seed)
    colours = rng.integers(1, max(s.K, 2), (s.B, s.T, s.H)) % s.K
    colours[:, :1] = 0
    if s.K > 1:
        colours[:, 1:] = np.maximum(colours[:, 1:], 1)
    heads = {name: s.H if name in kind.shared else s.HV for name in ("q", "v")}
    group = heads["q"] // s.H
    wanted = np.concatenate([_countable(rng, colours, s.K, kind.window) for _ in range(group)], axis=2)
    wanted = wanted.reshape(s.B, s.T, group, s.H).swapaxes(2, 3).reshape(s.B, s.T, heads["q"])
    logit = _LOGIT * s.K**0.5 if kind.weights == "softmax" else 1.0
    length = 2.0 ** np.ceil(np.log2(logit) / 2)
    largest = int(min(7, 2 ** (format_named(dtype).precision - 8)))
    return Case(
        mechanism=mechanism,
        name="integer",
        seed=seed,
        dtype=dtype,
        q=_one_hot(wanted, s.K) * (logit / length),
        k=_one_hot(colours, s.K) * length,
        v=rng.integers(-largest, largest + 1, (s.B, s.T, heads["v"], s.V)).astype(np.float64),
        g=None,
        beta=None,
        initial_state=None,
        scale=s.K**-0.5,
    )


def _one_hot(colours: NDArray[np.int64], channels: int) -> Array:
    return np.asarray(np.eye(channels)[colours])


def _countable(
    rng: np.random.Generator, colours: NDArray[np.int64], channels: int, window: int | None
) -> NDArray[np.int64]:
    """Per token a colour, drawn among those that a power of two of the tokens it sees have."""
    counts = np.cumsum(_one_hot(colours, channels), axis=1)
    if window is not None:
        counts[:, window:] -= counts[:, :-window].copy()
    return np.asarray((rng.random(counts.shape) * _is_power_of_two(counts)).argmax(-1))


def _is_power_of_two(counts: Array) -> Array:
    return np.asarray((counts > 0) & (np.frexp(counts)[0] == 0.5))


def attended(case: Case) -> Array:
    """Which tokens have a weight above 0, ``[B, HV, T, T]``, and that they all have the same.

    Raises:
        RequestError: a logit is neither the row's largest nor far below it, or a product neither that nor 0.
    """
    k, q = case.spread("k"), case.spread("q") * case.scale
    with np.errstate(invalid="ignore"):
        logits = np.einsum("bthk,bjhk->bhtj", q, k)
        logits = np.where(case.visible, logits, -np.inf)
        largest = logits.max(axis=-1, keepdims=True, initial=-np.inf)
        below = logits - largest
    if case.kind.weights == "linear":
        seen = np.isfinite(logits) & (logits != 0)
        if (largest <= 0).any() or (seen & (below != 0)).any():
            raise RequestError(f"case {case.name!r} has weights of several sizes, so it is not exact")
        return np.asarray(seen)
    if ((below != 0) & (below > VANISHES)).any():
        raise RequestError(f"case {case.name!r} has weights between 0 and 1, so it is not exact")
    return np.asarray(below == 0)


def is_counted_case(case: Case) -> bool:
    """Whether a case keeps the conditions of this module, whatever its name."""
    single = all((np.count_nonzero(x, axis=-1) <= 1).all() for x in (case.q, case.k))
    if not (single and (case.v == np.rint(case.v)).all() and case.scale > 0):
        return False
    vectors = (case.q,) if case.kind.weights == "softmax" else (case.q, case.k)
    powers = all(np.isin(np.abs(np.frexp(x)[0]), (0.0, 0.5)).all() for x in vectors)
    if np.frexp(case.scale)[0] != 0.5 or not powers:
        return False
    try:
        members = attended(case)
    except RequestError:
        return False
    return bool(_is_power_of_two(members.sum(-1).astype(np.float64)).all())

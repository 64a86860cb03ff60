"""A case cut into chunks, its decays and scores enclosed, and how far a kernel's may lie from them."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.reference.recurrence import SMALLEST, U
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.worst_case.enclosed import UP, Enclosed
from verify.numbers.formats import format_named

EXP_ULPS = 4
"""Units of u by which an exponential may err, beside 2 |g| u for one that is formed as 2^(g log2 e)."""


@dataclass(frozen=True)
class Rounding:
    """What a kernel's operations err by.

    Args:
        log: at least |ln(1 + d)| for one rounding d.
        tiny: absolute error of one operation beside that, where it underflows.
        rows: C, tokens per chunk.
        gate_sums: of `Algorithm`; "" without gates.
        vanished: -ln of the smallest normal number.
        factors: at least |ln| of what rounding both factors of a matrix product to another format does.
        step: likewise of one step of a tensor core that adds up products; 0 where each addition rounds.
        width: products a step.
    """

    log: float
    tiny: float
    rows: int
    gate_sums: str
    vanished: float
    factors: float = 0.0
    step: float = 0.0
    width: int = 1

    def after(self, roundings: "Array | float") -> Array:
        """Relative error of a product of that many factors 1 + d, and of a sum with as many in each term."""
        with np.errstate(over="ignore"):
            return np.asarray(np.expm1(np.asarray(roundings) * self.log) * UP)

    def loss(
        self,
        *terms: "Array | int",
        others: "Array | float" = 0.0,
        among: int | None = None,
        products: int = 1,
    ) -> Array:
        """At least |ln| of what matrix products do to one of their terms.

        In any order a sum of n terms rounds each at most n times, its product included. A tensor core takes
        steps instead, in which a sum errs by at most so many times `step` of the sizes of its terms
        (`TensorCore.one`, claim kernel.tensor-core-sum), and stores the result.

        Args:
            terms: of sums that are added, one after another.
            others: further roundings.
            among: how many products the kernel forms, those that are 0 included, where the terms need not be
                next to each other: a step of zeros alone is exact.
            products: how many products a term passes through, each of short factors.
        """
        count: Array | float = 0.0
        for n in terms:
            count = count + (n if not self.step else np.minimum(n, -(-(among or n) // self.width)))
        own = count * (self.step or self.log) + products * self.factors
        stored = products if self.step else 0
        return np.asarray((own + (others + stored) * self.log) * UP)

    def summed(self, *terms: "Array | int", **options: Any) -> Array:
        """Relative error of the sum of one entry's terms in matrix products; arguments of `loss`."""
        with np.errstate(over="ignore"):
            return np.asarray(np.expm1(self.loss(*terms, **options)) * UP)

    def chained(self, terms: int, others: "Array | float" = 0.0) -> Array:
        """Likewise of what the products are added to, which is no factor of them."""
        return self.summed(terms, others=others + (1 if self.step else 0), products=0)

    def parted(self, terms: int, parts: int) -> int:
        """Terms in so many parts, each of which may end with a step that is not full."""
        return terms + parts * self.width if self.step else terms

    def exponent(self, passed: Array, terms: Array, before: Array) -> Array:
        """At least |ln| of a computed decay over the exact one, in units of ``log``.

        Args:
            passed: sum of |g| over the gates between.
            terms: how many they are.
            before: sums of |g| from the chunk's start to both ends, added.

        Sums of gates: in any order, each rounded at most (terms - 1) times, and multiplied by log2 e; then at
        most 1 + log2 C exponentials of parts of the sum are multiplied. Running sums: each rounded at most C
        times, subtracted, or put into two exponentials, relative to any sum in between.

        Where the exact and the computed decay both underflow, `tiny` covers their distance, and what is
        returned need not grow further.
        """
        if not self.gate_sums:
            return np.zeros(np.broadcast_shapes(passed.shape, terms.shape))
        factors = 1 + math.ceil(math.log2(self.rows)) if self.rows > 1 else 1
        own = max(2 * EXP_ULPS + 3, (EXP_ULPS + 1) * factors)
        # From here on the exponents, wrong by less than half and by `own`, are beyond `vanished`.
        deep = 2 * (self.vanished + own * self.log) if (self.rows + 5) * self.log < 0.5 else np.inf
        if self.gate_sums != "segment":
            before = np.where(before <= passed, np.minimum(before, deep), before)
            return np.asarray(((self.rows + 5) * before + own) * UP)
        return np.asarray(((terms + 1) * np.minimum(passed, deep) + own) * UP)


def rows_of(case: Case, algorithm: Algorithm) -> int:
    """C: tokens per chunk, where there are that many."""
    return min(algorithm.chunk_size or 1, max(case.shape.T, 1))


def rounding_of(case: Case, algorithm: Algorithm, largest: float) -> Rounding:
    """Of one kernel on one case: ``largest`` bounds, from 1 on, the sizes of inputs, states and reads."""
    compute = format_named(algorithm.model_dtype)
    u = float(compute.unit_roundoff)
    # An operand or the result may become 0; the other operand is at most twice a product of two of those.
    # Short factors keep their subnormals: they err by half of the smallest.
    short = algorithm.factors
    lowest = 0.0 if short is None else float(short.min_normal * short.unit_roundoff)
    tiny = 4 * max(float(compute.min_normal), lowest) * (1 + 4 * largest**2)
    gate_sums = "" if case.g is None else algorithm.gate_sums
    vanished = -math.log(float(compute.min_normal)) * UP
    return Rounding(
        u / (1 - u) * UP, tiny, rows_of(case, algorithm), gate_sums, vanished, *products(algorithm)
    )


def products(algorithm: Algorithm) -> tuple[float, float, int]:
    """`factors`, `step` and `width` of `Rounding`."""
    factors, log = algorithm.factors, 0.0
    if factors is not None:
        v = float(factors.unit_roundoff)
        log = 2 * v / (1 - v) * UP
    if algorithm.accumulate == "nearest":
        return log, 0.0, 1
    from verify.audit.tolerance.tensor_core import core_named

    core = core_named(algorithm.accumulate, factors)
    assert core is not None
    return log, float(core.one) * UP, core.width


@dataclass(frozen=True, eq=False)
class Chunk:
    """The tokens of one chunk ``[B, HV, C, ...]``: q is scaled, ``gates`` are the sizes of the log decays,
    ``alpha`` the decays with their error, of one channel or of K."""

    q: Array
    k: Array
    beta: Array
    gates: Array
    alpha: Array
    alpha_error: Array


@dataclass(frozen=True, eq=False)
class Scores:
    """What a chunk computes from keys, queries and gates alone, and what its computed counterpart errs by.

    ``kk`` (strictly lower, columns times beta) and ``qk`` (lower) ``[..., C, C]``; ``start`` and ``end`` the
    decays from the chunk's start into and from each row to its end ``[..., C, X]``, ``total`` ``[..., X]``
    over the chunk, an upper bound. The ``_error`` of the scores is absolute; ``_log`` counts roundings as
    `Rounding.after` takes them.
    """

    kk: Enclosed
    kk_error: Array
    qk: Enclosed
    qk_error: Array
    start: Enclosed
    start_log: Array
    end: Enclosed
    end_log: Array
    total: Array
    total_log: Array


def scores(chunk: Chunk, rounding: Rounding) -> Scores:
    """Row by row: the decays out of all earlier rows into row i are those into row i - 1 times alpha_i."""
    q, k, c = chunk.q, chunk.k, chunk.k.shape[-2]
    shape = (*k.shape[:-1], c)
    kk, qk = (Enclosed(np.zeros(shape), np.zeros(shape)) for _ in range(2))
    kk_error, qk_error = np.zeros(shape), np.zeros(shape)
    since = chunk.gates.cumsum(-2)
    nowhere = rounding.exponent(np.zeros(1), np.zeros(1), np.zeros(1))
    decay, error, passed = np.ones_like(chunk.alpha), np.zeros_like(chunk.alpha), np.zeros_like(chunk.gates)
    start, start_error = np.empty_like(chunk.alpha), np.empty_like(chunk.alpha)
    into, into_error = np.ones_like(chunk.alpha[..., 0, :]), np.zeros_like(chunk.alpha[..., 0, :])
    for i in range(c):
        alpha, missed = chunk.alpha[..., i, :], chunk.alpha_error[..., i, :]
        into, into_error = _multiplied(into, into_error, alpha, missed)
        start[..., i, :], start_error[..., i, :] = into, into_error
        if i:
            earlier = np.s_[..., :i, :]
            decay[earlier], error[earlier] = _multiplied(
                decay[earlier], error[earlier], alpha[..., None, :], missed[..., None, :]
            )
            passed[earlier] += chunk.gates[..., i, None, :]
        seen = np.s_[..., : i + 1, :]
        terms = np.arange(i, -1, -1.0)[:, None]
        logs = rounding.exponent(passed[seen], terms, since[..., i, None, :] + since[seen])
        logs[..., i, :] = nowhere
        upper = decay[seen] + error[seen]
        for x, held, off in ((k, kk, kk_error), (q, qk, qk_error)):
            terms_i = x[..., i, None, :] * k[seen]
            sizes = np.abs(terms_i) * upper * UP
            held.mid[..., i, : i + 1] = (terms_i * decay[seen]).sum(-1)
            lost = sizes * (k.shape[-1] + 3) * U + np.abs(terms_i) * error[seen] + SMALLEST
            held.rad[..., i, : i + 1] = lost.sum(-1) * UP
            # The scale, beta, two decays and the product, and the sum in any order.
            computed = rounding.summed(k.shape[-1], others=logs + 6) * sizes + 8 * rounding.tiny
            off[..., i, : i + 1] = computed.sum(-1) * UP
    into_rows, whole = Enclosed(start, start_error), since[..., -1:, :]
    places = np.arange(c, dtype=float)[:, None]
    end_log = rounding.exponent(passed, c - 1 - places, since + whole)
    end_log[..., -1, :] = nowhere
    below = np.tri(c, k=-1)
    strictly = Enclosed(kk.mid * below, kk.rad * below).columns(chunk.beta)
    return Scores(
        kk=Enclosed(strictly.mid, strictly.rad * below),
        kk_error=kk_error * below * np.abs(chunk.beta)[..., None, :] * UP,
        qk=qk,
        qk_error=qk_error,
        start=into_rows,
        start_log=rounding.exponent(since, places + 1, since),
        end=Enclosed(decay, error),
        end_log=end_log,
        total=into_rows.upper[..., -1, :],
        total_log=rounding.exponent(whole[..., 0, :], np.asarray(float(c)), whole[..., 0, :]),
    )


def _multiplied(x: Array, error: Array, y: Array, y_error: Array) -> tuple[Array, Array]:
    """Two numbers of [0, 1] with errors, and their product with its."""
    z = x * y
    return z, (x * y_error + error * (y + y_error) + U * z + SMALLEST) * UP

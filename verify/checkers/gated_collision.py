"""Two token histories with one GDN or KDA state: Krawczyk's test on the recurrence itself, in intervals.

Data: ``layer`` with ``mechanism`` (``"gdn"`` or ``"kda"``), ``w_q``, ``w_k`` (K×D), ``w_v`` (V×D), ``w_beta``
(1×D), ``w_gate`` (1×D or K×D), ``A_log``, ``dt_bias`` and ``eps``; histories ``first`` and ``second`` (T×D);
``unknown``, K·V places [token, coordinate] of the second, where it holds the centre m of a box X of the given
``radius``; ``inverse``, any rational matrix Y, best an approximate inverse of the derivative; ``next_token``
(D) and ``gap`` > 0. With f the state of the second history minus that of the first: if m − Y f(m) +
(I − Y f′(X))(X − m) lies inside X, then f has exactly one zero in X (Krawczyk 1969, Moore 1977). There both
states are equal, while softmax attention of the next token over each history and itself differs by more than
``gap`` in some coordinate, at any point of X.

    q = n(w_q x), k = n(w_k x), n(y) = y/√(Σy² + eps); v = w_v x; β = σ(w_beta·x)
    ln α = −e^A_log · ln(1 + e^(w_gate x + dt_bias)); S ← Diag(α)S; S ← S + β k(v − Sᵀk)ᵀ
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from verify.checkers.dyadic import ONE, Dyadic, exp, inner, sqrt
from verify.checkers.jets import Jet, certain, decay, dot, normed, strength
from verify.checkers.reading import Matrix, Wrong, matrix, natural, vector, word
from verify.checkers.terms import rational
from verify.model.evidence import Check, Obligation

NAME = "gated collision checker"
KINDS = frozenset({"gated-collision"})

Place = tuple[int, int]
Token = list[Jet]


def judge(obligation: Obligation) -> Check:
    """``proved`` when the box certainly holds a collision and the softmax outputs are certainly apart."""
    return word(NAME, obligation, _collision)


class _Head:
    """The layer, its numbers enclosed."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        if data["mechanism"] not in ("gdn", "kda"):
            raise Wrong(f"{data['mechanism']!r} is neither gdn nor kda")
        rows = {name: matrix(data[name]) for name in ("w_q", "w_k", "w_v", "w_beta", "w_gate")}
        self.keys, self.width = len(rows["w_k"]), len(rows["w_k"][0])
        self.values = len(rows["w_v"])
        gates = 1 if data["mechanism"] == "gdn" else self.keys
        bias, eps = vector(data["dt_bias"]), rational(data["eps"])
        heights = [len(rows[name]) for name in ("w_q", "w_beta", "w_gate")]
        if heights != [self.keys, 1, gates] or len(bias) != gates:
            raise Wrong("the weights do not fit together")
        if {len(row[0]) for row in rows.values()} != {self.width} or eps < 0:
            raise Wrong("the weights differ in width, or eps is negative")
        self._rows = {name: [list(map(Dyadic.of, row)) for row in rows[name]] for name in rows}
        self._bias, self._eps = [Dyadic.of(x) for x in bias], Dyadic.of(eps)
        self._rate = exp(Dyadic.of(rational(data["A_log"])))

    def project(self, name: str, x: Token) -> list[Jet]:
        """w x."""
        return [dot(row, x) for row in self._rows[name]]

    def normed(self, name: str, x: Token) -> list[Jet]:
        """n(w x)."""
        return normed(self.project(name, x), self._eps)

    def state(self, history: Sequence[Token]) -> list[Jet]:
        """The state from zero, row by row."""
        state = [[certain(Dyadic(0, 0))] * self.values for _ in range(self.keys)]
        for x in history:
            gates = zip(self.project("w_gate", x), self._bias, strict=True)
            alphas = [decay(y, bias, self._rate) for y, bias in gates]
            alphas = alphas * self.keys if len(alphas) == 1 else alphas
            state = [[alpha.times(s) for s in row] for alpha, row in zip(alphas, state, strict=True)]
            k, v, (b,) = self.normed("w_k", x), self.project("w_v", x), self.project("w_beta", x)
            write = [strength(b).times(k_i) for k_i in k]
            for j, error in enumerate(v):
                for k_i, row in zip(k, state, strict=True):
                    error = error.minus(k_i.times(row[j]))
                for weight, row in zip(write, state, strict=True):
                    row[j] = row[j].plus(weight.times(error))
        return [s for row in state for s in row]

    def softmax(self, history: Sequence[Token]) -> list[Dyadic]:
        """Softmax attention of the last token over all of them, with scale K^−½."""
        q = [x.value for x in self.normed("w_q", history[-1])]
        scale = sqrt(Dyadic.of(self.keys)).inverse()
        weights = []
        for x in history:
            k = [y.value for y in self.normed("w_k", x)]
            weights.append(exp(scale.times(inner(zip(q, k, strict=True)))))
        total = Dyadic(sum(w.low for w in weights), sum(w.high for w in weights)).inverse()
        columns = zip(*([y.value for y in self.project("w_v", x)] for x in history), strict=True)
        return [total.times(inner(zip(weights, column, strict=True))) for column in columns]


def _collision(data: Mapping[str, Any]) -> str:
    head = _Head(data["layer"])
    first, second, inverse = matrix(data["first"]), matrix(data["second"]), matrix(data["inverse"])
    after, radius, gap = vector(data["next_token"]), rational(data["radius"]), rational(data["gap"])
    places = [(natural(t), natural(i)) for t, i in data["unknown"]]
    size = head.keys * head.values
    if len(places) != size or len(set(places)) != size or {len(inverse), len(inverse[0])} != {size}:
        raise Wrong(f"a state of {size} numbers asks for as many different unknowns, and a square inverse")
    if len(first) != len(second) or {len(first[0]), len(second[0]), len(after)} != {head.width}:
        raise Wrong("the histories and the next token do not fit each other or the weights")
    if radius <= 0 or gap <= 0:
        raise Wrong("the radius and the gap must be positive")
    goal = head.state(_points(first))
    missed = [x.minus(y).value for x, y in zip(head.state(_points(second)), goal, strict=True)]
    box = _box(second, places, radius)
    slopes = [x.slopes for x in head.state(box)]
    _inside(missed, slopes, [list(map(Dyadic.of, row)) for row in inverse], radius)
    (next_token,) = _points([after])
    reads = [head.softmax([*history, next_token]) for history in (_points(first), box)]
    apart = [one.minus(other) for one, other in zip(*reads, strict=True)]
    j = max(range(len(apart)), key=lambda i: max(apart[i].low, -apart[i].high))
    least = Fraction(max(apart[j].low, -apart[j].high), ONE)
    if least <= gap:
        raise Wrong(f"the softmax outputs differ by {apart[j]}, not certainly more than {gap}")
    return (
        f"{size} equations for the state have exactly one zero in a box of radius {float(radius):.3g}; there"
        f" coordinate {j + 1} of the softmax outputs differs by a number in {apart[j]}"
    )


def _points(history: Matrix) -> list[Token]:
    return [[certain(Dyadic.of(x)) for x in row] for row in history]


def _box(history: Matrix, places: Sequence[Place], radius: Fraction) -> list[Token]:
    """The history with an interval and a derivative at every unknown."""
    box = _points(history)
    for n, (t, i) in enumerate(places):
        middle = history[t][i]
        box[t][i] = Jet(Dyadic.of(middle - radius, middle + radius), {n: Dyadic(ONE, ONE)})
    return box


def _inside(
    missed: list[Dyadic], slopes: list[Mapping[int, Dyadic]], inverse: list[list[Dyadic]], radius: Fraction
) -> None:
    """Demand |−Y f(m) + (I − Y f′(X))[−r, r]| < r in every unknown."""
    zero, spread = Dyadic(0, 0), Dyadic.of(-radius, radius)
    columns = [[slope.get(j, zero) for slope in slopes] for j in range(len(missed))]
    for i, row in enumerate(inverse):
        image = zero.minus(inner(zip(row, missed, strict=True)))
        for j, column in enumerate(columns):
            factor = Dyadic.of(int(i == j)).minus(inner(zip(row, column, strict=True)))
            image = image.plus(factor.times(spread))
        if not -radius < Fraction(image.low, ONE) <= Fraction(image.high, ONE) < radius:
            raise Wrong(f"unknown {i + 1} is sent to {image} around its centre, outside ±{float(radius):.3g}")

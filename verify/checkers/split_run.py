"""The delta recurrence run whole and in pieces that pass their state on, exactly or in rounded arithmetic.

Data: ``state``, V columns of K numbers; ``steps``, each with ``a``, ``k``, ``beta``, ``v``, ``q``; ``runs``,
each with ``cuts`` (numbers of steps, rising, after which a new piece begins) and the stated ``outputs`` (T×V)
and ``final`` state; ``compute`` and ``passed``, each ``{"precision", "min_exponent"}`` or null: every
operation rounds to the first, a state that is passed on to the second. Rounding is to nearest, ties to even.

Shown: the stated results are those of the pieces, and those of the whole run; where ``differs`` is true, they
are those of the pieces and not all those of the whole run.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from verify.checkers.reading import Matrix, Vector, Wrong, flag, matrix, natural, same, vector, word
from verify.checkers.terms import IllFormed, rational
from verify.model.evidence import Check, Obligation

NAME = "split runs"
KINDS = frozenset({"split-run"})
Round = Callable[[Fraction], Fraction]


def judge(obligation: Obligation) -> Check:
    """``proved`` when the pieces give what the whole run gives (where so stated: something else)."""
    return word(NAME, obligation, _compared)


def _compared(data: Mapping[str, Any]) -> str:
    state, steps = matrix(data["state"]), [_Step(item) for item in data["steps"]]
    if not data["runs"] or any(not step.fits(state) for step in steps):
        raise IllFormed("there is no run in pieces, or a step does not fit the state")
    rounded, passed = _rounding(data["compute"]), _rounding(data["passed"])
    whole = _run(state, steps, rounded)
    for run in data["runs"]:
        cuts = [natural(cut) for cut in run["cuts"]]
        if not cuts or sorted(set(cuts)) != cuts or cuts[-1] > len(steps):
            raise IllFormed(f"{cuts} are not rising numbers of at most {len(steps)} steps")
        stated = matrix(run["outputs"]), matrix(run["final"])
        outputs: Matrix = []
        piece = state
        for start, end in zip([0, *cuts], [*cuts, len(steps)], strict=True):
            more, piece = _run(piece, steps[start:end], rounded)
            outputs += more
            piece = [[passed(x) for x in column] for column in piece] if end in cuts else piece
        for what, replayed, given in zip(("outputs", "final state"), (outputs, piece), stated, strict=True):
            same(f"the {what} in pieces, cut after {cuts},", replayed, given)
        if (stated == whole) is flag(data.get("differs", False)):
            raise Wrong(
                f"cut after {cuts}, the results are {'' if stated == whole else 'not '}those of the whole run"
            )
    return f"{len(steps)} steps, {len(data['runs'])} ways to cut them"


class _Step:
    def __init__(self, data: Mapping[str, Any]) -> None:
        self.a, self.k, self.v, self.q = (vector(data[name]) for name in ("a", "k", "v", "q"))
        self.beta = rational(data["beta"])

    def fits(self, state: Matrix) -> bool:
        width = len(state[0])
        return {len(self.a), len(self.k), len(self.q)} == {width} and len(self.v) == len(state)


def _run(state: Matrix, steps: Sequence[_Step], rounded: Round) -> tuple[Matrix, Matrix]:
    outputs = []
    for step in steps:
        columns = zip(state, step.v, strict=True)
        state = [_column(column, step, value, rounded) for column, value in columns]
        outputs.append([_dot(step.q, column, rounded) for column in state])
    return outputs, state


def _column(column: Vector, step: _Step, value: Fraction, rounded: Round) -> Vector:
    decayed = [rounded(a * x) for a, x in zip(step.a, column, strict=True)]
    write = rounded(step.beta * rounded(value - _dot(step.k, decayed, rounded)))
    return [rounded(x + rounded(k * write)) for x, k in zip(decayed, step.k, strict=True)]


def _dot(left: Vector, right: Vector, rounded: Round) -> Fraction:
    total = Fraction(0)
    for x, y in zip(left, right, strict=True):
        total = rounded(total + rounded(x * y))
    return total


def _rounding(data: Mapping[str, Any] | None) -> Round:
    if data is None:
        return lambda x: x
    precision, lowest = natural(data["precision"]), int(data["min_exponent"])

    def rounded(x: Fraction) -> Fraction:
        exponent = abs(x.numerator).bit_length() - x.denominator.bit_length()
        exponent -= abs(x) < Fraction(2) ** exponent
        quantum = Fraction(2) ** (max(exponent, lowest) - precision + 1)
        return round(x / quantum) * quantum

    return rounded

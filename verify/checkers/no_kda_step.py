"""Reasons why a matrix M is no KDA step (I − R)Diag(α), R = βkkᵀ, each a few entries and one comparison.

Off the diagonal M_ij = −R_ijα_j, on it M_jj = (1 − R_jj)α_j. Three channels i, j, l force α_j: where
M_il ≠ 0, R_ijR_jl = R_ilR_jj gives R_jjα_j = −M_ijM_jl/M_il and α_j = M_jj + R_jjα_j.

Data: ``matrix``; ``bounded``, whether α in [0, 1], ‖k‖ = 1 and β in [0, 2] are demanded; ``rule`` and the
places ``at`` (from 0) that it compares, as each rule below says. The rules of ``BOUNDED`` need the bounds.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from verify.checkers.reading import Matrix, Wrong, flag, matrix, natural, word
from verify.checkers.terms import IllFormed
from verify.model.evidence import Check, Obligation

NAME = "entry checker"
KINDS = frozenset({"no-kda-step"})
BOUNDED = frozenset({"opposite-signs", "decay-range", "erase-sign", "long-column", "pair-cap", "pair-sum"})

At = Mapping[str, Any]


def judge(obligation: Obligation) -> Check:
    """``proved`` when the entries at the stated places rule every step out."""
    return word(NAME, obligation, _impossible)


def _impossible(data: Mapping[str, Any]) -> str:
    rows, bounded, rule = matrix(data["matrix"]), flag(data["bounded"]), data["rule"]
    if len(rows[0]) != len(rows):
        raise IllFormed("the matrix is not square")
    if rule not in RULES or (rule in BOUNDED and not bounded):
        raise IllFormed(f"{rule!r} is no rule here")
    RULES[rule](rows, data["at"], bounded)
    return f"the entries named by the rule «{rule}» contradict each other"


def _zero_entry(rows: Matrix, at: At, bounded: bool) -> None:
    """k_p ≠ 0 ≠ k_q (``row_key``, ``column_key``) and M_pq = 0 make column q vanish; M_rq does not."""
    p, q = _places(rows, at["entry"])
    _key(rows, p, at["row_key"], bounded)
    _key(rows, q, at["column_key"], bounded)
    if rows[p][q]:
        raise Wrong(f"entry ({p + 1}, {q + 1}) is not 0")
    if not rows[_place(rows, at["nonzero"])][q]:
        raise Wrong(f"the entry of column {q + 1} that should not be 0 is")


def _key(rows: Matrix, channel: int, place: object, bounded: bool) -> None:
    """k is not 0 there: an entry off the diagonal in its row or column is not, or M_cc < 0 (so R_cc > 1)."""
    a, b = _any_places(rows, place)
    if a == b == channel and bounded and rows[a][a] < 0:
        return
    if a == b or channel not in (a, b) or not rows[a][b]:
        raise Wrong(f"entry ({a + 1}, {b + 1}) does not show that k is not 0 in channel {channel + 1}")


def _two_decays(rows: Matrix, at: At, _: bool) -> None:
    first, second = (_forced(rows, at[name]) for name in ("first", "second"))
    if at["first"][1] != at["second"][1] or first[0] == second[0]:
        raise Wrong(f"the decays are {first[0]} and {second[0]}, no contradiction")


def _mirror(rows: Matrix, at: At, _: bool) -> None:
    """M_ijα_i = −R_ijα_iα_j = M_jiα_j."""
    i, j = _places(rows, [at["first"][1], at["second"][1]])
    if rows[i][j] * _forced(rows, at["first"])[0] == rows[j][i] * _forced(rows, at["second"])[0]:
        raise Wrong("the mirrored entries agree")


def _dead_decay(rows: Matrix, at: At, _: bool) -> None:
    if _forced(rows, at["triple"])[0] or not rows[_place(rows, at["nonzero"])][at["triple"][1]]:
        raise Wrong("the decay is not forced to be 0, or its column is 0 there")


def _opposite_signs(rows: Matrix, at: At, _: bool) -> None:
    """M_ijM_ji = R_ij²α_iα_j."""
    i, j = _places(rows, at["pair"])
    if rows[i][j] * rows[j][i] >= 0:
        raise Wrong("the mirrored entries do not differ in sign")


def _decay_range(rows: Matrix, at: At, _: bool) -> None:
    if 0 <= _forced(rows, at["triple"])[0] <= 1:
        raise Wrong("the forced decay is in [0, 1]")


def _erase_sign(rows: Matrix, at: At, _: bool) -> None:
    if _forced(rows, at["triple"])[1] >= 0:
        raise Wrong("R_jjα_j is not below 0")


def _long_column(rows: Matrix, at: At, _: bool) -> None:
    """‖Me_j‖ = α_j‖(I − R)e_j‖ ≤ α_j."""
    decay, j = _forced(rows, at["triple"])[0], at["triple"][1]
    if sum(row[j] ** 2 for row in rows) <= decay**2:
        raise Wrong(f"column {j + 1} is not longer than its decay {decay}")


def _pair_cap(rows: Matrix, at: At, _: bool) -> None:
    """(α_j − a)(α_j − b) = M_ij² with both factors at least 0 and α_j at most c, so c must reach M_ij²."""
    square, a, b, cap = _pair(rows, at)
    if cap >= a and cap >= b and (cap - a) * (cap - b) >= square:
        raise Wrong("the two channels leave room for their decays")


def _pair_sum(rows: Matrix, at: At, _: bool) -> None:
    """R_ii + R_jj = 2 − (a + b)/α_j, at most the trace β."""
    a, b = _pair(rows, at)[1:3]
    if a + b >= 0:
        raise Wrong("the two channels leave room for a strength of at most 2")


def _pair(rows: Matrix, at: At) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """M_ij², a = M_jj, b = M_ii/r and the largest α_j, min(1, 1/r), where α_i = rα_j, r = M_ji/M_ij > 0."""
    i, j = _places(rows, at["pair"])
    if rows[i][j] * rows[j][i] <= 0:
        raise Wrong("the mirrored entries do not fix the ratio of their decays")
    ratio = rows[j][i] / rows[i][j]
    return rows[i][j] ** 2, rows[j][j], rows[i][i] / ratio, min(Fraction(1), 1 / ratio)


def _forced(rows: Matrix, triple: Any) -> tuple[Fraction, Fraction]:
    """α_j and R_jjα_j from the channels (i, j, l)."""
    i, j, l = (_place(rows, item) for item in triple)  # noqa: E741
    if len({i, j, l}) != 3 or not rows[i][l]:
        raise Wrong(f"channels {i + 1}, {j + 1}, {l + 1} force no decay")
    erased = -rows[i][j] * rows[j][l] / rows[i][l]
    return rows[j][j] + erased, erased


def _places(rows: Matrix, pair: Any) -> tuple[int, int]:
    first, second = _any_places(rows, pair)
    if first == second:
        raise Wrong("two different channels are needed")
    return first, second


def _any_places(rows: Matrix, pair: Any) -> tuple[int, int]:
    first, second = (_place(rows, item) for item in pair)
    return first, second


def _place(rows: Matrix, value: object) -> int:
    place = natural(value)
    if place >= len(rows):
        raise IllFormed(f"there is no channel {place + 1}")
    return place


RULES: dict[str, Callable[[Matrix, At, bool], None]] = {
    "zero-entry": _zero_entry,
    "two-decays": _two_decays,
    "mirror": _mirror,
    "dead-decay": _dead_decay,
    "opposite-signs": _opposite_signs,
    "decay-range": _decay_range,
    "erase-sign": _erase_sign,
    "long-column": _long_column,
    "pair-cap": _pair_cap,
    "pair-sum": _pair_sum,
}

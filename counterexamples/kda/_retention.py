"""What a user's decays leave of earlier tokens: ceilings, and shares when keys are given."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from counterexamples.kda._kept import TINY, Head, Matrix, checked
from counterexamples.kda._kept import rows as bounds
from verify.model.claim import Assumption, Claim, Mutant, Status, Variable
from verify.model.errors import RequestError
from verify.model.evidence import Obligation, Part

ROWS = 32
"""Most tokens that a certificate names."""
VISIBLE = Fraction(1, 10**9)
"""A change of a decay that shows in these digits."""


def claim(name: str, head: Head, token: int | None = None) -> Claim:
    """The claim ``request.NAME``: what is left of each token, or of one, after the last.

    Args:
        name: of the request.
        head: gates, strengths and keys.
        token: the one that is asked for, from 1; all when ``None`` (of long histories, some).

    Raises:
        RequestError: the head is malformed, or there is no such token.
    """
    tokens = len(checked(head).gates)
    if token is not None and not 1 <= token <= tokens:
        raise RequestError(f"there is no token {token}; the history has {tokens}")
    wanted = [token] if token else _spread(tokens)
    rows = bounds(head, set(wanted))
    item = _obligation(head, rows)
    return Claim(
        id=f"request.{name}",
        title=f"What the decays of {tokens} tokens leave of "
        + (f"token {token}" if token else "each of them"),
        statement="For the gates, strengths and keys of the request: the bounds below hold what each token"
        " named has left after the last one.",
        source="request",
        status=Status.NEW,
        scope="these gates; every key, query and value"
        + ("; shares for the given keys" if head.keys else ""),
        variables=(
            Variable("j", f"a token, 1 to {tokens}"),
            Variable(r"\alpha_i", "decays of token i" + (", e^g of the given g" if head.logarithms else "")),
            Variable(r"\beta_j", "strength of token j"),
        ),
        assumptions=(
            Assumption("keys of length 1 (given ones are directions), β in [0, 2], α in [0, 1]"),
            Assumption("a share is k_j·w, what reading token j's own key returns of v_j; length is ‖w‖²"),
        ),
        asked="B" if head.logarithms else "E",
        parts=lambda: (Part(_sentence(tokens, rows), (item,)),),
        mutants=_mutants(head, rows),
    )


def _sentence(tokens: int, rows: Sequence[dict[str, Any]]) -> str:
    told = rows if len(rows) <= 6 else [*rows[:3], *rows[-3:]]
    return (
        f"After token {tokens} the part of the state that token j wrote has at most the length"
        f" Π_{{i>j}} max α_i · β_j (times ‖v_j‖), in channel c alone Π_{{i>j}} α_ic, and no query reads more"
        f" than its own length times that (claim kda.ceiling): {'; '.join(map(_told, told))}."
    )


def _spread(tokens: int) -> list[int]:
    """All tokens, or the first, the last and others at equal distances."""
    if tokens <= ROWS:
        return list(range(1, tokens + 1))
    return sorted({1 + place * (tokens - 1) // (ROWS - 1) for place in range(ROWS)})


def _obligation(head: Head, rows: Sequence[dict[str, Any]]) -> Obligation:
    data = {
        "gates": _text(head.gates),
        "logarithms": head.logarithms,
        "betas": [str(x) for x in head.betas],
        "keys": None if head.keys is None else _text(head.keys),
        "exact": head.exact,
        "rows": list(rows),
    }
    label = "what is left, recomputed from the last token back"
    return Obligation("retention", label, "B" if head.logarithms else "E", data)


def _text(rows: Matrix) -> list[list[str]]:
    return [[str(x) for x in row] for row in rows]


def _told(row: dict[str, Any]) -> str:
    said = f"token {row['token']} at most {_shown(row['ceiling'][1])}"
    return f"{said}, its share is {_shown(row['share'][1])}" if "share" in row else said


def _shown(text: str) -> str:
    value = Fraction(text)
    return text if len(text) <= 12 else f"{float(value):.4g}"


def table(made: Claim) -> str:
    """The rows of the claim as a table to read: ceiling, channels from least to most, own-key share."""
    (part,) = made.parts()
    rows = part.obligations[0].data["rows"]
    shares = "share" in rows[0]
    lines = [
        f"{'token':>7} {'at most':>12} {'channels':>25}"
        + (f" {'share':>12} {'length':>12}" if shares else "")
    ]
    for row in rows:
        ends = sorted(Fraction(high) for _, high in row["channels"])
        channels = f"{float(ends[0]):.4g} … {float(ends[-1]):.4g}"
        line = f"{row['token']:>7} {_shown(row['ceiling'][1]):>12} {channels:>25}"
        if shares:
            line += f" {_shown(row['share'][1]):>12} {float(Fraction(row['length'][1])) ** 0.5:>12.4g}"
        lines.append(line)
    return "\n".join(lines)


def _mutants(head: Head, rows: Sequence[dict[str, Any]]) -> tuple[Mutant, ...]:
    """Bounds moved off their values, and a decay forgotten where that shows."""

    def planted(other: Head, changed: Sequence[dict[str, Any]]) -> Callable[[], tuple[Obligation, ...]]:
        return lambda: (_obligation(other, changed),)

    def moved(name: str, by: int) -> list[dict[str, Any]]:
        first, *others = rows
        return [{**first, name: [str(Fraction(x) + by) for x in first[name]]}, *others]

    names = ("ceiling", "share", "length") if "share" in rows[0] else ("ceiling",)
    made = [
        Mutant(
            f"{name} {word}",
            f"the {name} of token {rows[0]['token']} moved by {by}",
            planted(head, moved(name, by)),
        )
        for name in names
        for by, word in ((1, "raised"), (-1, "lowered"))
    ]
    forgotten = _forgettable(head, rows)
    if forgotten is not None:
        whole = [Fraction(int(not head.logarithms))] * len(head.gates[0])
        other = replace(head, gates=[*head.gates[:forgotten], whole, *head.gates[forgotten + 1 :]])
        told = f"no decay at token {forgotten + 1}"
        made.append(Mutant("a decay forgotten", told, planted(other, rows)))
    return tuple(made)


def _forgettable(head: Head, rows: Sequence[dict[str, Any]]) -> int | None:
    """The last token (from 0) whose decay certainly shows in the digits of some row."""
    most = -VISIBLE if head.logarithms else 1 - VISIBLE
    for place in reversed(range(1, len(head.gates))):
        for row in rows:
            ends = zip(row["channels"], head.gates[place], strict=True)
            if row["token"] <= place and any(
                Fraction(low) > TINY and gate <= most for (low, _), gate in ends
            ):
                return place
    return None

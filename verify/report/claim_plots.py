"""Figures of claims, drawn from the formulas and witnesses in their certificates; most claims have none."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from verify.report import terms
from verify.report.plots import FIRST, INK, SECOND, Plot, draw

POINTS = 201


def figures(certificate: dict[str, Any]) -> list[Plot]:
    """The figures of a claim: those made for its id, and those made for a kind of evidence it has."""
    plots = BY_CLAIM[certificate["id"]](certificate) if certificate["id"] in BY_CLAIM else []
    for place, (kind, data) in enumerate(_evidence(certificate)):
        if kind in BY_KIND:
            plots.extend(BY_KIND[kind](data, f"{kind}-{place}"))
    return plots


def _evidence(certificate: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for part in certificate["parts"]:
        for item in part["evidence"]:
            if item["verdict"] != "refuted":
                yield item["kind"], item["data"]


def _grid(low: float, high: float) -> list[float]:
    return [low + (high - low) * place / (POINTS - 1) for place in range(POINTS)]


def _formula(certificate: dict[str, Any], names: set[str]) -> list[Any] | None:
    """The right side of the first derived equation that needs no other names than these, and all of them."""
    for kind, data in _evidence(certificate):
        if kind == "derivation" and _names(data["goal"]["rhs"]) == names:
            found: list[Any] = data["goal"]["rhs"]
            return found
    return None


def _names(term: list[Any]) -> set[str]:
    head, *rest = term
    if head in ("v", "at"):
        return {rest[0]}
    return set().union(*(_names(item) for item in rest if terms.is_term(item)))


def _witnesses(certificate: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Replays of two writes whose values are the two unit vectors: the output holds the two coefficients."""
    for kind, data in _evidence(certificate):
        if kind == "delta-read" and [write["value"] for write in data["writes"]] == [["1", "0"], ["0", "1"]]:
            yield data


def _overwrite(certificate: dict[str, Any]) -> list[Plot]:
    read = _formula(certificate, {"rho", "v1", "v2"})
    if read is None:
        return []
    overlaps = _grid(0.0, 1.0)
    first = [terms.value(read, {"rho": rho, "v1": 1.0, "v2": 0.0}) for rho in overlaps]
    second = [terms.value(read, {"rho": rho, "v1": 0.0, "v2": 1.0}) for rho in overlaps]
    points = [
        (_overlap(data["writes"]), [_float(item) for item in data["output"]])
        for data in _witnesses(certificate)
    ]

    def paint(axes: Any) -> None:
        axes.plot(overlaps, first, color=FIRST, label="share of $v_1$ (written first, and asked for)")
        axes.plot(overlaps, second, color=SECOND, linestyle="--", label="share of $v_2$ (interference)")
        for rho, output in points:
            axes.plot([rho, rho], output, "o", color=INK, label="_exact witness")
        axes.set_xlabel(r"overlap of the keys, $\rho = k_1 \cdot k_2$")
        axes.set_ylabel("coefficient of the read")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0))

    shown = "".join(f" Dots: the exact witness at ρ = {rho:.4g}." for rho, _ in points[:1])
    alt = f"At overlap 1 the first value has the share {first[-1]:.3g} and the second {second[-1]:.3g}."
    caption = f"Reading the first key after two writes of strength 1, by the derived formula.{shown}"
    return [draw("overwrite", caption, alt, paint, (6.4, 3.6))]


def _overlap(writes: list[dict[str, Any]]) -> float:
    one, other = writes[0]["key"], writes[1]["key"]
    return math.fsum(_float(x) * _float(y) for x, y in zip(one, other, strict=True))


def _order(certificate: dict[str, Any]) -> list[Plot]:
    gap = _formula(certificate, {"beta", "v1", "v2"})
    if gap is None:
        return []
    strengths = _grid(0.0, 1.0)
    gaps = [terms.value(gap, {"beta": beta, "v1": 0.0, "v2": 1.0}) for beta in strengths]

    def paint(axes: Any) -> None:
        axes.plot(strengths, gaps, color=FIRST)
        axes.set_xlabel(r"write strength $\beta$")
        axes.set_ylabel(r"difference / $(v_2 - v_1)$")

    caption = "How far the two orders of writing under one key end up apart, from the derived formula."
    alt = f"The difference grows from {gaps[0]:.3g} at strength 0 to {gaps[-1]:.3g} at strength 1."
    return [draw("order", caption, alt, paint)]


def _collision(data: dict[str, Any], name: str) -> list[Plot]:
    """Softmax outputs of two histories with one state, over multiples of the witness query."""
    query = [_float(item) for item in data["query"]]
    if not any(query):
        return []
    multiples = _grid(-3.0, 3.0)
    curves = [
        [_softmax_read(data[side], query, scale) for scale in multiples] for side in ("first", "second")
    ]
    witness = [_softmax_read(data[side], query, 1.0) for side in ("first", "second")]
    apart = [abs(one - other) for one, other in zip(*witness, strict=True)]
    place = apart.index(max(apart))

    def paint(axes: Any) -> None:
        for curve, point, colour, line, label in zip(
            curves, witness, (FIRST, SECOND), ("-", "--"), ("first history", "second history"), strict=True
        ):
            axes.plot(multiples, [output[place] for output in curve], line, color=colour, label=label)
            axes.plot([1.0], [point[place]], "o", color=colour)
        axes.set_xlabel("multiple of the witness query")
        axes.set_ylabel(f"output, coordinate {place + 1}")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2)

    caption = (
        "Two histories with one state: a reader of the state answers both alike, softmax does not."
        " Dots: the witness."
    )
    alt = f"At the witness query the softmax outputs are {apart[place]:.3g} apart."
    return [draw(name, caption, alt, paint, (6.4, 3.4))]


def _softmax_read(history: dict[str, Any], query: list[float], scale: float) -> list[float]:
    keys = [[_float(item) for item in key] for key in history["keys"]]
    scores = [scale * math.fsum(q * k for q, k in zip(query, key, strict=True)) for key in keys]
    weights = [math.exp(score - max(scores)) for score in scores]
    columns = zip(*([_float(item) for item in row] for row in history["values"]), strict=True)
    return [
        math.fsum(w * v for w, v in zip(weights, column, strict=True)) / math.fsum(weights)
        for column in columns
    ]


def _float(value: Any) -> float:
    return float(Fraction(value))


BY_CLAIM: dict[str, Callable[[dict[str, Any]], list[Plot]]] = {
    "delta.overwrite": _overwrite,
    "delta.order": _order,
}
BY_KIND: dict[str, Callable[[dict[str, Any], str], list[Plot]]] = {
    "state-collision": _collision,
}

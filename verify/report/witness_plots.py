"""Figures of witnesses: colliding histories, overwritten values, centred data, distances from low rank."""

import math
from collections.abc import Iterator
from typing import Any

from verify.report import terms
from verify.report.figure_data import evidence, goals, grid, number
from verify.report.plots import ABOVE, FAINT, FIRST, INK, SECOND, Plot, draw, plain_log_labels


def overwrite(certificate: dict[str, Any]) -> list[Plot]:
    """Shares of the old and the new value over the overlap of their keys."""
    read = next((goal["rhs"] for goal in goals(certificate, {"rho", "v1", "v2"})), None)
    if read is None:
        return []
    overlaps = grid(0.0, 1.0)
    first = [terms.value(read, {"rho": rho, "v1": 1.0, "v2": 0.0}) for rho in overlaps]
    second = [terms.value(read, {"rho": rho, "v1": 0.0, "v2": 1.0}) for rho in overlaps]
    points = [
        (_overlap(data["writes"]), [number(item) for item in data["output"]])
        for data in _two_writes(certificate)
    ]

    def paint(axes: Any) -> None:
        axes.plot(overlaps, first, color=FIRST, label="share of $v_1$ (written first, and asked for)")
        axes.plot(overlaps, second, color=SECOND, linestyle="--", label="share of $v_2$ (interference)")
        for rho, output in points:
            axes.plot([rho, rho], output, "o", color=INK, label="_exact witness")
        axes.set_xlabel(r"overlap of the keys, $\rho = k_1 \cdot k_2$")
        axes.set_ylabel("coefficient of the read")
        axes.legend(**ABOVE)

    shown = "".join(f" Dots: the exact witness at ρ = {rho:.4g}." for rho, _ in points[:1])
    alt = f"At overlap 1 the first value has the share {first[-1]:.3g} and the second {second[-1]:.3g}."
    caption = f"Reading the first key after two writes of strength 1, by the derived formula.{shown}"
    return [draw("overwrite", caption, alt, paint, (6.4, 3.6))]


def _two_writes(certificate: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Replays of two writes whose values are the two unit vectors: the output holds the two coefficients."""
    for item in evidence(certificate):
        data = item["data"]
        if item["kind"] == "delta-read" and [write["value"] for write in data["writes"]] == [
            ["1", "0"],
            ["0", "1"],
        ]:
            yield data


def _overlap(writes: list[dict[str, Any]]) -> float:
    return _dot(numbers(writes[0]["key"]), numbers(writes[1]["key"]))


def collision(data: dict[str, Any], name: str) -> list[Plot]:
    """Softmax outputs of two histories with one state, over multiples of the witness query.

    Where that is 0, over the first coordinate of queries along the first axis.
    """
    query = numbers(data["query"])
    direction = query if any(query) else [1.0, *(0.0 for _ in query[1:])]
    place_of_witness = 1.0 if any(query) else 0.0
    multiples = grid(-3.0, 3.0)
    sides = [
        ([numbers(key) for key in data[side]["keys"]], [numbers(row) for row in data[side]["values"]])
        for side in ("first", "second")
    ]
    curves = [[softmax_read(*side, [scale * x for x in direction]) for scale in multiples] for side in sides]
    witness = [softmax_read(*side, query) for side in sides]
    apart = [abs(one - other) for one, other in zip(*witness, strict=True)]
    place = apart.index(max(apart))

    def paint(axes: Any) -> None:
        for curve, point, colour, line, label in zip(
            curves, witness, (FIRST, SECOND), ("-", "--"), ("first history", "second history"), strict=True
        ):
            axes.plot(multiples, [output[place] for output in curve], line, color=colour, label=label)
            axes.plot([place_of_witness], [point[place]], "o", color=colour)
        axes.set_xlabel("multiple of the witness query" if any(query) else "query")
        axes.set_ylabel(f"output, coordinate {place + 1}")
        axes.legend(**ABOVE, ncols=2)

    caption = (
        "Two histories with one state: a reader of the state answers both alike, softmax does not."
        " Dots: the witness."
    )
    alt = f"At the witness query the softmax outputs are {apart[place]:.3g} apart."
    return [draw(name, caption, alt, paint, (6.4, 3.4))]


def outputs(data: dict[str, Any], name: str) -> list[Plot]:
    """The replayed output of a history with scalar values, token by token, beside softmax and the hull."""
    if "outputs" not in data or len(data["values"][0]) != 1:
        return []
    keys, values = ([numbers(row) for row in data[field]] for field in ("keys", "values"))
    query, read = numbers(data["query"]), [number(row[0]) for row in data["outputs"]]
    tokens = range(1, len(read) + 1)
    softmax = [softmax_read(keys[:last], values[:last], query)[0] for last in tokens]
    hull = [min(row[0] for row in values), max(row[0] for row in values)]
    worst = max(tokens, key=lambda token: abs(read[token - 1]))

    def paint(axes: Any) -> None:
        axes.axhspan(*hull, color=FAINT, linewidth=0, alpha=0.6, label="hull of the values")
        axes.plot(tokens, read, color=SECOND, marker=".", label="replayed output")
        axes.plot(tokens, softmax, color=FIRST, linestyle="--", label="softmax")
        axes.set_yscale("symlog", linthresh=1.0)
        plain_log_labels(axes.yaxis)
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("token")
        axes.set_ylabel("output (linear within ±1)")
        axes.legend(**ABOVE, ncols=3)

    caption = (
        "Output of the delta rule on centred data after every token, from the exact replay; softmax in"
        " floating point from the same keys, values and query."
    )
    largest, there = read[worst - 1], softmax[worst - 1]
    alt = f"The replayed output is largest at token {worst}: {largest:.3g}, where softmax gives {there:.3g}."
    return [draw(name, caption, alt, paint, (6.4, 3.6))]


def ranks(certificate: dict[str, Any]) -> list[Plot]:
    """How far the softmax matrix certainly is from every matrix of a rank, for the ranks that were checked.

    A bound on ``‖A⁻¹‖²`` of a block with ``m + 1`` rows is one on the distance from rank ``m``.
    """
    blocks = [item["data"] for item in evidence(certificate) if item["kind"] == "inverse-norm"]
    points = sorted((len(data["rows"]) - 1, number(data["below"]) ** -0.5) for data in blocks)
    if not points:
        return []
    spectrum = _spectrum(blocks[0]) if "queries" in blocks[0] else []

    def paint(axes: Any) -> None:
        if spectrum:
            label = "singular value $m+1$, the exact distance"
            axes.plot(range(len(spectrum)), spectrum, "x", color=SECOND, label=label)
        axes.plot(*zip(*points, strict=True), "o", color=FIRST, label="certified floor")
        axes.set_yscale("log")
        plain_log_labels(axes.yaxis)
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("rank $m$")
        axes.set_ylabel("distance")
        axes.legend(**ABOVE)

    caption = (
        "Lower bounds on the spectral distance of the softmax matrix from all matrices of rank m: one over"
        " the root of the bound in each obligation of kind inverse-norm (dots)."
        " Crosses: singular values of the same matrix in floating point."
    )
    alt = f"The bounds: {'; '.join(f'{distance:.3g} at rank {rank}' for rank, distance in points)}."
    return [draw("ranks", caption, alt, paint)]


def _spectrum(data: dict[str, Any]) -> list[float]:
    """Singular values of the softmax matrix of scalar queries and keys, largest first."""
    from numpy import array, exp, outer
    from numpy.linalg import svd

    scores = exp(outer(array(numbers(data["queries"])), array(numbers(data["keys"]))))
    return [float(value) for value in svd(scores / scores.sum(axis=1, keepdims=True))[1]]


def softmax_read(keys: list[list[float]], values: list[list[float]], query: list[float]) -> list[float]:
    """Softmax attention in floating point, without a scale."""
    scores = [_dot(query, key) for key in keys]
    weights = [math.exp(score - max(scores)) for score in scores]
    columns = zip(*values, strict=True)
    return [_dot(weights, column) / math.fsum(weights) for column in columns]


def _dot(first: Any, second: Any) -> float:
    return math.fsum(one * other for one, other in zip(first, second, strict=True))


def numbers(row: list[Any]) -> list[float]:
    """A row of fractions of a certificate."""
    return [number(item) for item in row]

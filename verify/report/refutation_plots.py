"""Figures of what was refuted: states that meet, scores left unread, bits read back, steps that stretch."""

import math
from typing import Any

from verify.report import terms
from verify.report.figure_data import checked, evidence, goals, grid, number, ratios
from verify.report.plots import ABOVE, FAINT, FIRST, INK, SECOND, Plot, draw, plain_log_labels
from verify.report.witness_plots import numbers, softmax_read

Matrix = list[list[float]]


def unread(data: dict[str, Any], name: str) -> list[Plot]:
    """Which scores the algorithm read, and the one that was raised."""
    size = len(data["first"])
    read = {tuple(pair) for pair in data["read"]}
    skipped = [(i, j) for i in range(size) for j in range(size) if (i, j) not in read]
    query, key = data["pair"]

    def paint(axes: Any) -> None:
        axes.plot([j for _, j in read], [i for i, _ in read], "s", color=FAINT, markersize=9, label="read")
        axes.plot([j for _, j in skipped], [i for i, _ in skipped], "x", color=FIRST, label="unread")
        axes.plot([key], [query], "o", color=SECOND, markersize=12, fillstyle="none", label="raised")
        axes.set_xlabel("key")
        axes.set_ylabel("query")
        axes.set_aspect("equal")
        axes.invert_yaxis()
        axes.grid(visible=False)
        axes.legend(ncols=3, handletextpad=0.2, columnspacing=1.0, **ABOVE)

    caption = (
        f"Scores that the algorithm read ({len(read)} of {size * size}) and the one raised from"
        f" {data['first'][query][key]} to {data['second'][query][key]}: it answers both inputs alike."
    )
    alt = f"{len(skipped)} of {size * size} scores are unread; the raised one is query {query}, key {key}."
    return [draw(name, caption, alt, paint, (4.4, 4.0))]


def recall(data: dict[str, Any], name: str) -> list[Plot]:
    """The outputs that were asked for, bit by bit, on their sides of one half."""
    keys, values = ([numbers(row) for row in data[field]] for field in ("keys", "bits"))
    outputs = [softmax_read(keys, values, numbers(query)) for query in data["queries"]]
    flat = [
        (bit, output)
        for row, out in zip(values, outputs, strict=True)
        for bit, output in zip(row, out, strict=True)
    ]

    def paint(axes: Any) -> None:
        axes.axhline(0.5, color=INK, linestyle="--", linewidth=1)
        for wanted, colour, marker in ((0.0, FIRST, "o"), (1.0, SECOND, "s")):
            here = [(place, output) for place, (bit, output) in enumerate(flat) if bit == wanted]
            if here:
                axes.plot(
                    *zip(*here, strict=True), marker, color=colour, markersize=4, label=f"bit {wanted:g}"
                )
        axes.set_ylim(-0.05, 1.05)
        axes.set_xlabel("bit of the history")
        axes.set_ylabel("attention output")
        axes.legend(ncols=2, **ABOVE)

    margin = min(abs(output - 0.5) for _, output in flat)
    caption = (
        "Softmax outputs of the queries along the address keys, in floating point: each bit on its side of ½."
    )
    return [draw(name, caption, f"Every output is at least {margin:.3g} from one half.", paint)]


def step(data: dict[str, Any], name: str) -> list[Plot]:
    """The unit circle and its image under what a transition does to its first two channels by themselves."""
    rows = [numbers(row) for row in data["matrix"]]
    coupled = any(x for row in rows[:2] for x in row[2:]) or any(x for row in rows[2:] for x in row[:2])
    return [] if coupled else [_circle([row[:2] for row in rows[:2]], name)]


def _circle(matrix: Matrix, name: str) -> Plot:
    angles = [2 * math.pi * place / 240 for place in range(241)]
    circle = [(math.cos(angle), math.sin(angle)) for angle in angles]
    image = [[row[0] * x + row[1] * y for row in matrix] for x, y in circle]
    longest = max(math.hypot(*point) for point in image)

    def paint(axes: Any) -> None:
        axes.plot(*zip(*circle, strict=True), color=INK, linewidth=1, label="unit circle")
        axes.plot(*zip(*image, strict=True), color=SECOND, linewidth=2, label="its image")
        axes.set_aspect("equal")
        axes.set_xlabel("channel 1")
        axes.set_ylabel("channel 2")
        axes.legend(ncols=2, **ABOVE)

    caption = "All directions of the first two channels before and after the transition in the certificate."
    return draw(
        name, caption, f"The longest image of a unit vector has length {longest:.4g}.", paint, (4.4, 3.6)
    )


def stretch(certificate: dict[str, Any]) -> list[Plot]:
    """The squared length of a sheared unit vector over the shear, beside what contractions can reach."""
    length = next((goal["rhs"] for goal in goals(certificate, {"lambda"})), None)
    if length is None:
        return []
    shears = grid(-2.0, 2.0)
    sheared = [terms.value(length, {"lambda": shear}) for shear in shears]

    def paint(axes: Any) -> None:
        axes.fill_between(
            [shears[0], shears[-1]], 0.0, 1.0, color=FAINT, alpha=0.6, label="products of KDA steps"
        )
        axes.plot(shears, sheared, color=SECOND, label="shear")
        axes.set_xlabel(r"$\lambda$")
        axes.set_ylabel(r"squared length of the image of $e_j$")
        axes.set_ylim(0.0, None)
        axes.legend(ncols=2, **ABOVE)

    caption = "Squared length of the image of e_j: the derived formula for the shear, and the proved bound 1."
    return [
        draw("stretch", caption, f"At λ = 2 the shear gives {sheared[-1]:.3g}, products at most 1.", paint)
    ]


def determinants(certificate: dict[str, Any]) -> list[Plot]:
    """Exact determinants of growing Vandermonde matrices."""
    found = [item["data"] for item in evidence(certificate) if item["kind"] == "determinant"]
    points = sorted((len(data["nodes"]), number(data["determinant"])) for data in found)
    if not points:
        return []

    def paint(axes: Any) -> None:
        axes.plot(*zip(*points, strict=True), "o", color=FIRST)
        axes.set_yscale("log")
        plain_log_labels(axes.yaxis)
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("tokens $n$")
        axes.set_ylabel("determinant")

    caption = "Exact determinants of the matrices written out (obligations of kind determinant): none is 0."
    return [draw("determinants", caption, f"From {points[0][1]:.3g} to {points[-1][1]:.3g}, never 0.", paint)]


def spectra(certificate: dict[str, Any]) -> list[Plot]:
    """Singular values of the matrices whose rank was checked exactly."""
    from numpy import array
    from numpy.linalg import svd

    found = [
        item for item in evidence(certificate) if item["kind"] == "determinant" and "matrix" in item["data"]
    ]
    if not found:
        return []
    rows = [
        (item["label"], svd(array([numbers(row) for row in item["data"]["matrix"]]))[1]) for item in found
    ]
    tiny = 1e-12

    def paint(axes: Any) -> None:
        for (label, values), colour, marker in zip(rows, (FIRST, SECOND), ("o", "s"), strict=False):
            shown = [max(float(value), tiny) for value in values]
            axes.plot(range(1, len(shown) + 1), shown, marker, color=colour, fillstyle="none", label=label)
        axes.set_yscale("log")
        plain_log_labels(axes.yaxis)
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("place")
        axes.set_ylabel("singular value")
        axes.legend(**ABOVE)

    ranks = ", ".join(f"{item['data']['rank']} ({item['label']})" for item in found)
    caption = (
        f"Singular values in floating point (below {tiny:.0e} drawn there); the ranks were found exactly, by"
        " the obligations of kind determinant."
    )
    return [draw("spectra", caption, f"Exact ranks: {ranks}.", paint)]


def two_states(certificate: dict[str, Any]) -> list[Plot]:
    """The states of two queries after one history, from the difference that was bounded."""
    found = checked(certificate, {"x"})
    if not found:
        return []
    first, second = found[0].split()
    at = found[0].values[0]["x"]
    places = ratios(at / 16, at * 16)

    def paint(axes: Any) -> None:
        sides = ((first, FIRST, "-", "query 1"), (second, SECOND, "--", "query 2"))
        for side, colour, line, label in sides:
            axes.plot(places, [side.at(x=place) for place in places], line, color=colour, label=label)
            axes.plot([at], [side.at(x=at)], "o", color=colour)
        axes.set_xscale("log")
        plain_log_labels(axes.xaxis, "g")
        axes.set_xlabel(r"$x=e^{k_2-k_1}$")
        axes.set_ylabel("state for values 0 and 1")
        axes.legend(ncols=2, **ABOVE)

    caption = "One history, two queries: both sides of the difference that was bounded (kind inequality)."
    alt = f"At x = {at:g} the states are {first.at(x=at):.3g} and {second.at(x=at):.3g}."
    return [draw("states", caption, alt, paint)]

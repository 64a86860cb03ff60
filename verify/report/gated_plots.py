"""Figures of two histories that a gated head merges: their entries, their states and the two outputs."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from verify.report.figure_data import grid, number
from verify.report.plots import ABOVE, FIRST, INK, SECOND, Plot, draw, plain_log_labels
from verify.report.witness_plots import numbers, softmax_read

Vector = list[float]
Rows = list[Vector]

MOST_ENTRIES = 1000
"""Longer histories get no figure of their entries: nobody could tell them apart."""


def merged(data: dict[str, Any], name: str) -> list[Plot]:
    """Entries of both histories, distance of their states token by token, and outputs over the next token."""
    entries = [_entries(data, f"{name}-entries")] if len(_flat(data["first"])) <= MOST_ENTRIES else []
    return [*entries, _states(data, f"{name}-states"), _outputs(data, f"{name}-outputs")]


@dataclass(frozen=True)
class _Head:
    """The layer of the certificate in floats; keys and queries as the checker's formulas have them."""

    layer: dict[str, Any]

    def project(self, name: str, token: Vector) -> Vector:
        return [_dot(numbers(row), token) for row in self.layer[name]]

    def normed(self, name: str, token: Vector) -> Vector:
        plain = self.project(name, token)
        size = math.sqrt(_dot(plain, plain) + number(self.layer["eps"]))
        return [x / size for x in plain]

    def decays(self, token: Vector) -> Vector:
        rate = math.exp(number(self.layer["A_log"]))
        inside = zip(self.project("w_gate", token), numbers(self.layer["dt_bias"]), strict=True)
        alphas = [math.exp(-rate * (max(y + b, 0) + math.log1p(math.exp(-abs(y + b))))) for y, b in inside]
        return alphas * len(self.layer["w_k"]) if len(alphas) == 1 else alphas

    def states(self, history: Rows) -> Iterator[Rows]:
        """The state after every token, K×V."""
        state = [[0.0] * len(self.layer["w_v"]) for _ in self.layer["w_k"]]
        for token in history:
            decayed = [[a * s for s in row] for a, row in zip(self.decays(token), state, strict=True)]
            k, v = self.normed("w_k", token), self.project("w_v", token)
            beta = (1 + math.tanh(self.project("w_beta", token)[0] / 2)) / 2
            errors = [x - _dot(k, column) for x, column in zip(v, zip(*decayed, strict=True), strict=True)]
            state = [
                [s + beta * k_i * e for s, e in zip(row, errors, strict=True)]
                for k_i, row in zip(k, decayed, strict=True)
            ]
            yield state

    def read(self, history: Rows) -> Vector:
        """What the head outputs at the last token."""
        *_, state = self.states(history)
        q = [x / math.sqrt(len(state)) for x in self.normed("w_q", history[-1])]
        return [_dot(q, column) for column in zip(*state, strict=True)]

    def softmax(self, history: Rows) -> Vector:
        """What softmax attention outputs there."""
        q = [x / math.sqrt(len(self.layer["w_k"])) for x in self.normed("w_q", history[-1])]
        keys, values = [self.normed("w_k", x) for x in history], [self.project("w_v", x) for x in history]
        return softmax_read(keys, values, q)


def _entries(data: dict[str, Any], name: str) -> Plot:
    first, second = (_flat(data[side]) for side in ("first", "second"))
    width = len(data["first"][0])
    searched = sorted(t * width + i for t, i in data["unknown"])

    def paint(axes: Any) -> None:
        axes.plot(first, "o", color=FIRST, markersize=4, label="first history")
        axes.plot(second, "x", color=SECOND, markersize=5, label="second history")
        axes.plot(searched, [second[j] for j in searched], "o", color=INK, fillstyle="none", label="unknowns")
        axes.set_xticks(
            [t * width - 0.5 for t in range(len(data["first"]))], range(1, len(data["first"]) + 1)
        )
        axes.set_xlabel("token (its entries side by side)")
        axes.set_ylabel("entry")
        axes.legend(ncols=3, **ABOVE)

    differ = sum(x != y for x, y in zip(first, second, strict=True))
    caption = "Entries of the two histories; the unknowns are known to within the certified box."
    alt = f"The histories differ in {differ} of {len(first)} entries, {len(searched)} of them unknowns."
    return draw(name, caption, alt, paint, (6.4, 3.4))


def _states(data: dict[str, Any], name: str) -> Plot:
    head = _Head(data["layer"])
    sides = ([_flat_rows(s) for s in head.states(_rows(data[side]))] for side in ("first", "second"))
    apart = [max(abs(x - y) for x, y in zip(*pair, strict=True)) for pair in zip(*sides, strict=True)]
    tokens = range(1, len(apart) + 1)
    # Floating point may find the last one exactly 0, which a log axis cannot show.
    shown = [max(distance, 1e-17) for distance in apart]

    def paint(axes: Any) -> None:
        axes.plot(tokens, shown, color=FIRST, marker="o")
        axes.set_yscale("log")
        plain_log_labels(axes.yaxis)
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("token")
        axes.set_ylabel("largest difference of the states")

    caption = (
        "Distance of the two states after every token, in floating point, with the second history at the"
        " centre of its box: at the last token it is rounding, and certainly 0 for some history in the box."
    )
    alt = f"The states differ by up to {max(apart):.3g} on the way and by {apart[-1]:.1g} at the end."
    return draw(name, caption, alt, paint)


def _outputs(data: dict[str, Any], name: str) -> Plot:
    head, after = _Head(data["layer"]), numbers(data["next_token"])
    sides = [_rows(data[side]) for side in ("first", "second")]
    here = [head.softmax([*side, after]) for side in sides]
    apart = [abs(one - other) for one, other in zip(*here, strict=True)]
    place = apart.index(max(apart))
    multiples = grid(-3.0, 3.0)
    scaled = [[scale * x for x in after] for scale in multiples]
    curves = [[head.softmax([*side, token])[place] for token in scaled] for side in sides]
    merged_curve = [head.read([*sides[0], token])[place] for token in scaled]

    def paint(axes: Any) -> None:
        axes.plot(multiples, curves[0], color=FIRST, label="softmax, first history")
        axes.plot(multiples, curves[1], "--", color=SECOND, label="softmax, second history")
        axes.plot(multiples, merged_curve, ":", color=INK, label="the head, after either")
        axes.plot([1.0, 1.0], [side[place] for side in here], "o", color=INK)
        axes.set_xlabel("multiple of the next token")
        axes.set_ylabel(f"output, coordinate {place + 1}")
        axes.legend(**ABOVE)

    caption = (
        "Outputs at the next token: the head answers both histories alike, softmax attention with the same"
        " q, k, v does not. Dots: the witness."
    )
    alt = f"At the witness the softmax outputs are {apart[place]:.3g} apart."
    return draw(name, caption, alt, paint, (6.4, 3.8))


def _rows(rows: list[list[Any]]) -> Rows:
    return [numbers(row) for row in rows]


def _flat(rows: list[list[Any]]) -> Vector:
    return _flat_rows(_rows(rows))


def _flat_rows(rows: Rows) -> Vector:
    return [x for row in rows for x in row]


def _dot(first: Any, second: Any) -> float:
    return math.fsum(one * other for one, other in zip(first, second, strict=True))

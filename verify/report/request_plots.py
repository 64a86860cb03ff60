"""Figures of counterexamples on request: collisions of enclosed features, and retention."""

from typing import Any

from verify.report.figure_data import number
from verify.report.plots import ABOVE, FIRST, SECOND, Plot, draw, plain_log_labels
from verify.report.witness_plots import collision, numbers


def enclosed(data: dict[str, Any], name: str) -> list[Plot]:
    """The two output curves of a collision whose null vector is known up to a small error."""
    z = [number(weight) / 2 ** int(data["bits"]) for weight in data["z"]]
    first, w = data["first"], numbers(data["w"])
    second = [
        [str(number(x) + weight * step) for x, step in zip(row, w, strict=True)]
        for row, weight in zip(first, z, strict=True)
    ]
    sides = {
        side: {"keys": data["keys"], "values": values}
        for side, values in (("first", first), ("second", second))
    }
    return collision({**sides, "query": data["query"]}, name)


def retention(data: dict[str, Any], name: str) -> list[Plot]:
    """The certified ceilings of what is left of earlier tokens, and the shares where keys were given."""
    total = len(data["gates"])
    rows = [(total - int(row["token"]), row) for row in data["rows"]]
    ceilings = [(since, number(row["ceiling"][1])) for since, row in rows]
    shares = [(since, _size(row["share"])) for since, row in rows if "share" in row]
    least = min((value for _, value in [*ceilings, *shares] if value > 0), default=1.0)

    def paint(axes: Any) -> None:
        axes.plot(*zip(*ceilings, strict=True), ".-", color=FIRST, label="ceiling, whatever the keys")
        if shares:
            axes.plot(*zip(*shares, strict=True), "x", color=SECOND, label="share that its own key reads")
        if least < 0.01:
            axes.set_yscale("log")
            plain_log_labels(axes.yaxis)
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("tokens since")
        axes.set_ylabel("share that is left")
        axes.legend(ncols=2, **ABOVE)

    since, ceiling = ceilings[0]
    caption = (
        "Certified bounds on what is left of earlier tokens after the last one (kind retention): upper ends."
    )
    return [draw(name, caption, f"Of the token {since} back at most {ceiling:.3g} is left.", paint)]


def _size(bounds: list[str]) -> float:
    return max(abs(number(end)) for end in bounds)

"""The figure of enclosed singular values, and of the least errors that follow from them."""

from typing import Any

from verify.report.figure_data import number
from verify.report.plots import ABOVE, FIRST, SECOND, Plot, draw, plain_log_labels


def floors(data: dict[str, Any], name: str) -> list[Plot]:
    """The least spectral and Frobenius errors of m features, where they are certainly above 0."""
    spectral, frobenius = (
        [(floor["features"], error) for floor in data["floors"] if (error := number(floor[norm][0])) > 0]
        for norm in ("spectral", "frobenius")
    )
    if not spectral:
        return []

    def paint(axes: Any) -> None:
        axes.plot(*zip(*spectral, strict=True), "o", color=FIRST, label="spectral: singular value $m+1$")
        label = "Frobenius: all after $m$"
        axes.plot(*zip(*frobenius, strict=True), "s", color=SECOND, fillstyle="none", label=label)
        axes.set_yscale("log")
        plain_log_labels(axes.yaxis)
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("features $m$")
        axes.set_ylabel("least error")
        axes.legend(**ABOVE, ncols=2)

    caption = (
        "Certified lower bounds on the error of every kernel of m features, in both norms: the lower ends of"
        " the enclosures in the obligation of kind singular-values."
    )
    features, error = spectral[-1]
    alt = f"At m = {features} the spectral error is at least {error:.3g}."
    return [draw(name, caption, alt, paint, (6.4, 3.4))]

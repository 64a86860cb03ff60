"""The figure of a request's singular values, and that of a collision known in balls, are drawn."""

import sealed_results as made

from verify.report import claim_plots

FLOORS = [
    {"features": m, "spectral": [low, "2"], "frobenius": [low, "2"]}
    for m, low in enumerate(["1", "1/8", "0"])
]


def figures(kind: str, data: object) -> list[object]:
    certificate = made.claim()
    part = {**certificate["parts"][0], "evidence": [made.item(kind, "B", data)]}
    return list(claim_plots.figures(made.claim("request.x", parts=[part])))


def test_floors_above_zero_are_drawn() -> None:
    (plot,) = figures("singular-values", {"floors": FLOORS})
    assert plot.alt == "At m = 1 the spectral error is at least 0.125."  # type: ignore[attr-defined]


def test_floors_that_vanish_are_not() -> None:
    assert figures("singular-values", {"floors": FLOORS[2:]}) == []

"""Figures of claims: what they show follows the certificate, and the claims still hold what they need."""

from collections.abc import Callable
from typing import Any

import pytest
import sealed_results as made

from verify.report import claim_plots
from verify.report.figure_data import checked


def holding(claim_id: str, *items: dict[str, Any]) -> dict[str, Any]:
    """A certificate with one part that has this evidence."""
    return made.claim(claim_id, parts=[{**made.claim()["parts"][0], "evidence": list(items)}])


def bounded(term: list[Any], label: str = "a number", **values: str) -> dict[str, Any]:
    """An obligation on a formula; ``tau`` and ``omega`` are written as claims write them."""
    named = {rf"\{name}" if name in ("tau", "omega") else name: value for name, value in values.items()}
    return {**made.item("inequality", "B", {"term": term, "values": named, "above": "0"}), "label": label}


def variable(name: str) -> list[Any]:
    return ["v", name]


def power(exponent: int) -> list[Any]:
    return ["^", variable("a"), exponent]


SOFTMAX = ["*", ["^", ["+", ["q", "1"], ["exp", variable("s")]], -1], ["exp", variable("s")]]
DIFFERENCE = ["+", ["q", "1/2"], ["*", ["q", "1/4"], variable("s")], ["*", ["q", "-1"], SOFTMAX]]
NEEDED = ["log", ["*", variable(r"\omega"), ["+", ["q", "-1"], variable("N")]]]
PROPORTIONAL = ["*", ["q", "-1/2"], variable("N"), ["log", variable(r"\omega")]]
COLD = ["^", variable(r"\tau"), -1]
FIGURES = [
    ("gate.numbers", [bounded(power(10), "ten", a="49/50"), bounded(power(2), "two", a="1/2")], "ten: 0.817"),
    (
        "gdn.local-not-global",
        [bounded(DIFFERENCE, s="2"), bounded(DIFFERENCE, s="4")],
        "4 the form gives 1.5",
    ),
    (
        "softmax.dilution",
        [bounded(["+", PROPORTIONAL, NEEDED], N="1024", omega="9")],
        "gap is 9.13, the other 1125",
    ),
    (
        "kda.neumann-exact-unstable",
        [bounded(["*", ["q", "3432"], ["^", variable("beta"), 8]], "C = 16 at 0.9", beta="9/10")],
        "At strength 0.9 the entries are 1.48e+03 (C = 16).",
    ),
    (
        "softmax.temperature-limits",
        [bounded(["exp", COLD], "a: one", tau="1"), bounded(["*", ["q", "2"], COLD], "b: two", tau="2")],
        "The weights are 2.72 and 2 at temperature 1, and 1.65 and 1 at 2.",
    ),
    (
        "sparse.gap-bound",
        [
            bounded(["*", variable("m"), ["^", variable("Delta"), -1]], m="10", Delta=gap)
            for gap in ("4", "2")
        ],
        "Bound on the dropped mass: 5 at 2; 2.5 at 4.",
    ),
    ("sparse.pooling-snr", [bounded(["*", ["q", "-1"], variable("G")], G="4")], "dB: -4 at 4."),
]


@pytest.mark.parametrize(("claim_id", "items", "told"), FIGURES, ids=[row[0] for row in FIGURES])
def test_a_figure_shows_the_formula_of_its_certificate(claim_id: str, items: list[Any], told: str) -> None:
    (plot,) = claim_plots.figures(holding(claim_id, *items))
    assert told in plot.alt
    assert "inequality" in plot.caption
    assert plot == claim_plots.figures(holding(claim_id, *items))[0]
    refuted = [{**item, "verdict": "refuted"} for item in items]
    assert claim_plots.figures(holding(claim_id, *refuted)) == []


def test_a_formula_checked_at_several_values_is_one_formula() -> None:
    items = [bounded(power(2), a=value) for value in ("1/2", "1/4", "1/2")]
    other = bounded(["^", variable("b"), 2], b="1")
    (found,) = checked(holding("x.y", *items, other), {"a"})
    assert found.points("a") == [(0.5, 0.25), (0.25, 0.0625)]


def test_the_expansion_is_drawn_from_two_derivations() -> None:
    def derived(right: list[Any]) -> dict[str, Any]:
        left = ["+", variable("p_1"), ["*", ["q", "-1"], variable("p_2")]]
        return made.item(
            "derivation", "C", {**made.chain(), "goal": {**made.chain()["goal"], "lhs": left, "rhs": right}}
        )

    exact, expanded = derived(["log", variable("x")]), derived(variable("x"))
    point = bounded(["exp", variable("x")], x="2")
    assert claim_plots.figures(holding("expansion.leaves-hull", exact, point)) == []
    exact["data"]["goal"]["rhs"] = ["exp", variable("x")]
    (plot,) = claim_plots.figures(holding("expansion.leaves-hull", exact, expanded, point))
    assert plot.alt == "At x = 2 softmax is 7.39, the expansion 2."


def test_the_overwrite_figure_follows_the_derived_formula() -> None:
    (plot,) = claim_plots.figures(made.claim())
    assert plot.alt == "At overlap 1 the first value has the share 0 and the second 1."
    assert "ρ = 0.6" in plot.caption
    changed = made.claim()
    changed["parts"][0]["evidence"][0]["data"]["goal"]["rhs"] = [
        "+",
        ["*", ["v", "rho"], ["v", "v1"]],
        ["v", "v2"],
    ]
    assert "the share 1 and" in claim_plots.figures(changed)[0].alt


def test_a_collision_is_drawn_from_its_witness() -> None:
    history = {"features": [["1"], ["1"]], "keys": [["0"], ["1"]]}
    data = {
        "first": {**history, "values": [["1"], ["0"]]},
        "second": {**history, "values": [["0"], ["1"]]},
        "query": ["0"],
        "gap": "1/4",
    }
    claim = holding("x.y", made.item("state-collision", "E", data))
    (plot,) = claim_plots.figures(claim)
    assert plot.alt == "At the witness query the softmax outputs are 0 apart."
    data["query"] = ["1"]
    (plot,) = claim_plots.figures(claim)
    assert plot.alt == "At the witness query the softmax outputs are 0.462 apart."


def test_a_replay_with_outputs_is_drawn_beside_softmax() -> None:
    data: dict[str, Any] = {"keys": [["0"], ["1"]], "values": [["0"], ["1"]], "states": [[["0"]], [["1/4"]]]}
    claim = holding("x.y", made.item("centred-delta", "E", data))
    assert claim_plots.figures(claim) == []
    data |= {"query": ["2"], "outputs": [["0"], ["-90"]]}
    (plot,) = claim_plots.figures(claim)
    assert plot.alt == "The replayed output is largest at token 2: -90, where softmax gives 0.881."


def test_distances_from_low_rank_are_drawn_by_rank() -> None:
    blocks = [{"rows": [0, 1, 2], "below": "100"}, {"rows": [0, 1], "below": "25/4"}]
    items = [made.item("inverse-norm", "B", block) for block in blocks]
    (plot,) = claim_plots.figures(holding("rank.gap", *items))
    assert plot.alt == "The bounds: 0.4 at rank 1; 0.1 at rank 2."
    assert claim_plots.figures(holding("rank.gap")) == []


def measured(detail: str, history: str = "gaussian", verdict: str = "sampled") -> dict[str, Any]:
    item = made.item("paired-errors", "M", {"history": history, "deviation": "1/25"}, verdict)
    item["checks"][0]["detail"] = detail
    return item


def test_shares_are_those_the_checker_found() -> None:
    first = measured(
        "9 draws; a against b: closer in 0.700 ± 0.080 of the draws; a against b: mean error less by 1"
    )
    second = measured("a against b: closer in 0.550 ± 0.080 of the draws", "sphere")
    false = measured("a against b: closer in 0.100 ± 0.080 of the draws", "near", "refuted")
    (plot,) = claim_plots.figures(holding("gdn.is-it-better", first, second, first, false))
    assert plot.alt == "2 shares with intervals; 1 of the intervals leave one half out."
    assert "a against b, 0.04" in plot.svg
    assert plot.wide
    assert claim_plots.figures(holding("gdn.is-it-better", measured("nothing"))) == []


@pytest.mark.parametrize("claim_id", sorted({*claim_plots.BY_CLAIM, "gdn.form-unstable"}))
def test_claims_still_hold_what_their_figure_needs(
    claim_id: str, certified: Callable[[str], dict[str, Any]]
) -> None:
    assert claim_plots.figures(certified(claim_id))

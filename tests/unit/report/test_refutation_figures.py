"""Figures of refutations, of transitions and of requests follow the numbers in their certificates."""

from typing import Any

import pytest
import sealed_results as made

from verify.report import claim_plots


def holding(claim_id: str, *items: dict[str, Any]) -> dict[str, Any]:
    """A certificate with one part that has this evidence."""
    return made.claim(claim_id, parts=[{**made.claim()["parts"][0], "evidence": list(items)}])


def drawn(claim_id: str, *items: dict[str, Any]) -> list[str]:
    """What the figures of such a certificate tell those who do not see them."""
    return [plot.alt for plot in claim_plots.figures(holding(claim_id, *items))]


def derived(left: list[Any], right: list[Any]) -> dict[str, Any]:
    chain = made.chain()
    return made.item("derivation", "C", {**chain, "goal": {**chain["goal"], "lhs": left, "rhs": right}})


def variable(name: str) -> list[Any]:
    return ["v", name]


UNREAD = {
    "first": [["0", "0"], ["0", "0"]],
    "second": [["0", "0"], ["9", "0"]],
    "read": [[0, 0], [0, 1]],
    "pair": [1, 0],
}
RECALL = {"keys": [["1"], ["-1"]], "queries": [["0"], ["1"]], "bits": [["1"], ["0"]]}
MERGED = {"keys": [["0"], ["1"]], "first": [["0"], ["0"]], "z": ["4", "-4"], "bits": 2, "w": ["1"]}
RETAINED = {
    "gates": [["1/2"], ["1/2"], ["1/2"]],
    "rows": [
        {"token": 1, "ceiling": ["1/5", "1/4"], "channels": [], "share": ["-1/5", "1/8"], "length": []},
        {"token": 3, "ceiling": ["1", "1"], "channels": [], "share": ["1", "1"], "length": []},
    ],
}
BY_KIND = [
    ("unread-score", UNREAD, "2 of 4 scores are unread; the raised one is query 1, key 0."),
    ("recall", RECALL, "Every output is at least 0 from one half."),
    ("kda-step", {"matrix": [["0", "0"], ["0", "3"]]}, "The longest image of a unit vector has length 3."),
    (
        "diagonal-plus-rank-one",
        {"matrix": [["2", "0", "0"], ["0", "1", "0"], ["0", "0", "7"]]},
        "The longest image of a unit vector has length 2.",
    ),
    (
        "enclosed-collision",
        {**MERGED, "query": ["0"]},
        "At the witness query the softmax outputs are 0 apart.",
    ),
    (
        "enclosed-collision",
        {**MERGED, "query": ["1"]},
        "At the witness query the softmax outputs are 0.462 apart.",
    ),
    ("retention", RETAINED, "Of the token 2 back at most 0.25 is left."),
]


@pytest.mark.parametrize(("kind", "data", "told"), BY_KIND)
def test_a_witness_is_drawn_from_its_data(kind: str, data: dict[str, Any], told: str) -> None:
    item = made.item(kind, "E", data)
    assert drawn("x.y", item) == [told]
    assert drawn("x.y", item, item) == [told], "one witness, one figure"
    assert drawn("x.y", {**item, "verdict": "refuted"}) == []


@pytest.mark.parametrize("row", [["0", "0", "1"], ["1", "0", "0"]])
def test_a_transition_that_mixes_in_other_channels_is_not_drawn(row: list[str]) -> None:
    unit = [["1", "0", "0"], ["0", "1", "0"], ["0", "0", "1"]]
    matrix = [row, *unit[1:]] if row[2] == "1" else [*unit[:2], row]
    assert drawn("x.y", made.item("kda-step", "E", {"matrix": matrix})) == []


def test_the_stretch_is_the_derived_length() -> None:
    length = ["+", ["q", "1"], ["*", ["q", "5"], ["^", variable("lambda"), 2]]]
    assert drawn("kda.no-shear-ever", derived(variable("y"), length)) == [
        "At λ = 2 the shear gives 21, products at most 1."
    ]
    assert drawn("kda.no-shear-ever", derived(variable("y"), variable("mu"))) == []


def test_determinants_are_drawn_by_size() -> None:
    items = [
        made.item("determinant", "E", {"nodes": ["1"] * size, "powers": [], "determinant": str(size)})
        for size in (3, 1)
    ]
    assert drawn("rank.exponential-full", *items) == ["From 1 to 3, never 0."]
    assert drawn("rank.exponential-full") == []


def test_spectra_name_the_exact_ranks() -> None:
    data = {"matrix": [["1", "2"], ["2", "4"]], "rank": 1}
    assert drawn("rank.finite-feature", made.item("determinant", "E", data)) == [
        "Exact ranks: 1 (shown by determinant)."
    ]
    assert drawn("rank.finite-feature") == []


def test_distances_stand_beside_the_singular_values() -> None:
    block = {"rows": [0, 1], "columns": [0, 1], "below": "100"}
    scores = {"queries": ["0", "1"], "keys": ["0", "1"]}
    bare, full = (
        holding("rank.gap", made.item("inverse-norm", "B", data)) for data in (block, {**block, **scores})
    )
    assert "singular" not in claim_plots.figures(bare)[0].svg
    assert "singular" in claim_plots.figures(full)[0].svg


def test_two_queries_have_two_states() -> None:
    term = ["+", variable("x"), ["*", ["q", "-1/2"], variable("x")]]
    item = made.item("inequality", "E", {"term": term, "values": {"x": "3"}, "above": "0"})
    assert drawn("gdn.query-dependence", item) == ["At x = 3 the states are 3 and 1.5."]
    assert drawn("gdn.query-dependence") == []


def test_both_substitutes_come_from_one_equation() -> None:
    key, guess = ["at", r"\kappa", [variable("c")]], ["at", "c^*", [variable("c")]]
    read = ["sum", "c", ["q", "1"], variable("K"), ["*", key, guess]]
    left = ["*", ["q", "-1"], ["^", variable("t"), -1], ["at", r"\kappa", [variable("e")]], read]
    right = ["*", variable("s^2"), variable("n"), ["^", variable("t"), -1], key]
    assert drawn("gdn.least-squares-query", derived(left, right)) == ["At x = 8 and t = 2 they are -4 and 4."]
    assert drawn("gdn.least-squares-query", derived(right, left)) == []


def test_the_envelope_multiplies_the_rule_up() -> None:
    rule = {"free": [], "guards": [], "latex": "", "lhs": variable("P")}
    setting = {
        **made.chain()["setting"],
        "definitions": [
            {**rule, "name": "no step yet", "rhs": ["q", "4"]},
            {**rule, "name": "one step more", "rhs": ["*", ["q", "1"], variable("P")]},
        ],
    }
    induction = {"step": {**made.chain(), "setting": setting}}
    (alt,) = drawn("kda.ceiling", made.item("induction", "C", induction))
    assert "At most 2 after 1000 steps of 0.9" in alt
    assert drawn("kda.ceiling") == []


def test_stored_bits_need_both_formulas() -> None:
    bits = [
        {**made.item("inequality", "B", {"term": term, "values": {"x": x}, "above": "0"}), "label": label}
        for label, term, x in (
            ("bits of 1 − α in float32", ["*", ["q", "5000"], variable("x")], "1/1000"),
            ("bits of g in float32", ["+", ["q", "20"], variable("x")], "3"),
        )
    ]
    assert drawn("kda.decay-wall", *bits) == ["At 1000 steps 5 bits of 1 − α and 23 of the gate."]
    assert drawn("kda.decay-wall", bits[0]) == []

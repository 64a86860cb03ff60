"""Formulas, layouts, derivations and figures one at a time."""

import re
import subprocess
import sys
from xml.etree.ElementTree import Element

import pytest
import sealed_results as made
from latex2mathml.converter import Converter

from verify.derive.derivation import Rule
from verify.report import evidence, kernel_plots, overview, show, terms, words
from verify.report.mathml import domain, formula, prose


def test_formula_is_mathml_and_unknown_commands_stay_readable() -> None:
    assert "<msup>" in formula(r"\rho^2")
    assert formula(r"\nosuchcommand{x}") == r'<code class="tex">\nosuchcommand{x}</code>'
    assert "ℝ" in formula(r"\mathbb R")
    assert "<mfrac>" in formula(r"\tfrac12")


@pytest.mark.parametrize(
    "latex",
    [
        r"\text{<script>alert(1)</script>}",
        "<script>",
        r"\href{javascript:x}{y}",
        r"\style{x:url(y)}{z}",
        "&lt;b&gt;",
    ],
)
def test_formula_never_lets_markup_through(latex: str) -> None:
    tags = set(re.findall(r"<\s*/?([A-Za-z]+)", formula(latex)))
    assert tags <= {"math", "mrow", "mi", "mo", "mn", "mtext", "mstyle", "code"}
    assert not re.search(r"<[^>]*(javascript|href|style=|url)", formula(latex))


def test_elements_that_are_not_mathml_are_never_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Converter, "convert_to_element", lambda self, latex: Element("iframe"))
    assert formula(r"x_{iframe}") == r'<code class="tex">x_{iframe}</code>'


def test_prose_escapes_what_is_not_a_formula() -> None:
    assert prose("a < b $x$ & $5") == f"a &lt; b {formula('x')} &amp; $5"


def test_a_domain_is_prose_or_one_formula() -> None:
    assert domain("temperature, a real number > 0") == "temperature, a real number &gt; 0"
    assert domain(r"\mathbb{R}^K, \|k\|=1").startswith("<math")
    assert domain(r"\text{softmax weights at }q").startswith("<math")
    assert domain(r"scores, $\mathbb R$").startswith("scores")


@pytest.mark.parametrize(
    ("term", "latex", "number"),
    [
        (["q", "-3/4"], r"-\frac{3}{4}", -0.75),
        (made.SHARE, r"1 - \rho^{2}", 0.75),
        (["*", ["v", "rho"], ["^", ["q", "4"], -1]], r"\frac{\rho}{4}", 0.125),
        (["^", ["+", ["v", "rho"], ["q", "1"]], 2], r"\left(\rho + 1\right)^{2}", 2.25),
        (["sum", "i", ["q", "1"], ["q", "3"], ["v", "i"]], r"\sum_{i=1}^{3} i", 6.0),
        (["+", ["q", "-1"], ["v", "rho"]], r"\rho - 1", -0.5),
        (["exp", ["log", ["v", "rho"]]], r"\exp\left(\log\left(\rho\right)\right)", 0.5),
        (["at", "k1", [["v", "i"]]], r"{k_{1}}_{i}", 7.0),
        (["v", r"\rho"], r"\rho", 0.25),
    ],
)
def test_terms_are_written_and_evaluated(term: list[object], latex: str, number: float) -> None:
    assert terms.is_term(term)
    assert terms.latex(term) == latex
    assert terms.value(term, {"rho": 0.5, "k1": 7.0, r"\rho": 0.25}) == pytest.approx(number, rel=1e-15)


@pytest.mark.parametrize(
    "value", [["x"], ["q", "1/0"], ["q", 1], ["+"], ["^", ["v", "x"], "2"], [], "q", ["at", "x", 3]]
)
def test_what_is_not_a_term_is_not_taken_for_one(value: object) -> None:
    assert not terms.is_term(value)


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ([["1", "2"], ["3", "4"]], "matrix"),
        ([["1"], ["3", "4"]], "list"),
        (["1", "1/2"], "vector"),
        ([{"a": 1}, {"a": 2}], "rows"),
        ({"T": 3}, "sizes"),
        ({"T": "x"}, "record"),
        ("a\nb", "text"),
        (["v", "x"], "formula"),
        ([["v", "x"], ["v", "y"]], "list"),
        ([], "empty"),
        (None, "scalar"),
    ],
)
def test_layout_follows_the_value(value: object, form: str) -> None:
    assert show.shape(value) == form


@pytest.mark.parametrize(
    ("ratio", "level"), [(0.0, 0), (0.05, 1), (0.99, 4), (1.0, 4), (1.01, 5), ("nan", 5), ("inf", 5)]
)
def test_a_fault_is_never_a_mild_colour(ratio: object, level: int) -> None:
    assert show.heat({"worst_ratio": ratio, "verdict": "sampled"}) == level
    assert show.heat({"worst_ratio": ratio, "verdict": "refuted"}) == 5


def test_every_rule_of_derivation_is_explained() -> None:
    assert set(words.RULES) == {str(rule) for rule in Rule}


def test_a_derivation_shows_each_step_with_its_support() -> None:
    view = evidence.chain(made.chain())
    assert view.start == "o"
    assert [step.rule for step in view.steps] == ["use hypothesis"]
    assert [note.text for note in view.steps[0].notes] == [
        "unfolds «second write»",
        "uses «unit»",
        "multiplied by",
    ]
    assert {note.text for note in view.given} >= {"definition «second write»", "hypothesis «unit»", "sign"}


def test_a_step_that_does_not_start_at_the_line_above_shows_where_it_starts() -> None:
    data = made.chain()
    data["steps"].append({**data["steps"][0], "before": ["v", "other"]})
    assert [step.before for step in evidence.chain(data).steps] == ["", "o"]


def test_steps_are_counted_in_derivations_and_inductions() -> None:
    row = overview.claim_row(made.claim())
    assert (row.steps, row.killed) == (3, 1)
    states = {"K": "missing", "S": "extra", "E": "extra", "B": "", "C": "reached", "M": ""}
    assert row.strengths == tuple(states.items())


def test_kernel_figures_show_every_class_and_say_what_is_not_finite() -> None:
    bars, *tokens = kernel_plots.figures(made.kernel("refuted"))
    assert "gate-zero" in bars.svg
    assert "not finite" in bars.svg
    assert "for gate-zero" in bars.alt
    assert [plot.name for plot in tokens] == ["tokens-gaussian", "tokens-gate-zero"]
    assert "1 tokens are not finite" in tokens[1].caption
    assert "1 exact zeros" in tokens[0].caption


def test_the_worst_cell_of_a_class_is_the_one_without_a_number() -> None:
    cells = [made.cell("a", [0.0], ratio, "sampled") for ratio in (0.3, "nan", 7.0)]
    assert kernel_plots.worst_cell(cells, "a") is cells[1]
    assert kernel_plots.worst_cell(cells[::2], "a") is cells[2]
    assert kernel_plots.worst_cell(cells, "b") is None


def test_figures_have_no_date_and_follow_dark_pages() -> None:
    for plot in kernel_plots.figures(made.kernel()):
        assert plot.svg.startswith("<svg")
        assert "prefers-color-scheme: dark" in plot.svg
        assert "dc:date" not in plot.svg
        assert "#0102" not in plot.svg


def test_matplotlib_is_not_imported_before_a_figure_is_drawn() -> None:
    code = "import sys, verify.report.site; print('matplotlib' in sys.modules, 'sympy' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]


def test_very_many_operands_are_shortened_and_counted() -> None:
    factors = [["v", f"x_{place}"] for place in range(100)]
    written = terms.latex(["*", *factors])
    assert "x_{0}" in written
    assert "x_{99}" in written
    assert "x_{50}" not in written
    assert r"96\text{ more}" in written
    assert "x_{50}" in terms.latex(["+", *factors[48:60]])


def test_long_values_are_shortened_and_say_so() -> None:
    assert show.left_out([1, 2, 3]) == ""
    assert show.left_out([[0] * 3] * 2) == ""
    long = list(range(show.MOST + 1))
    assert show.first(long) == long[:-1]
    assert show.left_out(long) == f"shortened: {show.MOST + 1} in all, the rest is in the certificate"
    assert f"2 × {show.MOST + 1} in all" in show.left_out([long, long])

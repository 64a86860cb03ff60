"""Figures of single claims whose certificates hold the formula to draw."""

from collections.abc import Sequence
from typing import Any

from verify.report import terms
from verify.report.figure_data import checked, goals, grid, names_of, ratios
from verify.report.plots import ABOVE, FAINT, FIRST, INK, SECOND, Plot, draw, plain_log_labels


def order(certificate: dict[str, Any]) -> list[Plot]:
    """Distance of the two orders of writing over the strength."""
    gap = next((goal["rhs"] for goal in goals(certificate, {"beta", "v1", "v2"})), None)
    if gap is None:
        return []
    strengths = grid(0.0, 1.0)
    gaps = [terms.value(gap, {"beta": beta, "v1": 0.0, "v2": 1.0}) for beta in strengths]

    def paint(axes: Any) -> None:
        axes.plot(strengths, gaps, color=FIRST)
        axes.set_xlabel(r"write strength $\beta$")
        axes.set_ylabel(r"difference / $(v_2 - v_1)$")

    caption = "How far the two orders of writing under one key end up apart, from the derived formula."
    alt = f"The difference grows from {gaps[0]:.3g} at strength 0 to {gaps[-1]:.3g} at strength 1."
    return [draw("order", caption, alt, paint)]


def expansion(certificate: dict[str, Any]) -> list[Plot]:
    """Softmax of two opposite logits and its first-order expansion, with the hull of the two values."""
    found = [goal for goal in goals(certificate, {"x"}) if names_of(goal["lhs"]) == {"p_1", "p_2"}]
    points = checked(certificate, {"x"})
    if len(found) != 2 or not points:
        return []
    exact, expanded = (goal["rhs"] for goal in found)
    hull = [terms.value(found[0]["lhs"], {"p_1": 1.0 - one, "p_2": one}) for one in (1.0, 0.0)]
    reach = 1.5 * max(values["x"] for values in points[0].values)
    logits = grid(-reach, reach)

    def paint(axes: Any) -> None:
        axes.axhspan(*hull, color=FAINT, linewidth=0, alpha=0.6, label="hull of the values")
        for term, colour, line, label in (
            (exact, FIRST, "-", "softmax"),
            (expanded, SECOND, "--", "expansion"),
        ):
            axes.plot(logits, _curve(term, "x", logits), line, color=colour, label=label)
            places = [values["x"] for values in points[0].values]
            axes.plot(places, _curve(term, "x", places), "o", color=colour)
        axes.set_xlabel("logit $x$")
        axes.set_ylabel("output")
        axes.legend(ncols=3, **ABOVE)

    at = points[0].values[0]
    one, other = (terms.value(term, at) for term in (exact, expanded))
    caption = (
        "Output for logits (x, −x) by two obligations of kind derivation, exact and to first order."
        f" Dots: x = {at['x']:g}, where the exact one was bounded (kind inequality)."
    )
    alt = f"At x = {at['x']:g} softmax is {one:.3g}, the expansion {other:.3g}."
    return [draw("expansion", caption, alt, paint, (6.4, 3.6))]


def local(certificate: dict[str, Any]) -> list[Plot]:
    """The GDN form and softmax after two tokens, from the difference that was bounded."""
    found = checked(certificate, {"s"})
    if not found:
        return []
    form, softmax = found[0].split()
    reach = 1.5 * max(values["s"] for values in found[0].values)
    scores = grid(-reach, reach)

    def paint(axes: Any) -> None:
        for side, colour, line, label in ((form, SECOND, "--", "GDN form"), (softmax, FIRST, "-", "softmax")):
            axes.plot(scores, [side.at(s=score) for score in scores], line, color=colour, label=label)
            axes.plot(*zip(*side.points("s"), strict=True), "o", color=colour)
        axes.set_xlabel("score $s$")
        axes.set_ylabel("output for values 0 and 1")
        axes.legend(ncols=2, **ABOVE)

    caption = (
        "The two sides of the difference «form minus softmax» that obligations of kind inequality bound."
        " Dots: at those scores."
    )
    last, output = form.points("s")[-1]
    alt = f"At the score {last:g} the form gives {output:.3g} and softmax {softmax.points('s')[-1][1]:.3g}."
    return [draw("local", caption, alt, paint, (6.4, 3.4))]


def dilution(certificate: dict[str, Any]) -> list[Plot]:
    """The gap that keeps a share over the number of tokens, and a gap in proportion to that number."""
    found = checked(certificate, {"N", r"\omega"})
    if not found:
        return []
    needed, proportional = found[0].split()
    odds, last = found[0].values[0][r"\omega"], found[0].values[0]["N"]
    counts = ratios(2.0, last)

    def paint(axes: Any) -> None:
        sides = ((needed, FIRST, "-", "needed gap"), (proportional, SECOND, "--", "in proportion from N = 2"))
        for side, colour, line, label in sides:
            axes.plot(counts, [side.at(N=count) for count in counts], line, color=colour, label=label)
            axes.plot(*zip(*side.points("N"), strict=True), "o", color=colour)
        axes.loglog()
        plain_log_labels(axes.xaxis, "g")
        plain_log_labels(axes.yaxis, "g")
        axes.set_xlabel("tokens $N$")
        axes.set_ylabel("score gap")
        axes.legend(ncols=2, **ABOVE)

    caption = (
        f"Gap that keeps the weight {odds / (1 + odds):g} against N − 1 equal rivals, and the printed"
        " proportional growth: the two sides of the difference that the obligation of kind inequality"
        " bounds at the dots."
    )
    alt = f"At N = {last:g} the needed gap is {needed.at():.3g}, the other {proportional.at():.4g}."
    return [draw("dilution", caption, alt, paint, (6.4, 3.4))]


def powers(certificate: dict[str, Any]) -> list[Plot]:
    """Large entries of intermediate powers over the write strength."""
    found = checked(certificate, {"beta"})
    if not found or len(found) > 2:
        return []
    strengths = grid(0.05, 1.0)

    def paint(axes: Any) -> None:
        for entry, colour, line in zip(found, (FIRST, SECOND), ("-", "--"), strict=False):
            label = entry.labels[0].partition(" at ")[0]
            axes.plot(strengths, [entry.at(beta=beta) for beta in strengths], line, color=colour, label=label)
            axes.plot(*zip(*entry.points("beta"), strict=True), "o", color=colour)
        axes.plot(strengths, strengths, ":", color=INK, label="β, the bound on entries of the inverse")
        axes.set_yscale("log")
        plain_log_labels(axes.yaxis)
        axes.set_xlabel(r"write strength $\beta$")
        axes.set_ylabel("size of an entry")
        axes.legend(**ABOVE)

    caption = (
        "Entries of the factors of the product, by the formulas that obligations of kind inequality bound at"
        " the dots, against the stated bound on the entries of the inverse."
    )
    sizes = ", ".join(f"{entry.at():.3g} ({entry.labels[0].partition(' at ')[0]})" for entry in found)
    alt = f"At strength {found[0].values[0]['beta']:g} the entries are {sizes}."
    return [draw("powers", caption, alt, paint, (6.4, 4.0))]


def decay(certificate: dict[str, Any]) -> list[Plot]:
    """What a constant decay leaves over the number of tokens, with the powers that were bounded."""
    bounded = [item for item in checked(certificate, {"a"}) if item.term[:2] == ["^", ["v", "a"]]]
    if not bounded:
        return []
    bases = sorted({values["a"] for item in bounded for values in item.values})[:2]
    last = max(item.term[2] for item in bounded)
    counts = range(1, last + 1)

    def paint(axes: Any) -> None:
        for base, colour, line in zip(bases, (FIRST, SECOND), ("-", "--"), strict=False):
            left = [terms.value(["^", ["v", "a"], count], {"a": base}) for count in counts]
            axes.plot(counts, left, line, color=colour, label=f"decay {base:g}")
            dots = [(item.term[2], y) for item in bounded for x, y in item.points("a") if x == base]
            axes.plot(*zip(*dots, strict=True), "o", color=colour)
        axes.set_xscale("log")
        plain_log_labels(axes.xaxis, "g")
        axes.set_xlabel("tokens")
        axes.set_ylabel("share that is left")
        axes.legend(ncols=2, **ABOVE)

    caption = "Powers of a constant decay. Dots: those bounded by obligations of kind inequality."
    shown = "; ".join(f"{item.labels[0]}: {item.at():.3g}" for item in bounded)
    return [draw("decay", caption, f"{shown}.", paint)]


def temperature(certificate: dict[str, Any]) -> list[Plot]:
    """The two different weights of the example over the temperature."""
    variable = r"\tau"
    found = checked(certificate, {variable})
    if len(found) < 2:
        return []
    tried = [values[variable] for item in found for values in item.values]
    heats = ratios(min(tried), max(tried))

    def paint(axes: Any) -> None:
        for item, colour, line in zip(found[:2], (FIRST, SECOND), ("-", "--"), strict=True):
            weights = _curve(item.term, variable, heats)
            axes.plot(heats, weights, line, color=colour, label=item.labels[0].rpartition(": ")[2])
            axes.plot(*zip(*item.points(variable), strict=True), "o", color=colour)
        axes.set_xscale("log")
        plain_log_labels(axes.xaxis, "g")
        axes.set_xlabel(r"temperature $\tau$")
        axes.set_ylabel("weight")
        axes.legend(ncols=2, **ABOVE)

    example = found[0].labels[0].partition(" at ")[0]
    caption = f"Weights ({example}), by the formulas that obligations of kind inequality bound at the dots."
    low, high = (
        " and ".join(f"{item.at(**{variable: heat}):.3g}" for item in found[:2])
        for heat in (heats[0], heats[-1])
    )
    alt = f"The weights are {low} at temperature {heats[0]:g}, and {high} at {heats[-1]:g}."
    return [draw("temperature", caption, alt, paint)]


def gap(certificate: dict[str, Any]) -> list[Plot]:
    """The bound on the dropped mass over the score gap."""
    return _bound_over(certificate, {"Delta", "m"}, "Delta", "score gap Δ", "bound on the dropped mass")


def pooling(certificate: dict[str, Any]) -> list[Plot]:
    """Signal over interference in decibels over the pooled tokens."""
    return _bound_over(certificate, {"G"}, "G", "pooled tokens $G$", "signal over interference, dB")


def _bound_over(
    certificate: dict[str, Any], names: set[str], variable: str, across: str, up: str
) -> list[Plot]:
    """The last bounded formula in these names over one of them, between the values that were tried."""
    found = checked(certificate, names)
    if not found:
        return []
    bound = found[-1]
    points = sorted(bound.points(variable))
    places = grid(points[0][0] / 2, 1.25 * points[-1][0])
    fixed = ", ".join(f"{name} = {bound.values[0][name]:g}" for name in sorted(names - {variable}))

    def paint(axes: Any) -> None:
        axes.plot(places, [bound.at(**{variable: place}) for place in places], color=FIRST)
        axes.plot(*zip(*points, strict=True), "o", color=INK)
        if min(output for _, output in points) > 0:
            axes.set_yscale("log")
            plain_log_labels(axes.yaxis)
        axes.set_xlabel(across)
        axes.set_ylabel(up)

    where = f" for {fixed}" if fixed else ""
    caption = f"The formula{where} that obligations of kind inequality bound at the dots."
    shown = "; ".join(f"{output:.4g} at {place:g}" for place, output in points)
    return [draw("bound", caption, f"{up[0].upper()}{up[1:]}: {shown}.", paint)]


def _curve(term: list[Any], name: str, places: Sequence[float]) -> list[float]:
    return [terms.value(term, {name: place}) for place in places]

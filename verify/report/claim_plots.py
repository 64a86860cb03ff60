"""Figures of claims, drawn from the formulas and witnesses in their certificates; most claims have none."""

from collections.abc import Callable
from typing import Any

from verify.report import formula_plots, paired_plots, witness_plots
from verify.report.figure_data import evidence
from verify.report.plots import Plot

BY_CLAIM: dict[str, Callable[[dict[str, Any]], list[Plot]]] = {
    "delta.order": formula_plots.order,
    "delta.overwrite": witness_plots.overwrite,
    "expansion.leaves-hull": formula_plots.expansion,
    "gate.numbers": formula_plots.decay,
    "gdn.is-it-better": paired_plots.shares,
    "gdn.local-not-global": formula_plots.local,
    "kda.neumann-exact-unstable": formula_plots.powers,
    "rank.gap": witness_plots.ranks,
    "softmax.dilution": formula_plots.dilution,
    "softmax.temperature-limits": formula_plots.temperature,
    "sparse.gap-bound": formula_plots.gap,
    "sparse.pooling-snr": formula_plots.pooling,
}
BY_KIND: dict[str, Callable[[dict[str, Any], str], list[Plot]]] = {
    "centred-delta": witness_plots.outputs,
    "state-collision": witness_plots.collision,
}


def figures(certificate: dict[str, Any]) -> list[Plot]:
    """The figures of a claim: those made for its id, and those made for a kind of evidence it has."""
    plots = BY_CLAIM[certificate["id"]](certificate) if certificate["id"] in BY_CLAIM else []
    for place, item in enumerate(evidence(certificate)):
        if item["kind"] in BY_KIND:
            plots.extend(BY_KIND[item["kind"]](item["data"], f"{item['kind']}-{place}"))
    return plots

"""Figures of claims, drawn from the formulas and witnesses in their certificates; most claims have none."""

from collections.abc import Callable
from typing import Any

from verify.model.digest import canonical
from verify.report import (
    access_plots,
    formula_plots,
    gated_plots,
    paired_plots,
    refutation_plots,
    request_plots,
    spectrum_plots,
    stability_plots,
    witness_plots,
)
from verify.report.figure_data import evidence
from verify.report.plots import Plot

BY_CLAIM: dict[str, Callable[[dict[str, Any]], list[Plot]]] = {
    "delta.order": formula_plots.order,
    "delta.overwrite": witness_plots.overwrite,
    "expansion.leaves-hull": formula_plots.expansion,
    "gate.numbers": formula_plots.decay,
    "gdn.is-it-better": paired_plots.shares,
    "gdn.least-squares-query": stability_plots.substitutes,
    "gdn.local-not-global": formula_plots.local,
    "gdn.query-dependence": refutation_plots.two_states,
    "kda.ceiling": stability_plots.envelope,
    "kda.decay-wall": stability_plots.bits,
    "kda.neumann-exact-unstable": formula_plots.powers,
    "kda.no-shear-ever": refutation_plots.stretch,
    "memory.access-model": access_plots.reads,
    "rank.exponential-full": refutation_plots.determinants,
    "rank.finite-feature": refutation_plots.spectra,
    "rank.gap": witness_plots.ranks,
    "rank.softmax-same": refutation_plots.spectra,
    "softmax.dilution": formula_plots.dilution,
    "softmax.temperature-limits": formula_plots.temperature,
    "sparse.gap-bound": formula_plots.gap,
    "sparse.pooling-snr": formula_plots.pooling,
}
BY_KIND: dict[str, Callable[[dict[str, Any], str], list[Plot]]] = {
    "centred-delta": witness_plots.outputs,
    "diagonal-plus-rank-one": refutation_plots.step,
    "enclosed-collision": request_plots.enclosed,
    "gated-collision": gated_plots.merged,
    "kda-step": refutation_plots.step,
    "recall": refutation_plots.recall,
    "retention": request_plots.retention,
    "singular-values": spectrum_plots.floors,
    "state-collision": witness_plots.collision,
    "unread-score": refutation_plots.unread,
}


def figures(certificate: dict[str, Any]) -> list[Plot]:
    """The figures of a claim: those made for its id, and one for every witness of a kind that has them."""
    plots = BY_CLAIM[certificate["id"]](certificate) if certificate["id"] in BY_CLAIM else []
    drawn = set()
    for place, item in enumerate(evidence(certificate)):
        witness = canonical(item["data"])
        if item["kind"] in BY_KIND and witness not in drawn:
            drawn.add(witness)
            plots.extend(BY_KIND[item["kind"]](item["data"], f"{item['kind']}-{place}"))
    return plots

"""Figures of transitions and decays: eigenvalues, what is left of a token, bits of a stored decay."""

import math
from typing import Any

from verify.report import terms
from verify.report.figure_data import checked, evidence, grid, names_of, ratios
from verify.report.plots import ABOVE, FAINT, FIRST, INK, SECOND, Plot, draw, plain_log_labels

KEY, SUBSTITUTE = r"\kappa", "c^*"
DECAY_BITS, GATE_BITS = "bits of 1 − α in float32", "bits of g in float32"

CAPS = (0.9, 0.99, 0.999)
"""Caps on the decays for which the envelope is drawn."""
TIMES = (2, 3, 8)
"""Tokens at which the eigenvalue is drawn."""


def substitutes(certificate: dict[str, Any]) -> list[Plot]:
    """The eigenvalue along the centred key over x = s²‖κ‖², for κ and for c* in the place of the query."""
    wanted = {"t", "K", KEY, SUBSTITUTE}
    chains = [item["data"]["goal"] for item in evidence(certificate) if item["kind"] == "derivation"]
    goal = next((goal for goal in chains if names_of(goal["lhs"]) == wanted), None)
    if goal is None:
        return []
    sizes = grid(0.02, 8.0)

    def of_key(x: float, time: float) -> float:
        """The transition applied to κ of width 1 and length √x, with κ as the substitute."""
        length = math.sqrt(x)
        return terms.value(goal["lhs"], {"t": time, "K": 1.0, KEY: length, SUBSTITUTE: length}) / length

    def of_best(x: float, time: float) -> float:
        return terms.value(goal["rhs"], {"t": time, KEY: 1.0, "s^2": 1.0, "n": x})

    def paint(axes: Any) -> None:
        axes.axhspan(-1.0, 1.0, color=FAINT, linewidth=0, alpha=0.6)
        for substitute, colour, word in ((of_key, SECOND, r"\kappa"), (of_best, FIRST, "c^*")):
            for time, line in zip(TIMES, ("-", "--", ":"), strict=True):
                values = [substitute(x, time) for x in sizes]
                axes.plot(sizes, values, line, color=colour, label=rf"$\hat q={word}$, $t={time}$")
        axes.set_ylim(-4.0, 1.2)
        axes.set_xlabel(r"$x=s^2\|\kappa\|^2$, $s=1$")
        axes.set_ylabel(r"eigenvalue along $\kappa$")
        axes.legend(ncols=2, **ABOVE)

    caption = (
        "The transition along the centred key with κ and with c* in the place of the query: left side of the"
        " derived equation with κ put in, and its right side. Between −1 and 1 (shaded) it is stable."
    )
    last, time = sizes[-1], TIMES[0]
    alt = f"At x = {last:g} and t = {time} they are {of_key(last, time):.3g} and {of_best(last, time):.3g}."
    return [draw("substitutes", caption, alt, paint, (6.4, 4.2))]


def envelope(certificate: dict[str, Any]) -> list[Plot]:
    """What the proved cap leaves of a token over the steps since, for constant caps on the decays."""
    settings = [
        item["data"]["step"]["setting"] for item in evidence(certificate) if item["kind"] == "induction"
    ]
    rules = {rule["name"]: rule["rhs"] for setting in settings for rule in setting["definitions"]}
    if not {"one step more", "no step yet"} <= rules.keys():
        return []
    steps = [round(step) for step in ratios(1.0, 4096.0)]
    curves = {cap: _caps(rules, cap, steps[-1]) for cap in CAPS}

    def paint(axes: Any) -> None:
        for (cap, curve), colour, line in zip(
            curves.items(), (SECOND, FIRST, INK), (":", "--", "-"), strict=True
        ):
            axes.plot(
                steps, [curve[step] for step in steps], line, color=colour, label=f"decays at most {cap:g}"
            )
        axes.loglog()
        axes.set_ylim(1e-8, 2.0)
        plain_log_labels(axes.xaxis, "g")
        plain_log_labels(axes.yaxis)
        axes.set_xlabel("steps since the token")
        axes.set_ylabel("share of its length left at most")
        axes.legend(**ABOVE)

    caption = (
        "Root of the product of squared caps, by the two rules in the certificate («no step yet», «one step"
        " more»): no query reads more of the token than this."
    )
    alt = "; ".join(f"at most {curve[1000]:.3g} after 1000 steps of {cap:g}" for cap, curve in curves.items())
    return [draw("envelope", caption, f"{alt[0].upper()}{alt[1:]}.", paint, (6.4, 3.8))]


def _caps(rules: dict[str, Any], cap: float, last: int) -> list[float]:
    """Roots of the products for 0 … ``last`` steps."""
    products = [terms.value(rules["no step yet"], {})]
    for _ in range(last):
        products.append(terms.value(rules["one step more"], {"a": cap, "P": products[-1]}))
    return [math.sqrt(product) for product in products]


def bits(certificate: dict[str, Any]) -> list[Plot]:
    """Bits that float32 keeps of 1 − α over the length of the memory, and of the gate at one length."""
    found = {item.labels[0]: item for item in checked(certificate, {"x"})}
    if not {DECAY_BITS, GATE_BITS} <= found.keys():
        return []
    decay, gate = found[DECAY_BITS], found[GATE_BITS]
    length = 1 / decay.values[0]["x"]
    lengths = ratios(length / 1e4, length * 40)

    def paint(axes: Any) -> None:
        axes.plot(lengths, [decay.at(x=1 / long) for long in lengths], color=SECOND, label=r"$\alpha$ stored")
        axes.plot([length], [decay.at()], "o", color=SECOND)
        axes.plot([length], [gate.at()], "s", color=FIRST, label=r"$g=\ln\alpha$ stored")
        axes.set_xscale("log")
        plain_log_labels(axes.xaxis)
        axes.set_ylim(0.0, 25.0)
        axes.set_xlabel("steps over which 1 % is kept")
        axes.set_ylabel("bits in float32")
        axes.legend(ncols=2, **ABOVE)

    caption = (
        "Bits left of the decay and of the gate, by the formulas that obligations of kind inequality bound"
        " at the dots."
    )
    alt = f"At {length:g} steps {decay.at():.3g} bits of 1 − α and {gate.at():.4g} of the gate."
    return [draw("bits", caption, alt, paint)]

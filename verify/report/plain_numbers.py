"""The plain numbers of a kernel certificate and what others' rules say, for its page and for the terminal."""

from typing import Any

from verify.report import gradients
from verify.report.show import number

COLUMNS = (
    ("max_abs_error", "max abs", "largest absolute error"),
    ("max_rel", "max rel", "largest error over the size of the reference, where that is not 0"),
    ("max_ulp", "max ulp", "largest error in units in the last place of the dtype that came back"),
    ("median_ulp", "median ulp", "largest median over an input"),
    ("rms_ratio", "RMS", "RMS of the error over RMS of the reference, whole tensor"),
    ("rms_block", "RMS, 16 tokens", "the same over 16 tokens of one head"),
    ("rms_token", "RMS, token", "the same over one token of one head"),
    ("bias", "bias", "mean of the signed error"),
    ("bias_share", "bias / RMS", "bias over the RMS of the error: 0 for either sign, ±1 when all err alike"),
    ("outward_share", "outward", "likewise, errors away from 0 positive: truncation gives a negative number"),
    ("at_zero", "at 0", "largest absolute error where the reference is 0"),
    ("nonfinite", "not finite", "values that are not finite"),
)
"""Of each number: its name in a certificate, its heading, and what it is."""
_IN_A_LINE = ("max_abs_error", "max_rel", "max_ulp", "rms_ratio", "bias_share")


def lines(data: dict[str, Any]) -> list[str]:
    """The numbers and the rules, for the terminal; none for a certificate without them."""
    names = {name: heading for name, heading, _ in COLUMNS}
    said = []
    for tensor, row in rows(data):
        shown = [f"{names[name]} {_value(row, name)}" for name in _IN_A_LINE if name in row]
        if "rms_token" in row:
            shown.append(f"RMS of 16 tokens {_value(row, 'rms_block')}, of one {_value(row, 'rms_token')}")
        if row["nonfinite"]["value"]:
            shown.append(f"{row['nonfinite']['value']} not finite in one input")
        said.append(f"  plain     {tensor}: {', '.join(shown)}")
    rules = [
        f"{rule['name']} {_verdict(rule)}" for rule in data.get("rules", []) if rule["passes"] is not None
    ]
    return said + ([f"  others' rules on these inputs: {'; '.join(rules)}"] if rules else [])


def _value(row: dict[str, Any], name: str) -> str:
    return number(row[name]["value"])


def rows(data: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The tensors with their numbers: the output, the state, then gradients in the order of a call."""
    order = ["output", "state", *(f"gradient of {field}" for field in gradients.FIELDS)]
    found = data.get("plain", {})
    return [(tensor, found[tensor]) for tensor in order if tensor in found]


def refuted(data: dict[str, Any]) -> list[str]:
    """The classes of the inputs that our own tolerance refutes, one per input."""
    entries = (*data["cells"], *data.get("gradients", []))
    return [entry["class"] for entry in entries if entry["verdict"] == "refuted"]


def _verdict(rule: dict[str, Any]) -> str:
    if rule["passes"]:
        return "passes"
    return f"fails on {rule['failing']} of {rule['inputs']} ({', '.join(rule['classes'][:3])}{_more(rule)})"


def _more(rule: dict[str, Any]) -> str:
    return ", …" if len(rule["classes"]) > 3 else ""

"""Checks a kernel certificate without the code that made it: schema, verdicts, samples.

Verdicts are derived again from the figures, samples from their inputs (`kernel_samples`).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from verify.checkers import kernel_summaries
from verify.checkers.kernel_samples import sample_faults
from verify.model import certificate
from verify.model.verdict import Verdict, weakest

_REFERENCES = {"float64": "float64", "mpmath": "mpmath", "ball": "ball", "exact": "rational"}
"""What judges a float cell, by the reference asked for."""
_FIGURES = ("worst_ratio", "worst_over_deviation", "max_abs_error", "rms_ratio")
_ROUNDING = 1e-4
"""Figures are written with six significant digits."""


def recheck(data: dict[str, Any]) -> list[str]:
    """The faults of a kernel certificate, as sentences; empty when there is none.

    Args:
        data: a certificate as ``verify.model.certificate.read`` gives it.
    """
    faults = _schema_faults(data)
    if faults:
        return faults
    faults += [fault for i, cell in enumerate(data["cells"]) for fault in _cell_faults(i, cell)]
    faults += [
        fault for i, cell in enumerate(data.get("gradients", [])) for fault in _gradient_faults(i, cell)
    ]
    faults += _worst_case_faults("worst_case", data.get("worst_case"), data["cells"])
    faults += _worst_case_faults(
        "gradient_worst_case", data.get("gradient_worst_case"), data.get("gradients", [])
    )
    faults += _reference_faults(data)
    faults += _class_faults(data["classes"], data["cells"])
    faults += _verdict_faults(data)
    faults += kernel_summaries.faults(data)
    faults += [fault for i, sample in enumerate(data["samples"]) for fault in sample_faults(i, sample)]
    return faults


def _schema_faults(data: dict[str, Any]) -> list[str]:
    import jsonschema

    validator = jsonschema.Draft202012Validator(certificate.schema(certificate.KERNEL_FORMAT))
    found = sorted(validator.iter_errors(data), key=lambda error: list(map(str, error.absolute_path)))
    return [
        f"{'.'.join(map(str, error.absolute_path)) or 'certificate'}: {error.message[:200]}"
        for error in found
    ]


def _cell_faults(index: int, cell: dict[str, Any]) -> Iterable[str]:
    """A cell's verdict and largest ratio against its own figures."""
    where = f"cells.{index} ({cell['class']})"
    measures = [cell[part] for part in ("output", "state") if cell[part] is not None]
    unjudged = cell["problem"] is not None and cell["problem"]["kind"] == "not-judged"
    broken = (cell["problem"] is not None and not unjudged) or any(
        not float(m["worst_ratio"]) <= 1 or m["nonfinite"] for m in measures
    )
    broken = broken or any(not ratio <= 1 for ratio in _worst_case(cell))
    expected = (
        Verdict.REFUTED if broken else Verdict.SAMPLED if measures and not unjudged else Verdict.UNDECIDED
    )
    if cell["verdict"] != expected:
        yield f"{where}: the verdict is {cell['verdict']}, its figures say {expected}"
    if cell["output"] is not None:
        tokens = cell["output"]["per_token"]
        lengths = {len(tokens["error"]), len(tokens["tolerance"])}
        if lengths != {cell["shape"]["T"]} and lengths != {0}:
            yield f"{where}: per_token has {sorted(lengths)} entries for T = {cell['shape']['T']}"
        ratio = max(
            (_ratio(*pair) for pair in zip(tokens["error"], tokens["tolerance"], strict=False)), default=0.0
        )
        if not _close(ratio, float(cell["output"]["worst_ratio"])):
            stated = cell["output"]["worst_ratio"]
            yield f"{where}: the largest ratio per token is {ratio:.6g}, worst_ratio says {stated}"


def _gradient_faults(index: int, cell: dict[str, Any]) -> Iterable[str]:
    """A gradient cell's verdict against its own figures."""
    kind = None if cell["problem"] is None else cell["problem"]["kind"]
    wrong = any(not float(m["worst_ratio"]) <= 1 or m["nonfinite"] for m in cell["inputs"].values())
    wrong = wrong or any(not ratio <= 1 for ratio in _worst_case(cell))
    judged = Verdict.SAMPLED if cell["inputs"] and kind is None else Verdict.UNDECIDED
    expected = Verdict.REFUTED if wrong or kind not in (None, "not-judged") else judged
    if cell["verdict"] != expected:
        where = f"gradients.{index} ({cell['class']})"
        yield f"{where}: the verdict is {cell['verdict']}, its figures say {expected}"


def _worst_case(cell: dict[str, Any]) -> list[float]:
    """A cell's errors over the proved bound."""
    return [float(ratio) for ratio in (cell.get("worst_case") or {}).values() if ratio is not None]


def _worst_case_faults(
    name: str, stated: dict[str, Any] | None, cells: list[dict[str, Any]]
) -> Iterable[str]:
    """What is said of the proved bound against the cells."""
    ratios = [ratio for cell in cells for ratio in _worst_case(cell)]
    if stated is None or not stated["derived"]:
        if ratios:
            yield f"{name}: a bound is said not to be derived, but cells are held to one"
        return
    worst = max(ratios, key=lambda ratio: (ratio != ratio, ratio), default=None)
    said = None if stated["worst_ratio"] is None else float(stated["worst_ratio"])
    if str(worst) != str(said):
        yield f"{name}: worst_ratio is {said}, the cells say {worst}"
    if stated["met"] != (None if worst is None else worst <= 1):
        yield f"{name}: met is {stated['met']} at a largest ratio of {worst}"


def _reference_faults(data: dict[str, Any]) -> Iterable[str]:
    """What is said of the references together against the cells, and that every stand-in has its reason."""
    stated = data.get("reference")
    if stated is None:
        return
    entries = [*data["cells"], *data.get("gradients", [])]
    used = Counter(entry["reference"] for entry in entries if entry.get("reference") is not None)
    if used != stated["used"]:
        yield f"reference: {stated['used']} are said to judge, the cells say {dict(used)}"
    wanted = _REFERENCES[stated["asked"]]
    for entry in entries:
        if entry.get("reference") not in (None, "exact", wanted) and not entry["reference_note"]:
            said = f"{entry['reference']} judges a cell of class {entry['class']}"
            yield f"reference: {said} and not {wanted}, without a reason"
    fewest: dict[str, float] = {}
    for entry in entries:
        for name, digits in (entry.get("digits") or {}).items():
            label = name if "output" in entry else f"gradient of {name}"
            fewest[label] = min(fewest.get(label, float("inf")), digits["fewest"])
    if fewest != {name: digits["fewest"] for name, digits in (stated["digits"] or {}).items()}:
        yield f"reference: {stated['digits']} digits are said to stand, the cells say {fewest}"


def _ratio(error: Any, tolerance: Any) -> float:
    error, tolerance = float(error), float(tolerance)
    if error == 0:
        return 0.0
    return error / tolerance if tolerance else float("inf")


def _close(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= _ROUNDING * max(abs(a), abs(b))


def _class_faults(classes: Sequence[dict[str, Any]], cells: Sequence[dict[str, Any]]) -> Iterable[str]:
    """Every class row against the cells of that class."""
    if {row["name"] for row in classes} != {cell["class"] for cell in cells}:
        yield "classes: the names are not those of the cells"
    for row in classes:
        own = [cell for cell in cells if cell["class"] == row["name"]]
        if row["cells"] != len(own):
            yield f"class {row['name']}: {row['cells']} cells stated, {len(own)} listed"
        if row["verdict"] != weakest(Verdict(cell["verdict"]) for cell in own):
            yield f"class {row['name']}: the verdict {row['verdict']} is not that of its cells"
        figures = [cell[part] for cell in own for part in ("output", "state") if cell[part] is not None]
        for name in _FIGURES:
            worst = max((float(f[name]) for f in figures), default=None)
            stated = None if row[name] is None else float(row[name])
            if worst != stated and (worst is None or stated is None or not _close(worst, stated)):
                yield f"class {row['name']}: {name} is {row[name]}, its cells say {worst}"


def _verdict_faults(data: dict[str, Any]) -> Iterable[str]:
    judged = (*data["cells"], *data.get("gradients", []), *data["properties"])
    words = [item["verdict"] for item in judged if item["verdict"] is not None]
    expected = weakest(map(Verdict, words))
    if data["verdict"] != expected:
        yield f"the verdict is {data['verdict']}, the cells and properties say {expected}"
    if (data["verdict"] == Verdict.REFUTED) != bool(data["findings"]):
        yield f"the verdict is {data['verdict']} with {len(data['findings'])} findings"

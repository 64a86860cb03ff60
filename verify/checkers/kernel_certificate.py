"""Checks a kernel certificate without the code that made it: schema, verdicts, samples.

Verdicts are derived again from the figures. Samples are computed again from their literal inputs by the
definition, S = Diag(e^g) S; S = S + beta k (v - S^T k)^T, or S + k v^T where nothing is erased, or for GDN-2
S + k (w v - S^T (b k))^T, or for DPLR S = Diag(e^g) S + b (a^T S) + k v^T; o = S^T (scale q); or for softmax
attention o = sum_j e^(s_j) v_j / sum_j e^(s_j), s_j = scale q^T k_j; for one value column, in rationals or in
mpmath's intervals.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from verify.checkers import kernel_summaries
from verify.model import certificate
from verify.model.verdict import Verdict, weakest

Number = Callable[[str], Any]
Exponential = Callable[[Any], Any]
_PRECISION = 200
_REFERENCES = {"float64": "float64", "mpmath": "mpmath", "ball": "ball", "exact": "rational"}
"""What judges a float cell, by the reference asked for."""
_RESET = -1000
_PER_CHANNEL = ("kda", "dplr", "gdn2")
_SOFTMAX = {"softmax": (0, None), "softmax_window": (16, None), "softmax_sink": (0, (0.5).hex())}
"""How many tokens a query sees, 0 for all, and a logit more that has no value."""
_FURTHER = {"dplr": ("a", "b"), "gdn2": ("b", "w")}
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


def sample_faults(index: int, sample: dict[str, Any]) -> list[str]:
    """A sample's reference and verdict, computed again from its literal inputs."""
    where = f"samples.{index} ({sample['class']})"
    inputs = sample["inputs"]
    tokens, channels = sample["where"]["t"] + 1, len(inputs["q"])
    mechanism = sample["mechanism"]
    further = _FURTHER.get(mechanism, ())
    if set(further) != inputs.keys() & {"a", "b", "w"}:
        return [f"{where}: the inputs are not those of {mechanism}"]
    rows = {len(inputs[name]) for name in ("k", "v", "g", "beta", *further)}
    vectors = [row for name in ("k", *further) if name != "w" for row in inputs[name]]
    widths = {len(row) for row in (*vectors, inputs["initial_state"])}
    gates = {len(row) for row in inputs["g"]}
    if rows != {tokens} or widths != {channels} or gates != {channels if mechanism in _PER_CHANNEL else 1}:
        return [f"{where}: the inputs do not have the sizes of token {tokens - 1} and {channels} channels"]
    exact = sample["reference_kind"] == "exact"
    low, high = _exactly(inputs, mechanism) if exact else _enclosed(inputs, mechanism)
    computed, reference, bound, tolerance = (
        Fraction(float.fromhex(sample[name]))
        for name in ("computed", "reference", "bound_on_reference", "tolerance")
    )
    faults = []
    if max(abs(reference - low), abs(reference - high)) > bound:
        faults.append(
            f"{where}: the reference {float(reference)!r} is not within its bound of {float(low)!r}"
        )
    if exact and (bound or tolerance):
        faults.append(
            f"{where}: an exact sample has no bound and no tolerance, but {float(tolerance):g} is stated"
        )
    nearest, farthest = sorted((abs(computed - low), abs(computed - high)))
    # The stated tolerance contains the reference's own error, which the sample's verdict counts once more.
    within = Verdict.SAMPLED if farthest <= tolerance + bound else Verdict.REFUTED
    if sample["verdict"] != within and not nearest <= tolerance + bound <= farthest + 2 * bound:
        faults.append(f"{where}: the verdict is {sample['verdict']}, computed again it is {within}")
    return faults


def _exactly(inputs: dict[str, Any], mechanism: str) -> tuple[Fraction, Fraction]:
    """The output in rationals; exponents are 0 or at most -1000, where e^x is 0 in every format."""

    def exponential(exponent: Fraction) -> Fraction:
        if exponent != 0 and exponent > _RESET:
            raise ValueError(
                f"an exact sample has the exponent {float(exponent)}, neither 0 nor below {_RESET}"
            )
        return Fraction(int(exponent == 0))

    result = _output(inputs, mechanism, _fraction, exponential)
    return result, result


def _enclosed(inputs: dict[str, Any], mechanism: str) -> tuple[Fraction, Fraction]:
    """An interval around the output, as two rationals."""
    from mpmath import iv

    saved = iv.prec
    iv.prec = _PRECISION
    try:

        def number(text: str) -> Any:
            fraction = _fraction(text)
            return iv.mpf(fraction.numerator) / fraction.denominator

        result = iv.mpf(_output(inputs, mechanism, number, iv.exp))
        low, high = result._mpi_
    finally:
        iv.prec = saved
    return _of_mpf(low), _of_mpf(high)


def _output(inputs: dict[str, Any], mechanism: str, number: Number, exponential: Exponential) -> Any:
    """One output for one head and one value column, in any arithmetic."""
    keys = [[number(x) for x in row] for row in inputs["k"]]
    query = [number(inputs["scale"]) * number(x) for x in inputs["q"]]
    values = [number(x) for x in inputs["v"]]
    if mechanism in _SOFTMAX:
        window, sink = _SOFTMAX[mechanism]
        logits = [_dot(query, key) for key in keys][-window:]
        values = values[-window:]
        if sink is not None:
            logits, values = [*logits, number(sink)], [*values, number((0.0).hex())]
        return _attended(logits, values, exponential)
    if mechanism == "linear_normalised":
        products = [_dot(query, key) for key in keys]
        return _dot(products, values) / sum(products, start=0)
    state = [number(x) for x in inputs["initial_state"]]
    for t, (key, row, value) in enumerate(zip(keys, inputs["g"], values, strict=True)):
        decay = [exponential(number(x)) for x in row]
        decay = decay if len(decay) > 1 else decay * len(key)
        decayed = [a * s for a, s in zip(decay, state, strict=True)]
        further = {name: inputs[name][t] for name in ("beta", *_FURTHER.get(mechanism, ()))}
        out, held, written = _token(mechanism, key, value, further, state, decayed, number)
        state = [s + o * held + k * written for s, o, k in zip(decayed, out, key, strict=True)]
    return _dot(query, state)


def _token(
    mechanism: str,
    key: list[Any],
    value: Any,
    further: dict[str, Any],
    state: list[Any],
    decayed: list[Any],
    number: Number,
) -> tuple[list[Any], Any, Any]:
    """Along which vector how much is removed, or added, and how much is written along the key."""
    if mechanism == "dplr":
        read = [number(x) for x in further["a"]]
        return [number(x) for x in further["b"]], _dot(read, state), value
    if mechanism == "gdn2":
        held = _dot([number(x) * k for x, k in zip(further["b"], key, strict=True)], decayed)
        return key, -held, number(further["w"]) * value
    beta = number(further["beta"])
    erases = mechanism in ("delta", "gdn", "kda")
    return key, -beta * _dot(key, decayed) if erases else 0 * beta, beta * value


def _attended(logits: list[Any], values: list[Any], exponential: Exponential) -> Any:
    """The values averaged with the exponentials as weights; any shift of the logits gives the same."""
    largest = logits[0]
    for logit in logits[1:]:
        largest = logit if logit > largest else largest
    weights = [exponential(logit - largest) for logit in logits]
    return _dot(weights, values) / sum(weights, start=0)


def _dot(x: list[Any], y: list[Any]) -> Any:
    return sum((a * b for a, b in zip(x, y, strict=True)), start=0)


def _fraction(text: str) -> Fraction:
    return Fraction(float.fromhex(text))


def _of_mpf(value: tuple[int, int, int, int]) -> Fraction:
    """mpmath's (sign, mantissa, exponent, bits) as a rational."""
    sign, mantissa, exponent, _ = value
    magnitude = Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
    return -magnitude if sign else magnitude

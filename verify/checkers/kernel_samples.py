"""Checks a sample of a kernel certificate: computed again from its literal inputs by the definition.

S = Diag(e^g) S; S = S + beta k (v - S^T k)^T, or S + k v^T where nothing is erased, or for GDN-2
S + k (w v - S^T (b k))^T, or for DPLR S = Diag(e^g) S + b (a^T S) + k v^T; o = S^T (scale q); or for softmax
attention o = sum_j e^(s_j) v_j / sum_j e^(s_j), s_j = scale q^T k_j; for one value column, in rationals or in
mpmath's intervals.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from verify.model.verdict import Verdict

Number = Callable[[str], Any]
Exponential = Callable[[Any], Any]
_PRECISION = 200
_RESET = -1000
_PER_CHANNEL = ("kda", "dplr", "gdn2")
_SOFTMAX = {"softmax": (0, None), "softmax_window": (16, None), "softmax_sink": (0, (0.5).hex())}
"""How many tokens a query sees, 0 for all, and a logit more that has no value."""
_FURTHER = {"dplr": ("a", "b"), "gdn2": ("b", "w")}


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

"""Whether a kernel inverts I + L by powers of L, which grow past the solution for nearly identical keys."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.inputs.probes import probe
from verify.audit.judge import Judgement
from verify.audit.laboratory import Finding, Laboratory
from verify.numbers.formats import Format, format_named, round_array

_STRENGTHS = (0.25, 0.5, 0.75, 0.9, 0.97, 0.99)
_FORMATS = ("float16", "bfloat16", "float32")
_CHUNKS = (16, 32, 64)
_TOKENS = 64
_AGREEMENT = 10.0
"""Largest factor between the kernel's and the model's error: an unstable algorithm amplifies rounding errors
whose signs depend on details no model shares, so their sizes agree in order of magnitude."""

Inverse = Callable[[Array, Format], Array]


def explain_inverse(lab: Laboratory, failing: Sequence[Judgement]) -> Finding | None:
    """Compare the error over β, for one key at every token, with that of a doubling inverse."""
    tokens = lab.length(_TOKENS)
    if tokens > _TOKENS or lab.convention.form != "chunked" or not lab.convention.kind.erases:
        return None
    key = np.eye(8)[0]
    cases = [probe(lab.convention, lab.dtype, tokens, key=key, beta=b, gate=-1e-3) for b in _STRENGTHS]
    observed = {b: lab.judge(case) for b, case in zip(_STRENGTHS, cases, strict=True)}
    errors = {b: _error(j) for b, j in observed.items()}
    failed = [b for b, j in observed.items() if j.failed]
    if len(failed) < 2:
        return None
    best: tuple[float, str, int, dict[float, float]] | None = None
    for name in _FORMATS:
        for chunk in _CHUNKS:
            model = {b: model_error(c, chunk, name, doubling) for b, c in zip(_STRENGTHS, cases, strict=True)}
            factor = max(_factor(errors[b], model[b]) for b in failed)
            quiet = all(
                model[b] <= _AGREEMENT * _tolerance(observed[b]) for b in _STRENGTHS if b not in failed
            )
            if factor <= _AGREEMENT and quiet and (best is None or factor < best[0]):
                best = factor, name, chunk, model
    if best is None:
        return None
    factor, name, chunk, model = best
    stable = {b: model_error(c, chunk, name, substitution) for b, c in zip(_STRENGTHS, cases, strict=True)}
    worst = max(failed, key=lambda b: min(errors[b], 1e300))
    if not stable[worst] * _AGREEMENT <= model[worst]:
        return None
    plain = lab.judge(probe(lab.convention, lab.dtype, tokens, gate=-1e-3))
    table = "; ".join(f"β = {b}: {errors[b]:.2g}, model {model[b]:.2g}" for b in failed)
    return Finding(
        "unstable triangular inverse",
        "(I + L)⁻¹ formed by repeated squaring, (I − L)(I + L²)(I + L⁴)…: its intermediates outgrow the "
        "result when keys are nearly identical and β is slightly below 1; use forward substitution",
        f"largest output error for one key at {tokens} tokens, kernel beside a float64 model whose inverse "
        f"doubles in {name} over chunks of {chunk}: {table} (they agree within a factor {factor:.2g}); "
        f"the same model with forward substitution in {name}: {stable[worst]:.2g} at β = {worst}; "
        f"random keys: {_error(plain):.2g}; {len(failing)} cells fail",
    )


def model_error(case: Case, chunk: int, name: str, inverse: Inverse) -> float:
    """Largest output error of a chunked float64 kernel whose inverse alone is computed in format ``name``."""
    with np.errstate(over="ignore", invalid="ignore"):
        difference = np.abs(
            _chunked(case, chunk, inverse, format_named(name)) - _chunked(case, chunk, _exact, None)
        )
    return float(difference.max()) if np.isfinite(difference).all() else math.inf


def doubling(lower: Array, target: Format) -> Array:
    """``(I − L)(I + L²)(I + L⁴)…``, every product rounded to the format."""
    eye = np.eye(len(lower))
    power = round_array(target, lower)
    inverse = eye - power
    for _ in range((len(lower) - 1).bit_length() - 1):
        power = round_array(target, power @ power)
        inverse = round_array(target, inverse @ round_array(target, eye + power))
    return inverse


def substitution(lower: Array, target: Format) -> Array:
    """``(I + L)⁻¹`` row by row, every row rounded to the format."""
    lower = round_array(target, lower)
    inverse = np.eye(len(lower))
    for i in range(1, len(lower)):
        inverse[i] = round_array(target, inverse[i] - lower[i, :i] @ inverse[:i])
    return inverse


def _exact(lower: Array, target: Format | None) -> Array:
    inverse: Array = np.linalg.inv(np.eye(len(lower)) + lower).astype(np.float64)
    return inverse


def _chunked(case: Case, chunk: int, inverse: Callable[..., Array], target: Format | None) -> Array:
    """Outputs ``[T, V]`` of a case with one sequence, one head and one constant gate."""
    q, k, v = case.scale * case.q[0, :, 0], case.k[0, :, 0], case.v[0, :, 0]
    beta, gate = case.strength[0, :, 0, None], float(case.log_decay.flat[0])
    state = np.zeros((k.shape[1], v.shape[1]))
    outputs: list[Array] = []
    for start in range(0, len(q), chunk):
        rows = slice(start, start + chunk)
        steps = np.arange(len(q[rows]))
        decay = np.tril(np.exp(gate * np.maximum(steps[:, None] - steps, 0)))
        into = np.exp(gate * (steps + 1))[:, None]
        lower = np.tril(beta[rows] * (k[rows] @ k[rows].T) * decay, -1)
        writes = inverse(lower, target) @ (beta[rows] * (v[rows] - (into * k[rows]) @ state))
        outputs.append((into * q[rows]) @ state + ((q[rows] @ k[rows].T) * decay) @ writes)
        state = into[-1] * state + (k[rows] * decay[-1][:, None]).T @ writes
    return np.concatenate(outputs)


def _error(judgement: Judgement) -> float:
    if judgement.output is None or judgement.output.nonfinite:
        return math.inf
    return float(np.abs(judgement.output.difference).max())


def _tolerance(judgement: Judgement) -> float:
    return float(judgement.yardstick.output_tolerance.max())


def _factor(a: float, b: float) -> float:
    """By how much two errors differ; 1 when neither is finite."""
    if math.isinf(a) or math.isinf(b):
        return 1.0 if a == b else math.inf
    return max(a, b) / min(a, b) if min(a, b) > 0 else math.inf

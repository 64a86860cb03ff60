"""Why gradients are wrong although outputs are right: what a backward pass alone computes."""

import math

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.gradient.functional import Cotangent, norm
from verify.audit.gradient.judge import GradientJudgement
from verify.audit.inputs.probes import probe
from verify.audit.laboratory import Finding, Laboratory
from verify.numbers.formats import format_named, round_array

_TILES = (16, 32, 64, 128, 256)
_PARTIAL = 20
_LOWEST, _HIGHEST, _BISECTIONS = 1.0, 1000.0, 24
_FACTOR = 100.0
"""Largest product of what multiplies the exponential: it moves the threshold by its logarithm."""
_RESET = -1000.0
_ATTENDED = 8
_GROWTH = (1.0, 2.0**10, 2.0**20)


def explain_low_logits(lab: Laboratory, where: str) -> Finding | None:
    """Whether the gradients of attention stop being finite where e^-logsumexp leaves the compute format."""
    if not lab.convention.kind.features >= {"logits"}:
        return None
    tokens = lab.length(_PARTIAL)
    low, high = _LOWEST, _HIGHEST
    if not _finite(lab, tokens, low) or _finite(lab, tokens, high):
        return None
    for _ in range(_BISECTIONS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _finite(lab, tokens, middle) else (low, middle)
    name = lab.convention.resolve(lab.convention.compute_dtype, lab.dtype)
    limit = math.log(float(format_named(name).max))
    if abs(high - limit) > math.log(_FACTOR):
        return None
    whole = [n for n in _TILES if lab.length(n) == n and _finite(lab, n, 2 * high)]
    evidence = (
        f"every logit at -{high:.5g} and T = {tokens}: gradients are not finite, and finite above that; "
        f"ln(max {name}) = {limit:.5g}; {where}"
    )
    if not whole:
        return Finding(
            "exponential of −logsumexp formed alone",
            "backward, e^−lse overflows where every logit is low; subtract the logsumexp before exp",
            evidence,
        )
    return Finding(
        "pads of a tile score 0 in the backward pass",
        f"gradients are finite where T is a multiple of {min(whole)}: beyond the sequence a tile scores 0, "
        f"not −inf, and e^(0 − lse) overflows; mask before exp",
        f"{evidence}; finite at T = {', '.join(map(str, whole))} with logits twice as low",
    )


def _finite(lab: Laboratory, tokens: int, depth: float) -> bool:
    """Whether gradients are finite when every logit is -``depth``."""
    case = probe(lab.convention, lab.dtype, tokens, key=np.eye(8)[0])
    queries = np.zeros_like(case.q)
    queries[..., 0] = -depth / case.scale
    found = lab.run_gradients(case.replace(q=round_array(format_named(lab.dtype), queries))).gradients
    return bool(found) and all(np.isfinite(x).all() for x in found.values())


def explain_subtraction(lab: Laboratory, where: str) -> Finding | None:
    """Whether gradients of late gates feel the values before a full reset, which they do not depend on."""
    if not lab.convention.kind.gate:
        return None
    tokens = lab.length(_TILES[2])
    middle = tokens // 2
    case = probe(lab.convention, lab.dtype, tokens, gate=(-0.1, -0.01))
    gates = np.array(case.g)
    gates[:, middle] = _RESET
    case = case.replace(g=gates)
    plain = lab.judge_gradients(case)
    if "g" not in plain.measures or plain.measures["g"].failed:
        return None
    late = {growth: _late(lab, _grown(case, middle, growth), middle) for growth in _GROWTH}
    moved = [norm(case, "g", late[growth] - late[1.0]) for growth in _GROWTH[1:]]
    allowed = plain.yardstick.tolerances["g"][:, middle + 1 :]
    sizes = [float((x / allowed).max()) for x in moved]
    if not all(np.isfinite(sizes)) or sizes[1] <= 1 or sizes[1] < 16 * sizes[0]:
        return None
    return Finding(
        "sums of later gates formed by subtracting earlier ones",
        "backward, the gradient of a gate after a full reset changes with the values before it, which it "
        "does not depend on, in proportion to them: a suffix sum formed as the total less a prefix; sum from "
        "the end",
        f"T = {tokens}, reset at token {middle}: values before it times 2^10 and 2^20 move the gradients of "
        f"later gates by {sizes[0]:.3g} and {sizes[1]:.3g} tolerances; {where}",
    )


def _grown(case: Case, middle: int, growth: float) -> Case:
    values = np.array(case.v)
    values[:, :middle] *= growth
    return case.replace(v=values)


def _late(lab: Laboratory, case: Case, middle: int) -> Array:
    gradients: Array = lab.run_gradients(case).gradients["g"][:, middle + 1 :]
    return gradients


def explain_crossed_heads(lab: Laboratory, where: str) -> Finding | None:
    """Whether gradients of one head move with the inputs of another one, which they do not depend on."""
    c = lab.convention
    tokens = lab.length((c.chunk_size or 16) + 8)
    case = probe(c, lab.dtype, tokens, initial_state=c.takes_initial_state, grouped=True)
    others = [f for f in case.arrays() if f not in case.kind.shared]
    plain = lab.judge_gradients(case)
    if not all(f in plain.measures for f in others):
        return None
    moving = {}
    for field in (f for f in case.kind.tokens if f in others):
        array = case.arrays()[field].copy()
        array[:, :, 0] *= 0.5
        found = lab.run_gradients(case.replace(**{field: array})).gradients
        moved = {f: _beyond(plain, f, found[f]) for f in others if f in found}
        if any(size > 1 for size in moved.values()):
            moving[field] = max(moved.values())
    if not moving:
        return None
    listed = ", ".join(f"{field} (by {size:.3g} tolerances)" for field, size in moving.items())
    return Finding(
        "gradients of a head depend on another head",
        "backward, halving an input of head 0 moves gradients of the other heads, which do not depend on it: "
        "an offset of the head is missing",
        f"T = {tokens}, {case.shape.HV} heads: moved by {listed}; {where}",
    )


def _beyond(plain: GradientJudgement, field: str, found: Array) -> float:
    """Largest change of a gradient's rows in all heads but the first, in tolerances."""
    axis = 1 if field == "initial_state" else 2
    change = norm(plain.case, field, found - plain.outcome.gradients[field])
    heads = range(1, plain.case.shape.HV)
    rows, allowed = (np.take(x, heads, axis) for x in (change, plain.yardstick.tolerances[field]))
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(rows > 0, rows / allowed, 0.0).max(initial=0.0))


def explain_other_keys(lab: Laboratory, where: str) -> Finding | None:
    """Whether the gradient of one token's output reaches just the values that the output was made of."""
    c = lab.convention
    if not c.kind.features >= {"logits"}:
        return None
    case = probe(c, lab.dtype, lab.length(_ATTENDED))
    s = case.shape
    missed, added = {}, {}
    for t in range(s.T):
        chosen = np.zeros((s.B, s.T, s.HV, s.V))
        chosen[:, t] = 1.0
        found = lab.subject.run(case, Cotangent(chosen, np.zeros((s.B, s.HV, s.K, s.V)))).gradients
        if "v" not in found:
            return None
        reached = set(np.flatnonzero(np.abs(found["v"]).max(axis=(0, 2, 3))).tolist())
        missed[t], added[t] = set(range(t + 1)) - reached, reached - set(range(t + 1))
    words = [
        f"token {t} {word} {', '.join(map(str, sorted(keys)))}"
        for word, sets in (("does not reach", missed), ("also reaches", added))
        for t, keys in sets.items()
        if keys
    ]
    if not words:
        return None
    return Finding(
        "backward, queries reach other keys than forward",
        "the gradient of one token's output reaches other values than those the output is made of",
        f"T = {s.T}, tokens from 0: {'; '.join(words[:4])}; {where}",
    )

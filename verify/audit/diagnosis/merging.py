"""Wrong merges of partial attentions: the logsumexp of the parts is in another base than the merge."""

import functools
import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.diagnosis.variants import Result, Variant
from verify.audit.judge import Judgement

_SIZES = (16, 32, 64, 128)
_BASES = (
    ("base-2 logsumexp merged with e", 1 / math.log(2.0), "base 2 and merged with e^lse"),
    ("natural logsumexp merged with 2", math.log(2.0), "base e and merged with 2^lse"),
)


def merge_variants(wrong: Sequence[Judgement]) -> Iterator[Variant]:
    """For every base and every cut that the first wrong token suggests; nothing where there is a state."""
    if not wrong or "logits" not in wrong[0].case.kind.features:
        return
    cuts = dict.fromkeys([*_first_wrong(wrong), *_SIZES])
    for (reason, factor, word), size, whole in itertools.product(_BASES, cuts, (False, True)):
        parts = f"blocks of {size} keys" if whole else f"the first {size} keys and the rest"
        yield Variant(
            reason,
            f"the attentions over {parts} are joined by weights from their logsumexp, which is in {word}",
            functools.partial(_run, size=size, whole=whole, factor=factor),
        )


def _first_wrong(wrong: Sequence[Judgement]) -> list[int]:
    """The earliest token whose output is wrong: a second part starts there, or one token before."""
    tokens = [int(np.argwhere(j.output.ratio > 1)[:, 1].min()) for j in wrong if j.output and j.output.failed]
    return [t for t in dict.fromkeys([min(tokens), min(tokens) - 1]) if t > 0] if tokens else []


def _run(case: Case, size: int, whole: bool, factor: float) -> Result | None:
    """None for a single part, which nothing merges."""
    total = case.shape.T
    starts = range(0, total, size) if whole else (0, size)
    return merged_attention(case, starts, factor) if total > size else None


def merged_attention(case: Case, starts: Sequence[int], factor: float) -> Result:
    """Causal attention over parts of the keys, weighted by e^(``factor`` lse); right for a factor of 1."""
    s = case.shape
    logits = np.einsum("bthk,bjhk->bhtj", case.spread("q") * case.scale, case.spread("k"))
    logits = np.where(np.tri(s.T, dtype=bool), logits, -np.inf)
    values = np.moveaxis(case.spread("v"), 2, 1)
    outputs, lses = [], []
    for start, end in itertools.pairwise([*starts, s.T]):
        out, lse = _part(logits[..., start:end], values[:, :, start:end])
        outputs.append(out)
        lses.append(factor * lse)
    weights = np.exp(np.stack(lses) - np.max(lses, axis=0))
    output = (weights / weights.sum(0) * np.stack(outputs)).sum(0)
    return np.moveaxis(output, 1, 2), np.zeros((s.B, s.HV, 0, 0))


def _part(logits: Array, values: Array) -> tuple[Array, Array]:
    """Output of some keys and their natural logsumexp; 0 and -inf where none may be seen."""
    largest = logits.max(axis=-1, keepdims=True)
    finite = np.where(np.isfinite(largest), largest, 0.0)
    weights = np.exp(logits - finite)
    total = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        output = np.where(total > 0, (weights @ values) / total, 0.0)
        return output, np.log(total) + finite

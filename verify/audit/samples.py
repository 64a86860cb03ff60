"""Single numbers of a certificate with everything needed to compute them again by other means.

An output depends on no later token and on no other head, sequence or value column, so one number carries only
the inputs up to its own token, for one head and one column.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from verify.audit.case import Case
from verify.audit.convention.convention import Convention
from verify.audit.judge import Judgement, number

_MOST = 4
_LATEST_TOKEN = 7
_MOST_CHANNELS = 24


def samples(judgements: Sequence[Judgement], convention: Convention) -> list[dict[str, Any]]:
    """A few numbers: of exact and of float cells, of as many classes as possible, failing cells first."""
    usable = [
        j
        for j in judgements
        if j.output is not None
        and 0 < j.case.shape.K <= _MOST_CHANNELS
        and np.isfinite(j.output.difference[:, : _LATEST_TOKEN + 1]).all()
    ]
    usable.sort(key=lambda j: (not j.failed, j.case.shape.K * min(j.case.shape.T, _LATEST_TOKEN)))
    exact = [j for j in usable if j.yardstick.kind == "exact"][:1]
    floats = list({j.case.name: j for j in reversed(usable) if j.yardstick.kind != "exact"}.values())[::-1]
    return [_sample(j, convention) for j in [*exact, *floats][:_MOST]]


def _sample(judgement: Judgement, convention: Convention) -> dict[str, Any]:
    """The worst number among the first tokens of a cell; its gates are those of the exact problem."""
    assert judgement.output is not None
    assert judgement.outcome.output is not None
    case, s, y = convention.as_seen(judgement.case), judgement.case.shape, judgement.yardstick
    case = case.with_finite_gates()
    q, k, v = (case.spread(name) for name in ("q", "k", "v"))
    difference = np.abs(judgement.output.difference[:, : _LATEST_TOKEN + 1])
    b, t, hv, column = (int(i) for i in np.unravel_index(int(np.argmax(difference)), difference.shape))
    tokens = slice(0, t + 1)
    state = np.zeros(s.K) if case.initial_state is None else case.initial_state[b, hv, :, column]
    error = float(difference[b, t, hv, column])
    return {
        "class": case.name,
        "seed": case.seed,
        "shape": vars(s),
        "where": {"b": b, "t": t, "h": hv, "v": column},
        "reference_kind": y.kind,
        "mechanism": case.mechanism,
        "inputs": {
            "scale": case.scale.hex(),
            "q": _hex(q[b, t, hv]),
            "k": [_hex(row) for row in k[b, tokens, hv]],
            "v": _hex(v[b, tokens, hv, column]),
            "g": [_hex(row) for row in case.log_decay[b, tokens, hv]],
            "beta": _hex(case.strength[b, tokens, hv]),
            "initial_state": _hex(state),
            **_directed(case, b, hv, tokens, column),
        },
        "computed": float(judgement.outcome.output[b, t, hv, column]).hex(),
        "reference": float(y.output[b, t, hv, column]).hex(),
        "bound_on_reference": float(y.output_bound[b, t, hv]).hex(),
        "tolerance": float(y.output_tolerance[b, t, hv]).hex(),
        "verdict": "refuted" if error > float(y.output_tolerance[b, t, hv]) else "sampled",
        "error": number(error),
    }


def _directed(case: Case, b: int, hv: int, tokens: slice, column: int) -> dict[str, Any]:
    """The inputs that only some mechanisms have."""
    found: dict[str, Any] = {
        field: [_hex(row) for row in array[b, tokens, hv]]
        for field, array in (("a", case.a), ("b", case.b))
        if array is not None
    }
    return found if case.w is None else found | {"w": _hex(case.w[b, tokens, hv, column])}


def _hex(row: Any) -> list[str]:
    return [float(x).hex() for x in row]

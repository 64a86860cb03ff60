"""How far any rounding may take linear attention, token by token, from the exact result; with decays too.

The state is decayed, the product k v^T is added, and it is read with the scaled query. The exact step takes
an error of the state no further than its largest decay; the computed one adds what three operations err by.
"""

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.reference.recurrence import Setting, steps
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.worst_case.chunk_scores import rounding_of
from verify.audit.tolerance.worst_case.enclosed import UP, frobenius, row_norms


def bounds(case: Case, algorithm: Algorithm) -> tuple[Array, Array]:
    """As `verify.audit.tolerance.worst_case.chunked.bounds`."""
    s, c = case.shape, Setting.of(case)
    start = np.zeros((s.B, s.HV, s.K, s.V)) if case.initial_state is None else case.initial_state
    # What is added to the state is at most T products of keys and values.
    sizes = [float(np.abs(x).max(initial=1.0)) for x in (c.q, c.k, case.v, start)]
    rounding = rounding_of(case, algorithm, max(sizes) ** 2 * (1 + s.T))
    gates = np.abs(case.log_decay)
    logs = rounding.exponent(gates, np.ones(1), gates)
    upper = (c.alpha + c.alpha_error) * UP
    # A decay, the product with it, the sum; and k v^T.
    decayed = (rounding.after(logs + 2) * upper + 4 * rounding.tiny) * UP
    written = (
        rounding.summed(1, others=1) * row_norms(c.k) * row_norms(case.v) + rounding.tiny * (s.K * s.V) ** 0.5
    )
    read = (rounding.summed(s.K, others=3) * np.abs(c.q) + 4 * rounding.tiny) * UP
    state, gap, error = start, np.zeros((s.B, s.HV)), np.zeros((s.B, s.HV))
    output = np.empty((s.B, s.T, s.HV))
    for t, step in enumerate(steps(case, c)):
        size = frobenius(decayed[:, t, ..., None] * np.abs(state))
        size = size + decayed[:, t].max(-1) * (gap + error)
        error = (upper[:, t].max(-1) * error + size + written[:, t]) * UP
        state, gap = step.after, step.after_error
        size = row_norms((read[:, t, :, None, :] @ np.abs(state))[..., 0, :])
        size = size + row_norms(read[:, t]) * (gap + error)
        output[:, t] = (row_norms(c.q[:, t]) * error + size + rounding.tiny * s.K * s.V**0.5) * UP
    return output, error

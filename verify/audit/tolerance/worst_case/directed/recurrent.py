"""How far any rounding may take DPLR and GDN-2, token by token, from the exact result.

The exact step takes an error of the state through Diag(alpha) + out read^T, which need not contract:
`reference.carried` follows it. The computed step adds what its own operations err by: an entry of the new
state is alpha S + out (read^T S) + key value, whose factors and terms err by so many roundings at most, in
any order of summation, whether the state is read before or after its decay and whether what is read joins the
value before it is written or not.
"""

import numpy as np

from verify.audit.case import Array, Case
from verify.audit.reference.carried import Carried
from verify.audit.reference.transition import Setting, Step, steps
from verify.audit.tolerance.predicted.prediction import Algorithm
from verify.audit.tolerance.worst_case.chunk_scores import Rounding, rounding_of
from verify.audit.tolerance.worst_case.enclosed import UP, frobenius, row_norms


def bounds(case: Case, algorithm: Algorithm) -> tuple[Array, Array]:
    """As `verify.audit.tolerance.worst_case.chunked.bounds`."""
    s, c = case.shape, Setting.of(case)
    inputs = max(float(np.abs(x).max(initial=1.0)) for x in (c.q, *c.lengths.values()))
    error, output = Carried.nothing(s.B, s.HV, s.K), np.empty((s.B, s.T, s.HV))
    with np.errstate(invalid="ignore", over="ignore"):
        for t, step in enumerate(steps(case, c)):
            sizes = (step.before, step.held, step.after, error.length, step.before_error)
            rounding = rounding_of(case, algorithm, max(inputs, *(float(np.abs(x).max()) for x in sizes)))
            local = _local(c, t, step, error.length, rounding, case)
            error = error.moved(c.transition(t)).grown(local)
            query = np.abs(c.q[:, t])
            read = (rounding.after(s.K + 3) * query + 4 * rounding.tiny) * UP
            own = row_norms(_rows(read, step.after)) + row_norms(read) * (error.length + step.after_error)
            output[:, t] = (error.along(c.q[:, t]) + own + rounding.tiny * s.K * s.V**0.5) * UP
    return output, error.shortest


def _local(c: Setting, t: int, step: Step, error: Array, rounding: Rounding, case: Case) -> Array:
    """The distance of the computed state ``[B, HV]`` from the exact step of the computed state before."""
    s, way, gates = case.shape, c.way, np.abs(case.log_decay[:, t])
    logs = rounding.exponent(gates, np.ones(1), gates)
    upper = (c.alpha[:, t] + c.alpha_error[:, t]) * UP
    gap = (error + step.before_error) * UP
    # The decay and the product with it, two sums.
    kept = (rounding.after(logs + 3) * upper + 4 * rounding.tiny) * UP
    # What is read with is a product; its decay, the product and the sums with the state and the value; the
    # product with what it is added along, and two sums.
    turns = s.K + 6 + (0 if way.before_decay else logs + 2)
    reading = np.abs(way.read[:, t]) * (1.0 if way.before_decay else upper)
    reading = (rounding.after(turns) * reading + 4 * rounding.tiny) * UP
    out, key, value = (c.lengths[name][:, t] for name in ("out", "key", "value"))
    state = frobenius(kept[..., None] * np.abs(step.before)) + kept.max(-1) * gap
    read = row_norms(_rows(reading, step.before)) + row_norms(reading) * gap
    flushed = rounding.tiny * (s.K + 8) * (s.K * s.V) ** 0.5 * (1 + out + key)
    return np.asarray((state + out * read + rounding.after(s.K + 5) * key * value + flushed) * UP)


def _rows(row: Array, matrix: Array) -> Array:
    return np.asarray((row[..., None, :] @ np.abs(matrix))[..., 0, :])

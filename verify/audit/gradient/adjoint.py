"""Gradients of the definitions by their adjoints, in any number system: exact rationals, balls.

Recurrence, per head and backward from the last token, with D = Diag(alpha) S_before, m = v - D^T k (v alone
where nothing is erased), w = beta m and X the gradient of the state after the token:

    X <- X + (scale q) do^T,  dq = scale S do,  dw = X^T k,  dbeta = dw . m,  dv = dm = beta dw,
    dk = X w - D dm,  dD = X - k dm^T,  dg = rows of D * dD, summed,  X <- Diag(alpha) dD,

the terms in dm only where something is erased; the last X is the gradient of the initial state. Softmax, per
query: dp_j = do . v_j, ds_j = p_j (dp_j - sum_i p_i dp_i), dq = scale sum_j ds_j k_j, dk_j += scale ds_j q,
dv_j += p_j do.
"""

from collections.abc import Sequence
from typing import Any

from verify.audit.gradient.directed_adjoint import row_products


def recurrence(
    numbers: Any,
    q: Sequence[Any],
    k: Sequence[Any],
    v: Sequence[Any],
    alpha: Sequence[Any] | None,
    beta: Sequence[Any] | None,
    *,
    scale: Any,
    state: Any,
    d_output: Sequence[Any],
    d_state: Any,
) -> dict[str, Any]:
    """Gradients by field: columns for q, k, v and g, scalars for beta, a matrix for the state.

    alpha: T columns K x 1, decays of every channel, or None; the gradient g is per channel, of log decays.
    beta: T scalars, or None where nothing is erased.
    """
    n, steps = numbers, []
    for t in range(len(q)):
        decayed = state if alpha is None else n.scale_rows(alpha[t], state)
        miss = v[t] if beta is None else n.sub(v[t], n.matmul(n.transpose(decayed), k[t]))
        written = miss if beta is None else n.scale(beta[t], miss)
        state = n.add(decayed, n.outer(k[t], written))
        steps.append((decayed, miss, written, state))
    after = d_state
    found: dict[str, list[Any]] = {field: [] for field in ("q", "k", "v", "g", "beta")}
    for t in reversed(range(len(q))):
        decayed, miss, written, state = steps[t]
        after = n.add(after, n.outer(n.scale(scale, q[t]), d_output[t]))
        d_written = n.matmul(n.transpose(after), k[t])
        d_key, d_decayed, d_miss = n.matmul(after, written), after, d_written
        if beta is not None:
            found["beta"].append(n.entry(n.matmul(n.transpose(d_written), miss), 0, 0))
            d_miss = n.scale(beta[t], d_written)
            d_key = n.sub(d_key, n.matmul(decayed, d_miss))
            d_decayed = n.sub(after, n.outer(k[t], d_miss))
        found["q"].append(n.scale(scale, n.matmul(state, d_output[t])))
        found["k"].append(d_key)
        found["v"].append(d_miss)
        if alpha is not None:
            found["g"].append(row_products(n, decayed, d_decayed))
        after = d_decayed if alpha is None else n.scale_rows(alpha[t], d_decayed)
    return {field: rows[::-1] for field, rows in found.items() if rows} | {"initial_state": after}


def attention(
    numbers: Any,
    weights: Any,
    q: Sequence[Any],
    k: Sequence[Any],
    v: Sequence[Any],
    *,
    scale: Any,
    d_output: Sequence[Any],
    linear: bool = False,
    window: int | None = None,
    **sink: Any,
) -> dict[str, Any]:
    """Gradients by field, as lists of columns; ``weights(numbers, logits)`` are those of the definition.

    With a sink also its scalars, -(1 - sum_j p_j) sum_i p_i dp_i per token: its weight is the rest.

    ``linear``: they are in proportion to the products themselves, s_j / sum_i s_i, so that ds_j is
    (dp_j - sum_i p_i dp_i) / sum_i s_i.
    """
    n = numbers
    d_key = [n.scale(n.number(0), x) for x in k]
    d_value = [n.scale(n.number(0), x) for x in v]
    d_query, d_sink = [], []
    for t in range(len(q)):
        first = 0 if window is None else max(0, t + 1 - window)
        keys, values = n.stack_rows(k[first : t + 1]), n.stack_rows(v[first : t + 1])
        logits = n.matmul(keys, n.scale(scale, q[t]))
        p = weights(n, logits, **sink)
        d_weight = n.matmul(values, d_output[t])
        mean = n.matmul(n.transpose(p), d_weight)
        ones = n.matrix([[1]] * (t + 1 - first))
        d_logit = n.sub(d_weight, n.matmul(ones, mean))
        if linear:
            total = n.entry(n.matmul(n.transpose(ones), logits), 0, 0)
            d_logit = n.scale(n.reciprocal(total), d_logit)
        else:
            d_logit = n.scale_rows(p, d_logit)
        d_query.append(n.scale(scale, n.matmul(n.transpose(keys), d_logit)))
        if sink:
            rest = n.sub(n.matrix([[1]]), n.matmul(n.transpose(ones), p))
            d_sink.append(n.entry(n.scale(n.number(-1), n.matmul(rest, mean)), 0, 0))
        for i, j in enumerate(range(first, t + 1)):
            d_key[j] = n.add(d_key[j], n.scale(n.entry(d_logit, i, 0), n.scale(scale, q[t])))
            d_value[j] = n.add(d_value[j], n.scale(n.entry(p, i, 0), d_output[t]))
    found = {"q": d_query, "k": d_key, "v": d_value}
    return found | {"sink": d_sink} if sink else found

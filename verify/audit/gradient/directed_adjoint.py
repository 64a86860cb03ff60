"""Gradients of DPLR and GDN-2 by the adjoint of their recurrence, in any number system.

Per head, S <- Diag(alpha) S + out h^T + key value^T, h = read^T S or read^T D, D = Diag(alpha) S: see
`Case.directions`. Backward from the last token, X the gradient of the state after the token:

    X <- X + (scale q) do^T,  dq = scale S_after do,  dh = X^T out,  dread = (S or D) dh,  dout = X h,
    dkey = X value,  dvalue = X^T key,  dD = X (+ read dh^T),  dg = rows of D * dD, summed,
    X <- Diag(alpha) dD (+ read dh^T),

the term in read where what is read is D, or S. DPLR: read = a, out = b, key = k, value = v. GDN-2:
read = b k, out = -k, key = k, value = w v, products entrywise.
"""

from collections.abc import Mapping, Sequence
from typing import Any


def gradients(
    numbers: Any, tokens: Mapping[str, Sequence[Any]], alpha: Sequence[Any], **options: Any
) -> dict[str, Any]:
    """By field, of columns per token; ``alpha``: decays of every channel; options of `recurrence`."""
    n, key, value = numbers, tokens["k"], tokens["v"]
    if "w" not in tokens:
        read, out, before_decay = tokens["a"], tokens["b"], True
    else:
        read, before_decay = list(map(n.scale_rows, tokens["b"], key)), False
        out = [n.scale(n.number(-1), x) for x in key]
        value = list(map(n.scale_rows, tokens["w"], value))
    found = recurrence(n, tokens["q"], read, out, key, value, alpha, before_decay, **options)
    d_read, d_out, d_key, d_value = (found.pop(name) for name in ("read", "out", "key", "value"))
    if "w" not in tokens:
        return found | {"a": d_read, "b": d_out, "k": d_key, "v": d_value}
    through = map(n.scale_rows, tokens["b"], d_read)
    d_key = [n.add(n.sub(x, y), z) for x, y, z in zip(d_key, d_out, through, strict=True)]
    return found | {
        "k": d_key,
        "v": list(map(n.scale_rows, tokens["w"], d_value)),
        "b": list(map(n.scale_rows, key, d_read)),
        "w": list(map(n.scale_rows, tokens["v"], d_value)),
    }


def recurrence(
    numbers: Any,
    q: Sequence[Any],
    read: Sequence[Any],
    out: Sequence[Any],
    key: Sequence[Any],
    value: Sequence[Any],
    alpha: Sequence[Any],
    before_decay: bool,
    *,
    scale: Any,
    state: Any,
    d_output: Sequence[Any],
    d_state: Any,
) -> dict[str, Any]:
    """Columns per token by name, g of log decays, and the gradient of the initial state K x V."""
    n, steps = numbers, []
    for t in range(len(q)):
        decayed = n.scale_rows(alpha[t], state)
        source = state if before_decay else decayed
        held = n.matmul(n.transpose(source), read[t])
        state = n.add(n.add(decayed, n.outer(out[t], held)), n.outer(key[t], value[t]))
        steps.append((source, decayed, held, state))
    after = d_state
    found: dict[str, list[Any]] = {name: [] for name in ("q", "read", "out", "key", "value", "g")}
    for t in reversed(range(len(q))):
        source, decayed, held, state = steps[t]
        after = n.add(after, n.outer(n.scale(scale, q[t]), d_output[t]))
        d_held = n.matmul(n.transpose(after), out[t])
        found["q"].append(n.scale(scale, n.matmul(state, d_output[t])))
        found["read"].append(n.matmul(source, d_held))
        found["out"].append(n.matmul(after, held))
        found["key"].append(n.matmul(after, value[t]))
        found["value"].append(n.matmul(n.transpose(after), key[t]))
        reading = n.outer(read[t], d_held)
        d_decayed = after if before_decay else n.add(after, reading)
        found["g"].append(row_products(n, decayed, d_decayed))
        after = n.scale_rows(alpha[t], d_decayed)
        after = n.add(after, reading) if before_decay else after
    return {name: rows[::-1] for name, rows in found.items()} | {"initial_state": after}


def row_products(numbers: Any, a: Any, b: Any) -> Any:
    """The column of sums over j of a_ij b_ij."""
    rows = zip(numbers.row_vectors(a), numbers.row_vectors(b), strict=True)
    products = [numbers.entry(numbers.matmul(numbers.transpose(x), y), 0, 0) for x, y in rows]
    return numbers.matrix([[x] for x in products])

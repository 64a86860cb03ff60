"""One chunk of the backward pass: gradients defined, and the pairings with all directions collected.

A bar marks a gradient, a dot a direction; w solves the transposed triangular system.
"""

from sympy import Expr, IndexedBase, Sum

from derivations.chunk._tangent import (
    C,
    E,
    E_dot,
    G_dot,
    K,
    M,
    N,
    S,
    S_dot,
    V,
    beta,
    beta_dot,
    channels,
    d,
    e,
    end_moves,
    f,
    gamma,
    i,
    j,
    m,
    o_dot,
    output_moves,
    right,
    right_moves,
    score,
    score_moves,
    system_moves,
    t,
    tokens,
    u,
    u_dot,
    v_dot,
    x,
    x_dot,
    y,
    y_dot,
    z,
    z_dot,
)
from verify.derive import Chain, Definition, Setting
from verify.model.evidence import Obligation

o_bar, E_bar, S_bar, u_bar, w, v_bar, beta_bar = (
    IndexedBase(name) for name in ("obar", "Ebar", "Sbar", "ubar", "w", "vbar", "betabar")
)
x_bar, y_bar, z_bar, A_bar, B_bar, G_bar = (
    IndexedBase(name) for name in ("xbar", "ybar", "zbar", "Abar", "Bbar", "Gbar")
)
SIZES = ({C: 2, K: 2, V: 1}, {C: 2, K: 1, V: 2})


def width(summand: Expr) -> Sum:
    """Σ over the V value coordinates."""
    return Sum(summand, (d, 1, V))


def entries(summand: Expr, rows: Expr = C, index: Expr = t) -> Sum:
    """Σ over rows and value coordinates."""
    return Sum(summand, (d, 1, V), (index, 1, rows))


in_written = Definition(
    "what is written",
    u_bar[j, d],
    tokens(N[i, j] * score(z, i, j) * o_bar[i, d]) + channels(gamma[f] * y[j, f] * E_bar[f, d]),
    (j, d),
)
solve = Definition(
    "transposed system", u_bar[j, d], w[j, d] + tokens(M[i, j] * score(x, i, j) * v_bar[i, d]), (j, d)
)
value = Definition("value", v_bar[t, d], beta[t] * w[t, d], (t, d))
strength = Definition("strength", beta_bar[t], width(w[t, d] * m[t, d]), (t,))
in_scores = Definition("scores of keys", A_bar[t, j], -M[t, j] * width(v_bar[t, d] * u[j, d]), (t, j))
in_reads = Definition("scores of queries", B_bar[t, j], N[t, j] * width(o_bar[t, d] * u[j, d]), (t, j))
in_x = Definition(
    "decayed key",
    x_bar[t, e],
    tokens(A_bar[t, i] * y[i, e]) - width(S[e, d] * v_bar[t, d]),
    (t, e),
)
in_y = Definition(
    "written key",
    y_bar[t, e],
    tokens(A_bar[i, t] * x[i, e] + B_bar[i, t] * z[i, e]) + gamma[e] * width(E_bar[e, d] * u[t, d]),
    (t, e),
)
in_z = Definition(
    "decayed query",
    z_bar[t, e],
    tokens(B_bar[t, i] * y[i, e]) + width(S[e, d] * o_bar[t, d]),
    (t, e),
)
in_state = Definition(
    "state before",
    S_bar[e, d],
    gamma[e] * E_bar[e, d] + tokens(z[i, e] * o_bar[i, d] - x[i, e] * v_bar[i, d]),
    (e, d),
)

read = entries(o_bar[t, d] * channels(z_dot[t, f] * S[f, d] + z[t, f] * S_dot[f, d]))
query_scores = Sum(B_bar[t, i] * score_moves(z, z_dot, t, i), (i, 1, C), (t, 1, C))
key_scores = Sum(A_bar[t, i] * score_moves(x, x_dot, t, i), (i, 1, C), (t, 1, C))
decay_pair = entries(E_bar[e, d] * G_dot[C, e] * E[e, d], K, e)
carried = entries(E_bar[e, d] * gamma[e] * (S_dot[e, d] + tokens(y_dot[i, e] * u[i, d])), K, e)
outside = read + query_scores + decay_pair + carried
value_pair = entries(v_bar[t, d] * v_dot[t, d])
strength_pair = Sum(beta_bar[t] * beta_dot[t], (t, 1, C))


def names_of(*definitions: Definition) -> tuple[str, ...]:
    return tuple(item.name for item in definitions)


def _by_token(summand: Expr) -> Sum:
    return Sum(summand, (e, 1, K), (t, 1, C))


def collected(
    solved: Definition = solve, scored: Definition = in_scores, ended: Definition = in_y
) -> Obligation:
    """One chunk: the pairings of its outputs and end are those of its inputs."""
    moving = (output_moves, end_moves, in_written, in_reads, solved, system_moves, right_moves)
    definitions = (*moving, value, strength, scored, in_x, ended, in_z, in_state)
    setting = Setting(definitions, nonempty=(C, K, V), instances=SIZES)
    start = entries(o_bar[t, d] * o_dot[t, d]) + entries(E_bar[e, d] * E_dot[e, d], K, e)
    chain = Chain("derivative along a direction, after one chunk", setting, start)
    after = outside + entries(u_bar[j, d] * u_dot[j, d], C, j)
    names = names_of(output_moves, end_moves, in_written, in_reads)
    chain = chain.unfold("outputs and end, what was written apart", after, *names)
    after = outside + entries(w[t, d] * right[t, d])
    names = names_of(solved, system_moves, value)
    chain = chain.unfold("the transposed system moves the solve over", after, *names)
    erased = entries(v_bar[t, d] * channels(x_dot[t, f] * S[f, d] + x[t, f] * S_dot[f, d]))
    after = outside + strength_pair + value_pair - erased + key_scores
    names = names_of(right_moves, strength, scored, value)
    chain = chain.unfold("values, strengths and scores of keys", after, *names)
    after = strength_pair + value_pair + decay_pair
    after += _by_token(x_bar[t, e] * x_dot[t, e] + y_bar[t, e] * y_dot[t, e] + z_bar[t, e] * z_dot[t, e])
    after += entries(S_bar[e, d] * S_dot[e, d], K, e)
    return chain.unfold(
        "keys, queries and the state before", after, *names_of(in_x, ended, in_z, in_state)
    ).obligation()

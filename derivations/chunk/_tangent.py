"""The directional derivative of one chunk, entry by entry: every input moves along a line.

With e^{G} the product of the decays of a chunk's tokens so far: x = e^{G}∘k, y = e^{−G}∘k, z = e^{G}∘q, so
that scores are x·y and z·y. The masks M (earlier tokens) and N (its own too) do not move.
"""

from sympy import Expr, IndexedBase, Integer, Sum, exp, symbols

from verify.derive import Chain, Definition, Setting
from verify.model.evidence import Obligation

t, j, e, d, f, i, C, K, V = symbols("t j e d f i C K V")
eps = symbols("epsilon")
q, k, v, beta, G, S, u, m, o, E = (
    IndexedBase(name) for name in ("q", "k", "v", r"\beta", "G", "S", "u", "m", "o", "E")
)
x, y, z, gamma, M, N = (IndexedBase(name) for name in ("x", "y", "z", "gamma", "M", "N"))
q_dot, k_dot, v_dot, beta_dot, G_dot, S_dot, u_dot, o_dot, E_dot = (
    IndexedBase(name) for name in ("qdot", "kdot", "vdot", "betadot", "Gdot", "Sdot", "udot", "odot", "Edot")
)
x_dot, y_dot, z_dot = (IndexedBase(name) for name in ("xdot", "ydot", "zdot"))
right = IndexedBase("r")
SIZES = ({C: 2, K: 2, V: 1}, {C: 3, K: 1, V: 2})
ENTRY = tuple({**sizes, t: 1, j: 2, e: 1, d: 1} for sizes in SIZES)


def channels(summand: Expr) -> Sum:
    """Σ over the K channels f."""
    return Sum(summand, (f, 1, K))


def tokens(summand: Expr) -> Sum:
    """Σ over the C tokens i of the chunk."""
    return Sum(summand, (i, 1, C))


def _line(point: Expr, direction: Expr) -> Expr:
    return point + eps * direction


def score(left: IndexedBase, row: Expr, column: Expr) -> Expr:
    """left_row·y_column."""
    return channels(left[row, f] * y[column, f])


def score_moves(left: IndexedBase, moved: IndexedBase, row: Expr, column: Expr) -> Expr:
    """The derivative of a score."""
    return channels(moved[row, f] * y[column, f] + left[row, f] * y_dot[column, f])


missed = Definition(
    "missed",
    m[t, d],
    v[t, d] - channels(x[t, f] * S[f, d]) - tokens(M[t, i] * score(x, t, i) * u[i, d]),
    (t, d),
)
"""What token t's key does not yet read; u = βm is the chunk's triangular system."""
system_moves = Definition(
    "system moves",
    right[t, d],
    u_dot[t, d] + beta[t] * tokens(M[t, i] * score(x, t, i) * u_dot[i, d]),
    (t, d),
)
right_moves = Definition(
    "right side moves",
    right[t, d],
    beta_dot[t] * m[t, d]
    + beta[t]
    * (
        v_dot[t, d]
        - channels(x_dot[t, f] * S[f, d] + x[t, f] * S_dot[f, d])
        - tokens(M[t, i] * score_moves(x, x_dot, t, i) * u[i, d])
    ),
    (t, d),
)
output_moves = Definition(
    "output moves",
    o_dot[t, d],
    channels(z_dot[t, f] * S[f, d] + z[t, f] * S_dot[f, d])
    + tokens(N[t, i] * (score_moves(z, z_dot, t, i) * u[i, d] + score(z, t, i) * u_dot[i, d])),
    (t, d),
)
end_moves = Definition(
    "end moves",
    E_dot[e, d],
    G_dot[C, e] * E[e, d] + gamma[e] * (S_dot[e, d] + tokens(y_dot[i, e] * u[i, d] + y[i, e] * u_dot[i, d])),
    (e, d),
)


def _derivative(title: str, function: Expr, after: Expr, *named: Definition) -> tuple[Obligation, Obligation]:
    """The derivative in ε, and that it is ``after`` at ε = 0."""
    slope = function.diff(eps)
    chain = Chain(f"{title}: the derivative", Setting(nonempty=(C, K), instances=ENTRY), function)
    derivative = chain.differentiate("sums, products and exponentials", slope, eps).obligation()
    start = Definition("start of the line", eps, Integer(0))
    setting = Setting((start, *named), nonempty=(C, K), instances=ENTRY)
    chain = Chain(f"{title}: at the start of the line", setting, slope)
    names = ("start of the line", *(item.name for item in named))
    return derivative, chain.unfold("first order in the direction", after, *names).obligation()


def _moved_score(left: IndexedBase, moved: IndexedBase, column: Expr) -> Expr:
    return channels(_line(left[t, f], moved[t, f]) * _line(y[column, f], y_dot[column, f]))


def system() -> tuple[Obligation, Obligation]:
    """u + β Σ M (x·y) u − β (v − Sᵀx) = 0, moved."""
    scores = tokens(M[t, i] * _moved_score(x, x_dot, i) * _line(u[i, d], u_dot[i, d]))
    read = channels(_line(x[t, f], x_dot[t, f]) * _line(S[f, d], S_dot[f, d]))
    strength, value = _line(beta[t], beta_dot[t]), _line(v[t, d], v_dot[t, d])
    function = _line(u[t, d], u_dot[t, d]) + strength * scores - strength * (value - read)
    return _derivative("the triangular system", function, system_moves.rhs - right_moves.rhs, missed)


def output(after: Expr = output_moves.rhs) -> tuple[Obligation, Obligation]:
    """o = Sᵀz + Σ N (z·y) u."""
    read = channels(_line(z[t, f], z_dot[t, f]) * _line(S[f, d], S_dot[f, d]))
    scores = tokens(N[t, i] * _moved_score(z, z_dot, i) * _line(u[i, d], u_dot[i, d]))
    return _derivative("the output", read + scores, after)


def end() -> tuple[Obligation, Obligation]:
    """S′ = e^{G_C}∘(S + Σ y uᵀ)."""
    inside = S[e, d] + eps * S_dot[e, d] + tokens(_line(y[i, e], y_dot[i, e]) * _line(u[i, d], u_dot[i, d]))
    named = (
        Definition("end", E[e, d], gamma[e] * (S[e, d] + tokens(y[i, e] * u[i, d]))),
        Definition("whole decay", gamma[e], exp(G[C, e])),
    )
    function = exp(_line(G[C, e], G_dot[C, e])) * inside
    return _derivative("the state after the chunk", function, end_moves.rhs, *named)


def decayed(sign: int, after: Expr) -> tuple[Obligation, Obligation]:
    """k e^{±G} moves by e^{±G}(k̇ ± k Ġ)."""
    function = exp(sign * _line(G[t, e], G_dot[t, e])) * _line(k[t, e], k_dot[t, e])
    which = "forward" if sign > 0 else "backward"
    return _derivative(f"a key decayed {which}", function, after)

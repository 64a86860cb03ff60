"""The directional derivative of one KDA step, entry by entry: every input moves along a line.

Input x moves to x + εẋ, and the state before the step to S + εṠ + ε²R with any R, so that only its first
order is known. Each quantity of the step is differentiated in ε and then taken at ε = 0.
"""

from sympy import Expr, IndexedBase, Integer, Sum, exp, symbols

from verify.derive import Chain, Definition, Setting
from verify.model.evidence import Obligation

t, c, d, e, f, K, V = symbols("t c d e f K V")
eps = symbols("epsilon")
S, P, u, m, o = (IndexedBase(name) for name in ("S", "P", "u", "m", "o"))
q, k, v, g, alpha, beta = (IndexedBase(name) for name in ("q", "k", "v", "g", r"\alpha", r"\beta"))
S_dot, P_dot, u_dot, o_dot = (IndexedBase(name) for name in ("Sdot", "Pdot", "udot", "odot"))
q_dot, k_dot, v_dot, g_dot, beta_dot = (
    IndexedBase(name) for name in ("qdot", "kdot", "vdot", "gdot", "betadot")
)
rest, rest_p, rest_u = (IndexedBase(name) for name in ("R", "R_P", "R_u"))
SIZES = ({t: 2, K: 2, c: 1, d: 1}, {t: 3, K: 3, c: 2, d: 1})

missed = Definition("missed", m[t, d], v[t, d] - Sum(k[t, e] * P[t, e, d], (e, 1, K)), (d,))
"""What the key does not yet read: m = v − Pᵀk."""
written = Definition("written", u[t, d], beta[t] * m[t, d], (d,))
"""What is written along the key: u = βm."""

moved_decayed = Definition(
    "decayed state moves",
    P_dot[t, c, d],
    alpha[t, c] * S_dot[t - 1, c, d] + g_dot[t, c] * P[t, c, d],
    (c, d),
)
moved_written = Definition(
    "what is written moves",
    u_dot[t, d],
    beta_dot[t] * m[t, d]
    + beta[t]
    * (v_dot[t, d] - Sum(k_dot[t, e] * P[t, e, d], (e, 1, K)) - Sum(k[t, e] * P_dot[t, e, d], (e, 1, K))),
    (d,),
)
moved_state = Definition(
    "state moves",
    S_dot[t, c, d],
    P_dot[t, c, d] + k_dot[t, c] * u[t, d] + k[t, c] * u_dot[t, d],
    (c, d),
)
moved_output = Definition(
    "output moves",
    o_dot[t, d],
    Sum(q_dot[t, e] * S[t, e, d], (e, 1, K)) + Sum(q[t, e] * S_dot[t, e, d], (e, 1, K)),
    (d,),
)


def _line(point: Expr, direction: Expr) -> Expr:
    return point + eps * direction


def _derivative(title: str, function: Expr, after: Expr, *named: Definition) -> tuple[Obligation, Obligation]:
    """The derivative in ε, and that it is ``after`` at ε = 0."""
    slope = function.diff(eps)
    chain = Chain(f"{title}: the derivative", Setting(instances=SIZES), function)
    derivative = chain.differentiate("sum, product and exponential", slope, eps).obligation()
    start = Definition("start of the line", eps, Integer(0))
    setting = Setting((start, *named), instances=SIZES)
    chain = Chain(f"{title}: at the start of the line", setting, slope)
    names = ("start of the line", *(item.name for item in named))
    return derivative, chain.unfold("first order in the direction", after, *names).obligation()


def decayed(after: Expr = moved_decayed.rhs) -> tuple[Obligation, Obligation]:
    """P = Diag(e^g)S."""
    state = _line(S[t - 1, c, d], S_dot[t - 1, c, d]) + eps**2 * rest[c, d]
    named = (
        Definition("decayed state", P[t, c, d], alpha[t, c] * S[t - 1, c, d]),
        Definition("decay", alpha[t, c], exp(g[t, c])),
    )
    return _derivative("decayed state", exp(_line(g[t, c], g_dot[t, c])) * state, after, *named)


def _moved_p(channel: Expr) -> Expr:
    return _line(P[t, channel, d], P_dot[t, channel, d]) + eps**2 * rest_p[channel, d]


def wrote(after: Expr = moved_written.rhs) -> tuple[Obligation, Obligation]:
    """u = β(v − Pᵀk)."""
    read = Sum(_line(k[t, e], k_dot[t, e]) * _moved_p(e), (e, 1, K))
    function = _line(beta[t], beta_dot[t]) * (_line(v[t, d], v_dot[t, d]) - read)
    return _derivative("what is written", function, after, missed)


def state(after: Expr = moved_state.rhs) -> tuple[Obligation, Obligation]:
    """S = P + kuᵀ."""
    moved_u = _line(u[t, d], u_dot[t, d]) + eps**2 * rest_u[d]
    return _derivative("state", _moved_p(c) + _line(k[t, c], k_dot[t, c]) * moved_u, after)


def output(after: Expr = moved_output.rhs) -> tuple[Obligation, Obligation]:
    """o = Sᵀq, from the state after the write."""
    after_write = _line(S[t, e, d], S_dot[t, e, d]) + eps**2 * rest[e, d]
    return _derivative("output", Sum(_line(q[t, e], q_dot[t, e]) * after_write, (e, 1, K)), after)

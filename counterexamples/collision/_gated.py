"""GDN and KDA with gates that depend on the token: the state as a formula, and Newton's search.

A token is x in R³. Its key is W_k x scaled to length 1 (K = 2), its value w_v·x, its strength σ(w_β·x) and
its decays σ(W_α x), one per channel for KDA and one for all for GDN: everything a real layer computes, with
rational weights.
"""

from collections.abc import Sequence
from fractions import Fraction

from sympy import Expr, Matrix, Rational, Symbol, cse, exp, lambdify, numbered_symbols, sqrt, sympify

from verify.derive.tree import Tree, tree

Token = Sequence[Expr | Fraction | int]

KEYS = ((1, Rational(1, 2), 0), (Rational(-1, 3), 1, Rational(1, 2)))
VALUE = (Rational(1, 2), -1, 1)
STRENGTH = (1, Rational(1, 4), Rational(-1, 2))
DECAYS = ((Rational(1, 2), 1, Rational(1, 3)), (2, Rational(-1, 2), 1))
QUERY = (Rational(3, 2), -1)

FIRST = ((1, 0, 1), (0, 1, 1), (1, 1, 0))
"""Three tokens; the other history starts with CHANGED, and the last entries of its other two are searched."""
CHANGED = (1, Rational(1, 2), Rational(1, 2))
UNKNOWN = (Symbol("y_1"), Symbol("y_2"))


def second() -> tuple[Token, ...]:
    """The other history, with its two unknown entries."""
    return (CHANGED, (0, 1, UNKNOWN[0]), (1, 1, UNKNOWN[1]))


def _dot(weights: Sequence[Expr | int], token: Token) -> Expr:
    return sum((sympify(w) * sympify(x) for w, x in zip(weights, token, strict=True)), sympify(0))


def _sigmoid(x: Expr) -> Expr:
    return 1 / (1 + exp(-x))


def key(token: Token) -> list[Expr]:
    """W_k x over its length."""
    plain = [_dot(row, token) for row in KEYS]
    return [p / sqrt(sum(p**2 for p in plain)) for p in plain]


def state(history: Sequence[Token], mechanism: str) -> list[Expr]:
    """The state, K = 2 and V = 1, after a history from the zero state; for ``"gdn"`` or ``"kda"``."""
    entries: list[Expr] = [sympify(0), sympify(0)]
    for token in history:
        rows = (DECAYS[0], DECAYS[0]) if mechanism == "gdn" else DECAYS
        entries = [_sigmoid(_dot(row, token)) * entry for row, entry in zip(rows, entries, strict=True)]
        k, strength = key(token), _sigmoid(_dot(STRENGTH, token))
        error = k[0] * entries[0] + k[1] * entries[1] - _dot(VALUE, token)
        entries = [entry - strength * k_i * error for entry, k_i in zip(entries, k, strict=True)]
    return entries


def softmax_output(history: Sequence[Token]) -> Expr:
    """Softmax attention over the same keys and values at QUERY."""
    weights = [exp(_dot(QUERY, key(token))) for token in history]
    total = sum(w * _dot(VALUE, token) for w, token in zip(weights, history, strict=True))
    return total / sum(weights)


def equations(mechanism: str) -> list[Expr]:
    """Both entries of the second state minus the first."""
    pairs = zip(state(second(), mechanism), state(FIRST, mechanism), strict=True)
    return [there - here for there, here in pairs]


def formula(expression: Expr) -> Tree:
    """The expression as nested lists, with a root x^r written as e^{r ln x}."""
    if expression.is_Pow and not expression.exp.is_Integer:
        return ["exp", ["*", tree(expression.exp), ["log", formula(expression.base)]]]
    if expression.is_Pow:
        return ["^", formula(expression.base), int(expression.exp)]
    if expression.is_Add or expression.is_Mul:
        return ["+" if expression.is_Add else "*", *(formula(item) for item in expression.args)]
    return ["exp", formula(expression.args[0])] if isinstance(expression, exp) else tree(expression)


def program(expressions: Sequence[Expr]) -> tuple[list[tuple[str, Tree]], list[Tree]]:
    """The expressions with what they share named once: steps (name, formula) in order, and what is left."""
    shared, rest = cse(expressions, symbols=numbered_symbols("s"))
    return [(symbol.name, formula(part)) for symbol, part in shared], [formula(item) for item in rest]


def newton(mechanism: str, start: tuple[float, float], steps: int = 40) -> tuple[float, float]:
    """Newton's iteration in floats; the result proves nothing until its box is tested."""
    system = Matrix(equations(mechanism))
    value = lambdify(UNKNOWN, system.tolist(), "math")
    slope = lambdify(UNKNOWN, system.jacobian(UNKNOWN).tolist(), "math")
    x, y = start
    for _ in range(steps):
        (f,), (g,) = value(x, y)
        (a, b), (c, d) = slope(x, y)
        determinant = a * d - b * c
        x, y = x - (d * f - b * g) / determinant, y - (a * g - c * f) / determinant
    return x, y


def preconditioner(mechanism: str, centre: tuple[Fraction, Fraction]) -> list[list[str]]:
    """The inverse of the derivative at the centre, rounded to multiples of 2⁻²⁰."""
    slope = Matrix(equations(mechanism)).jacobian(UNKNOWN)
    at = dict(zip(UNKNOWN, (Rational(x.numerator, x.denominator) for x in centre), strict=True))
    inverse = slope.subs(at).evalf(30).inv()
    return [[str(Fraction(round(inverse[i, j] * 2**20), 2**20)) for j in range(2)] for i in range(2)]

"""The definitions: equal in every number system, equal to a transcription in plain loops, chunked or not.

The float64 bound: an output is a polynomial of its inputs, and each monomial meets at most n roundings, so
the error is at most gamma_n times the polynomial with every coefficient and input made positive (Higham,
Accuracy and Stability of Numerical Algorithms, section 3.1). Passing −|k|, −|β| and else absolute values
makes it so: both signs of the erase, v − Sᵀk, then agree. One step adds K + 5 roundings at most, the read K +
1.
"""

import random
from fractions import Fraction

import flint
import numpy as np
import pytest
import sympy

import verify.numbers
from derivations.chunk import definition as chunk
from derivations.delta import definition as delta
from derivations.gdn import definition as gdn
from derivations.kda import definition as kda
from derivations.linear import definition as linear
from derivations.softmax import definition as softmax
from verify.numbers.ball import Ball, contains, contains_rational
from verify.numbers.exact import Exact
from verify.numbers.float64 import Float64
from verify.numbers.multiprecision import Multiprecision, to_rational
from verify.numbers.symbolic import Symbolic, equal

T, K, V = 6, 3, 2
SCALE = Fraction(1, 2)
MECHANISMS = ["linear", "delta", "gdn", "kda"]


class Inputs:
    """Random dyadic inputs (exact in every system) as nested lists of Fractions."""

    def __init__(self, seed: int, tokens: int = T) -> None:
        rng = random.Random(seed)

        def draw(m, n):
            return [[Fraction(rng.randint(-16, 16), 8) for _ in range(n)] for _ in range(m)]

        self.q, self.k, self.v = draw(tokens, K), draw(tokens, K), draw(tokens, V)
        self.alpha, self.beta, self.state = draw(tokens, K), draw(tokens, 1), draw(K, V)

    def majorant(self) -> "Inputs":
        positive = object.__new__(Inputs)
        for name in ("q", "k", "v", "alpha", "beta", "state"):
            sign = -1 if name in ("k", "beta") else 1
            setattr(positive, name, [[sign * abs(x) for x in row] for row in getattr(self, name)])
        return positive


def arguments(mechanism, numbers, x: Inputs):
    """The positional arguments of the mechanism's recurrence, in this number system."""
    q, k, v, alpha = (numbers.row_vectors(numbers.matrix(m)) for m in (x.q, x.k, x.v, x.alpha))
    beta = [numbers.number(row[0]) for row in x.beta]
    gate = [numbers.number(row[0]) for row in x.alpha]
    return {
        "linear": (q, k, v),
        "delta": (q, k, v, beta),
        "gdn": (q, k, v, gate, beta),
        "kda": (q, k, v, alpha, beta),
    }[mechanism]


def evaluate(mechanism, numbers, x: Inputs):
    """(outputs T×V, final state K×V) of the mechanism's recurrence."""
    recurrence = {"linear": linear, "delta": delta, "gdn": gdn, "kda": kda}[mechanism].recurrence
    outputs, state = recurrence(
        numbers, *arguments(mechanism, numbers, x), scale=numbers.number(SCALE), state=numbers.matrix(x.state)
    )
    return numbers.stack_rows(outputs), state


def transcription(mechanism, x: Inputs):
    """The recurrence in plain loops over Fractions, from (I − βkkᵀ)Diag(α)S + βkvᵀ with explicit matrices."""
    state, outputs = [row[:] for row in x.state], []
    for t in range(len(x.q)):
        k, v, beta = x.k[t], x.v[t], x.beta[t][0]
        alpha = {"kda": x.alpha[t], "gdn": [x.alpha[t][0]] * K}.get(mechanism, [Fraction(1)] * K)
        erase, write = (Fraction(0), Fraction(1)) if mechanism == "linear" else (beta, beta)
        transition = [[((i == j) - erase * k[i] * k[j]) * alpha[j] for j in range(K)] for i in range(K)]
        state = [
            [sum(transition[i][j] * state[j][c] for j in range(K)) + write * k[i] * v[c] for c in range(V)]
            for i in range(K)
        ]
        outputs.append([sum(SCALE * x.q[t][i] * state[i][c] for i in range(K)) for c in range(V)])
    return outputs, state


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_exact_equals_the_transcription(mechanism, seed):
    x = Inputs(seed)
    assert evaluate(mechanism, Exact(), x) == tuple(map(Exact().matrix, transcription(mechanism, x)))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_symbolic_equals_exact(mechanism):
    """With one query coordinate and one key coordinate left as symbols, replaced at the end."""
    a, b = sympy.symbols("a b")
    x, symbolic = Inputs(1, tokens=3), Inputs(1, tokens=3)
    symbolic.q[2][0], symbolic.k[1][1] = a, b
    values = {a: sympy.Rational(x.q[2][0]), b: sympy.Rational(x.k[1][1])}
    for expression, exact in zip(
        evaluate(mechanism, Symbolic(), symbolic), evaluate(mechanism, Exact(), x), strict=True
    ):
        assert expression.free_symbols
        rows = [
            [Fraction(int(entry.p), int(entry.q)) for entry in row]
            for row in expression.subs(values).tolist()
        ]
        assert Exact().matrix(rows) == exact


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("precision", [16, 128])
def test_balls_contain_exact(mechanism, precision):
    x = Inputs(2)
    for ball, exact in zip(
        evaluate(mechanism, Ball(precision), x), evaluate(mechanism, Exact(), x), strict=True
    ):
        assert contains(ball, exact)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("numbers", "bits"), [(Float64(), 53), (Multiprecision(40), 40)])
def test_rounded_results_stay_within_the_derived_bound(mechanism, numbers, bits):
    x = Inputs(3)
    roundings = T * (K + 5) + K + 1
    gamma = flint.fmpq(roundings, 2**bits - roundings)
    runs = ((numbers, x), (Exact(), x), (Exact(), x.majorant()))
    results = zip(*(evaluate(mechanism, n, i) for n, i in runs), strict=True)
    for rounded, exact, majorant in results:
        for row, exact_row, bound_row in zip(
            numbers.to_lists(rounded), exact.tolist(), majorant.tolist(), strict=True
        ):
            for value, true, bound in zip(row, exact_row, bound_row, strict=True):
                rational = Fraction(float(value)) if isinstance(value, np.ndarray) else to_rational(value)
                assert abs(Exact().number(rational) - true) <= gamma * abs(bound)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_float64_runs_a_batch_as_its_items(mechanism):
    """Inputs of few bits: every intermediate is exact, so the batch equals the exact results bit for bit."""
    numbers, items = Float64(), [Inputs(seed, tokens=3) for seed in range(4)]
    batch = object.__new__(Inputs)
    for name in ("q", "k", "v", "alpha", "beta", "state"):
        array = np.array([getattr(item, name) for item in items], dtype=float)
        setattr(batch, name, array.reshape(2, 2, *array.shape[1:]))
    q, k, v, alpha = (
        numbers.row_vectors(numbers.matrix(m)) for m in (batch.q, batch.k, batch.v, batch.alpha)
    )
    beta, gate = ([m[..., t, 0] for t in range(3)] for m in (batch.beta, batch.alpha))
    given = {
        "linear": (q, k, v),
        "delta": (q, k, v, beta),
        "gdn": (q, k, v, gate, beta),
        "kda": (q, k, v, alpha, beta),
    }[mechanism]
    recurrence = {"linear": linear, "delta": delta, "gdn": gdn, "kda": kda}[mechanism].recurrence
    outputs, state = recurrence(
        numbers, *given, scale=numbers.number(SCALE), state=numbers.matrix(batch.state)
    )
    for index, item in enumerate(items):
        exact = evaluate(mechanism, Exact(), item)
        for array, matrix in zip((numbers.stack_rows(outputs), state), exact, strict=True):
            one = [[Fraction(float(y)) for y in row] for row in array[index // 2, index % 2]]
            assert Exact().matrix(one) == matrix


def test_kda_step_is_the_printed_equation():
    numbers = Symbolic()
    s, k, v, alpha, q = (
        sympy.ImmutableMatrix(m, n, lambda i, j, name=name: sympy.Symbol(f"{name}{i}{j}"))
        for name, m, n in (("s", K, V), ("k", K, 1), ("v", V, 1), ("a", K, 1), ("q", K, 1))
    )
    beta, scale = sympy.symbols("beta scale")
    state, output = kda.step(numbers, s, q, k, v, alpha, beta, scale)
    printed = (sympy.eye(K) - beta * k * k.T) * sympy.diag(*alpha) * s + beta * k * v.T
    assert all(equal(state[i, j], printed[i, j]) for i in range(K) for j in range(V))
    assert all(equal(output[j], (scale * printed.T * q)[j]) for j in range(V))


def test_decay_is_the_exponential_of_natural_log_gates():
    ball = Ball()
    assert gdn.decay(ball, [ball.number(-1)])[0].overlaps(ball.number(-1).exp())
    column = kda.decay(ball, [ball.matrix([[0], [-1]])])[0]
    assert column[0, 0] == 1
    assert column[1, 0].overlaps(ball.number(-1).exp())
    assert gdn.decay(Exact(), [Exact().number(0)]) == [1]


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 5, T, T + 3])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_chunkwise_equals_recurrence_exactly(mechanism, chunk_size):
    numbers, x = Exact(), Inputs(4)
    x.alpha[2] = [Fraction(0)] * K
    q, k, v, *_ = arguments(mechanism, numbers, x)
    ones = [numbers.matrix([[1]] * K)] * T
    gates = [numbers.number(row[0]) for row in x.alpha]
    alpha = {"kda": numbers.row_vectors(numbers.matrix(x.alpha)), "gdn": chunk.spread(numbers, gates, K)}
    beta = None if mechanism == "linear" else [numbers.number(row[0]) for row in x.beta]
    outputs, state = chunk.chunkwise(
        numbers,
        q,
        k,
        v,
        alpha.get(mechanism, ones),
        beta,
        scale=numbers.number(SCALE),
        state=numbers.matrix(x.state),
        chunk_size=chunk_size,
    )
    assert (numbers.stack_rows(outputs), state) == evaluate(mechanism, numbers, x)


@pytest.mark.parametrize("numbers", [Ball(), Float64(), Multiprecision(), Symbolic()], ids=lambda n: n.name)
def test_chunkwise_runs_in_every_system(numbers):
    """At one bit per input every float intermediate is exact, so all systems give the same integers."""
    x = Inputs(5, tokens=4)
    for name in ("q", "k", "v", "alpha", "beta", "state"):
        setattr(x, name, [[Fraction(int(entry > 0)) for entry in row] for row in getattr(x, name)])
    results = []
    for system in (Exact(), numbers):
        outputs, state = chunk.chunkwise(
            system,
            *arguments("kda", system, x),
            scale=system.number(1),
            state=system.matrix(x.state),
            chunk_size=3,
        )
        results.append([system.to_lists(m) for m in (*outputs, state)])
    exact, other = ([[entry for matrix in r for row in matrix for entry in row]] for r in results)
    assert [int(e) for e in exact[0]] == [int(float(e)) for e in other[0]]
    assert all(float(e) == int(float(e)) for e in other[0])


@pytest.mark.parametrize("name", ["exact", "symbolic", "ball", "float64", "multiprecision"])
def test_softmax_of_equal_logits_is_the_running_mean(name):
    numbers = verify.numbers.system(name)
    x = Inputs(6, tokens=4)
    q, k, v = (numbers.row_vectors(numbers.matrix(m)) for m in ([x.q[0]] * 4, [x.k[0]] * 4, x.v))
    last = softmax.causal(numbers, q, k, v, scale=numbers.number(SCALE))[-1]
    for c in range(V):
        mean = sum(row[c] for row in x.v) / 4
        value = numbers.entry(last, c, 0)
        if name == "ball":
            assert contains_rational(value, flint.fmpq(mean.numerator, mean.denominator))
        else:
            assert (sympy.simplify(value) if name == "symbolic" else value) == numbers.number(mean)


def softmax_outputs(numbers, x: Inputs, scale):
    q, k, v = (numbers.row_vectors(numbers.matrix(m)) for m in (x.q, x.k, x.v))
    return numbers.to_lists(numbers.stack_rows(softmax.causal(numbers, q, k, v, scale=numbers.number(scale))))


def test_softmax_agrees_across_systems():
    """Float64: exact logits; exponentials within 3u, then T additions, 1/x, two products and T additions."""
    x = Inputs(7, tokens=4)
    balls = softmax_outputs(Ball(128), x, SCALE)
    finer = softmax_outputs(Ball(400), x, SCALE)
    floats = softmax_outputs(Float64(), x, SCALE)
    precise = softmax_outputs(Multiprecision(256), x, SCALE)
    symbolic = softmax_outputs(Symbolic(), x, SCALE)
    largest = max(abs(y) for row in x.v for y in row)
    roundings = 3 + 3 + 4 + 1 + 1 + 4
    bound = flint.arb(flint.fmpq(roundings, 2**53 - roundings) * flint.fmpq(*largest.as_integer_ratio()))
    for t in range(4):
        for c in range(V):
            ball = balls[t][c]
            assert ball.overlaps(finer[t][c])
            assert ball.rel_accuracy_bits() > 100
            for near in (to_rational(precise[t][c]), Fraction(str(symbolic[t][c].evalf(60)))):
                assert contains_rational(ball, Exact().number(near))
            assert abs(flint.arb(float(floats[t][c])) - ball) <= bound


def test_softmax_is_causal_and_orders_by_logit():
    x = Inputs(8, tokens=3)
    before = softmax_outputs(Ball(), x, 1)
    x.k[2], x.v[2] = [Fraction(9)] * K, [Fraction(9)] * V
    after = softmax_outputs(Ball(), x, 1)
    for x_row, y_row in zip(before[:2], after[:2], strict=True):
        assert all(x_c.contains(y_c) and y_c.contains(x_c) for x_c, y_c in zip(x_row, y_row, strict=True))
    assert not before[2][0].overlaps(after[2][0])
    weights = softmax.weights(Ball(), Ball().matrix([[0], [1], [5]]))
    assert weights[0, 0] < weights[1, 0] < weights[2, 0]
    assert (weights[0, 0] + weights[1, 0] + weights[2, 0]).contains(1)


def test_two_token_softmax_is_the_logistic_function():
    """Logits 0 and scale·q·k = (1/2)·6·1: the second value's weight is 1/(1 + e^{−3})."""
    numbers = Ball()
    one = numbers.eye(1)
    output = softmax.attend(
        numbers,
        numbers.matrix([[6]]),
        [numbers.zeros(1, 1), one],
        [numbers.zeros(1, 1), one],
        scale=numbers.number(SCALE),
    )
    assert output[0, 0].overlaps(1 / (1 + flint.arb(-3).exp()))
    assert output[0, 0].rel_accuracy_bits() > 100


def test_float64_softmax_survives_logits_no_exponential_can_hold():
    weights = softmax.weights(Float64(), np.array([[2000.0], [2000.0], [-3000.0]]))
    assert weights.tolist() == [[0.5], [0.5], [0.0]]

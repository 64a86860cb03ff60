"""Input classes with real-valued entries: kinds of key, gate and write strength on which kernels differ."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from verify.audit.case import Array, Case, Shape
from verify.audit.mechanism import Mechanism, named
from verify.numbers.formats import format_named, round_array

Draw = Callable[[np.random.Generator, Shape], Array]
"""Draws keys or queries [B, T, H, K], or write strengths [B, T, HV]."""
Gate = Callable[[np.random.Generator, tuple[int, ...]], Array]
"""Draws gates of a shape whose last axes are [HV] or [HV, K]."""


def _unit(x: Array) -> Array:
    return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))


def gaussian_keys(rng: np.random.Generator, s: Shape) -> Array:
    """Independent directions."""
    return _unit(rng.standard_normal((s.B, s.T, s.H, s.K)))


def positive_keys(rng: np.random.Generator, s: Shape) -> Array:
    """Uniform entries in (0, 1), as flash-linear-attention's tests draw them: mean cosine 3/4."""
    return _unit(1 - rng.random((s.B, s.T, s.H, s.K)))


def constant_keys(rng: np.random.Generator, s: Shape) -> Array:
    """One key per sequence and head: a prompt that repeats one token."""
    return np.repeat(_unit(rng.standard_normal((s.B, 1, s.H, s.K))), s.T, axis=1)


def correlated_keys(rng: np.random.Generator, s: Shape) -> Array:
    """Pairwise cosine 0.8: a common direction and an orthogonal part of a fifth of the squared length."""
    common = _unit(rng.standard_normal((s.B, 1, s.H, s.K)))
    other = rng.standard_normal((s.B, s.T, s.H, s.K))
    other -= common * (common * other).sum(-1, keepdims=True)
    return np.asarray(np.sqrt(0.8) * common + np.sqrt(0.2) * _unit(other))


def rising_keys(rng: np.random.Generator, s: Shape) -> Array:
    """One direction, longer from token to token: every token is the largest logit so far."""
    return np.asarray(constant_keys(rng, s) * np.linspace(1, 16, s.T)[:, None, None])


def falling_keys(rng: np.random.Generator, s: Shape) -> Array:
    """The same the other way round: the first token is the largest."""
    return rising_keys(rng, s)[:, ::-1]


def offset_keys(rng: np.random.Generator, s: Shape) -> Array:
    """A large common part and a small own one: logits of size 100 that differ by about 1."""
    return np.asarray(100 * constant_keys(rng, s) + gaussian_keys(rng, s))


def own_queries(rng: np.random.Generator, s: Shape, keys: Array) -> Array:
    """Independent directions, whatever the keys."""
    return gaussian_keys(rng, s)


def long_queries(rng: np.random.Generator, s: Shape, keys: Array) -> Array:
    """Independent directions, for logits of up to 80."""
    return np.asarray(80 * s.K**0.5 * gaussian_keys(rng, s))


def queries_toward(length: float) -> Callable[[np.random.Generator, Shape, Array], Array]:
    """Toward the first key, besides an own part: for logits of ``length`` and 1 per unit of key."""

    def draw(rng: np.random.Generator, s: Shape, keys: Array) -> Array:
        return np.asarray(s.K**0.5 * (length * _unit(keys[:, :1]) + gaussian_keys(rng, s)))

    return draw


def no_gate(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """No decay."""
    return np.zeros(shape)


def slow_gate(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Decay over a thousand tokens."""
    return np.asarray(-2e-3 * rng.random(shape))


def mild_gate(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """The gates of flash-linear-attention's tests: log of a sigmoid, divided by 16."""
    return np.asarray(-np.logaddexp(0.0, rng.standard_normal(shape)) / 16)


def strong_gate(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """-5 everywhere, the usual lower bound: a chunk of 64 spans 320, past the range of float32."""
    return np.full(shape, -5.0)


def mixed_gate(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """0 or -5 at random: some channels remember all, others nothing."""
    return np.asarray(-5.0 * rng.integers(0, 2, shape))


def reset_gate(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Mild, but -1000 at one token in eight: e^-1000 is 0 in every format."""
    return np.where(rng.random(shape) < 1 / 8, -1000.0, mild_gate(rng, shape))


def sigmoid_beta(rng: np.random.Generator, s: Shape) -> Array:
    """The sigmoid of a normal number, as layers compute it."""
    return np.asarray(1 / (1 + np.exp(-rng.standard_normal((s.B, s.T, s.HV)))))


def beta_above_one(rng: np.random.Generator, s: Shape) -> Array:
    """Between 1 and 2: negative eigenvalues."""
    return 1 + rng.random((s.B, s.T, s.HV))


def fixed_beta(value: float) -> Draw:
    """The same strength at every token."""

    def draw(rng: np.random.Generator, s: Shape) -> Array:
        return np.full((s.B, s.T, s.HV), value)

    return draw


@dataclass(frozen=True)
class InputClass:
    """How one class of inputs is drawn, and why kernels fail on it.

    ``length`` multiplies queries and keys. ``predicted``: the state already holds v, but for a hundredth.
    ``needs``: features of a mechanism without which the class is another one under a second name.
    """

    name: str
    why: str
    keys: Draw
    gate: Gate
    beta: Draw
    length: float = 1.0
    predicted: bool = False
    needs: frozenset[str] = frozenset()
    queries: Callable[[np.random.Generator, Shape, Array], Array] = own_queries

    def suits(self, mechanism: Mechanism) -> bool:
        return self.needs <= mechanism.features


GATE, BETA, LOGITS = (frozenset({word}) for word in ("gate", "beta", "logits"))
REAL_CLASSES = (
    InputClass("random", "the baseline every test has", gaussian_keys, mild_gate, sigmoid_beta),
    InputClass("positive", "positive keys, as in tests of kernels", positive_keys, mild_gate, sigmoid_beta),
    *(
        InputClass(
            f"constant-key-{beta:g}",
            "powers of the strictly lower matrix grow while the solution stays small",
            constant_keys,
            slow_gate if beta < 1 else no_gate,
            fixed_beta(beta),
            needs=BETA,
        )
        for beta in (0.5, 0.9, 0.97, 1.0)
    ),
    InputClass("correlated", "ill-conditioned triangular systems", correlated_keys, slow_gate, sigmoid_beta),
    InputClass("gate-zero", "the ungated delta rule", gaussian_keys, no_gate, sigmoid_beta, needs=GATE),
    InputClass(
        "gate-strong",
        "exponents beyond the range of float32",
        gaussian_keys,
        strong_gate,
        sigmoid_beta,
        needs=GATE,
    ),
    InputClass(
        "gate-mixed",
        "channels of very different decay",
        gaussian_keys,
        mixed_gate,
        sigmoid_beta,
        needs=GATE,
    ),
    InputClass(
        "gate-reset", "decay to exactly 0 inside a chunk", gaussian_keys, reset_gate, sigmoid_beta, needs=GATE
    ),
    InputClass(
        "beta-above-one", "negative eigenvalues", gaussian_keys, mild_gate, beta_above_one, needs=BETA
    ),
    InputClass("small", "epsilons added to norms", gaussian_keys, mild_gate, sigmoid_beta, length=2.0**-10),
    InputClass(
        "predicted-value",
        "v close to what a large state already holds: v - S^T k cancels",
        gaussian_keys,
        slow_gate,
        sigmoid_beta,
        predicted=True,
        needs=BETA,
    ),
    *(
        InputClass(name, why, keys, no_gate, sigmoid_beta, needs=LOGITS, queries=queries)
        for name, why, keys, queries in (
            ("logits-large", "one weight near 1, the others far below", gaussian_keys, long_queries),
            ("logits-equal", "every weight the same", constant_keys, own_queries),
            ("logits-rising", "every token is the largest so far", rising_keys, queries_toward(5)),
            ("logits-falling", "the first token is the largest", falling_keys, queries_toward(5)),
            ("logits-offset", "exponentials overflow without a maximum", offset_keys, queries_toward(1)),
        )
    ),
)


def draw_case(
    kind: InputClass, mechanism: str, shape: Shape, *, dtype: str, seed: int, with_state: bool
) -> Case:
    """One case of a class: everything drawn from ``seed``, then rounded to the dtype it is handed over in.

    Heads and sequences differ: value head h of sequence b has values of size (1 + h)(1 + b/2).
    ``predicted-value`` always has a state.
    """
    rng = np.random.default_rng(seed)
    s = shape
    formats = format_named(dtype), format_named("float64" if dtype == "float64" else "float32")

    def handed(x: Array) -> Array:
        return round_array(formats[0], x)

    def gated(x: Array) -> Array:
        return round_array(formats[1], x)

    sizes = (1 + np.arange(s.HV)) * (1 + np.arange(s.B)[:, None] / 2)
    takes = named(mechanism)
    keys = kind.keys(rng, s)
    query_heads = s.H if "q" in takes.shared else s.HV
    alike = np.repeat(keys, query_heads // s.H, axis=2)
    q = handed(kind.length * kind.queries(rng, replace(s, H=query_heads), alike))
    k = handed(kind.length * keys)
    beta = gated(kind.beta(rng, s)) if takes.erases else None
    g = gated(kind.gate(rng, takes.gate_shape((s.B, s.T, s.HV), s.K))) if takes.gate else None
    v = sizes[:, None, :, None] * rng.standard_normal((s.B, s.T, s.HV, s.V))
    v = v[:, :, : s.H] if "v" in takes.shared else v
    state = gated(sizes[:, :, None, None] * rng.standard_normal((s.B, s.HV, s.K, s.V)))
    if kind.predicted:
        state = gated(100 * state)
    case = Case(
        mechanism=mechanism,
        name=kind.name,
        seed=seed,
        dtype=dtype,
        q=q,
        k=k,
        v=handed(v),
        g=g,
        beta=beta,
        initial_state=state if takes.stateful and (with_state or kind.predicted) else None,
        scale=s.K**-0.5,
    )
    return case.replace(v=handed(_predicted(case, v / 100, state))) if kind.predicted else case


def _predicted(case: Case, rest: Array, state: Array) -> Array:
    """Values that the decayed state predicts up to ``rest``, while those rests are written to it."""
    k = np.repeat(case.k, rest.shape[2] // case.k.shape[2], axis=2)
    alpha, beta = np.exp(case.log_decay), case.strength
    v = np.empty_like(rest)
    for t in range(rest.shape[1]):
        state = alpha[:, t, ..., None] * state
        v[:, t] = np.einsum("bhk,bhkv->bhv", k[:, t], state) + rest[:, t]
        state = state + np.einsum("bh,bhk,bhv->bhkv", beta[:, t], k[:, t], rest[:, t])
    return v

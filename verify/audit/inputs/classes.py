"""Input classes with real-valued entries: kinds of key, gate and write strength on which kernels differ."""

from dataclasses import dataclass, replace

import numpy as np

from verify.audit.case import Case, Shape
from verify.audit.inputs.draws import (
    Draw,
    Gate,
    Queries,
    Sizes,
    beta_above_one,
    block_start_gate,
    constant_keys,
    correlated_keys,
    even_sizes,
    fading_sizes,
    falling_keys,
    fixed_beta,
    gaussian_keys,
    huge_gate,
    infinite_gate,
    long_queries,
    middle_reset_gate,
    mild_gate,
    mixed_gate,
    near_keys,
    no_gate,
    offset_keys,
    own_queries,
    positive_keys,
    queries_toward,
    reset_gate,
    rising_keys,
    sigmoid_beta,
    slow_gate,
    strong_gate,
    threshold_gate,
    uneven_gate,
)
from verify.audit.inputs.entries import draw_entries, features, predicted_values, rounding
from verify.audit.mechanism import Mechanism, named
from verify.numbers.formats import format_named


@dataclass(frozen=True)
class InputClass:
    """How one class of inputs is drawn, and why kernels fail on it.

    ``length`` multiplies queries and keys, ``sizes`` the values of every token, ``scale`` the usual K**-0.5.
    ``predicted``: the state already holds v, but for a hundredth. ``apart``: `draw_entries`. ``needs``:
    features of a mechanism without which the class is another one under a second name.
    """

    name: str
    why: str
    keys: Draw = gaussian_keys
    gate: Gate = mild_gate
    beta: Draw = sigmoid_beta
    length: float = 1.0
    predicted: bool = False
    apart: bool = False
    needs: frozenset[str] = frozenset()
    queries: Queries = own_queries
    sizes: Sizes = even_sizes
    scale: float = 1.0

    def suits(self, mechanism: Mechanism) -> bool:
        return self.needs <= mechanism.features


GATE, BETA, LOGITS, DIRECTIONS, SCALE = (
    frozenset({word}) for word in ("gate", "beta", "logits", "directions", "scale")
)
_GATES: tuple[tuple[str, str, Gate], ...] = (
    ("gate-zero", "the ungated delta rule", no_gate),
    ("gate-strong", "exponents beyond the range of float32", strong_gate),
    ("gate-mixed", "channels of very different decay", mixed_gate),
    ("gate-uneven", "heads of very different decay, the first of none", uneven_gate),
    ("gate-reset", "decay to exactly 0 inside a chunk", reset_gate),
    ("gate-block-start", "one strong gate on the first row of every block of 16", block_start_gate),
    ("gate-threshold", "sums of gates just inside and just outside the range of exp", threshold_gate),
    ("gate-huge", "sums of gates that round by more than the range of exp", huge_gate),
)
_LOGITS: tuple[tuple[str, str, Draw, Queries], ...] = (
    ("logits-large", "one weight near 1, the others far below", gaussian_keys, long_queries),
    ("logits-equal", "every weight the same", constant_keys, own_queries),
    ("logits-rising", "every token is the largest so far", rising_keys, queries_toward(5)),
    ("logits-falling", "the first token is the largest", falling_keys, queries_toward(5)),
    ("logits-offset", "exponentials overflow without a maximum", offset_keys, queries_toward(1)),
    ("logits-low", "every logsumexp below -88.7: e^-lse overflows", offset_keys, queries_toward(-3)),
    ("logits-lowest", "every logit below a mask of -5e4", near_keys, queries_toward(-600)),
)
REAL_CLASSES = (
    InputClass("random", "the baseline every test has"),
    InputClass("positive", "positive keys, as in tests of kernels", positive_keys),
    *(
        InputClass(
            f"constant-key-{beta:g}",
            "powers of the strictly lower matrix grow while the solution stays small",
            constant_keys,
            slow_gate if beta < 1 else no_gate,
            fixed_beta(beta),
            needs=BETA,
        )
        for beta in (0.5, 0.9, 0.97, 1.0, 2.0)
    ),
    InputClass("correlated", "ill-conditioned triangular systems", correlated_keys, slow_gate),
    *(InputClass(name, why, gate=gate, needs=GATE) for name, why, gate in _GATES),
    InputClass(
        "fading",
        "values of 2^20, a full reset, values of 1: sums that reach across it lose what follows",
        gate=middle_reset_gate,
        needs=GATE,
        sizes=fading_sizes,
    ),
    InputClass("beta-above-one", "negative eigenvalues", beta=beta_above_one, needs=BETA),
    InputClass("small", "epsilons added to norms", length=2.0**-10),
    InputClass(
        "predicted-value",
        "v close to what a large state already holds: v - S^T k cancels",
        gate=slow_gate,
        predicted=True,
        needs=BETA,
    ),
    *(
        InputClass(name, why, keys, slow_gate, apart=True, needs=DIRECTIONS)
        for name, why, keys in (
            ("directions-apart", "transitions that are not symmetric and may lengthen", gaussian_keys),
            ("directions-constant", "the same, along one direction at every token", constant_keys),
        )
    ),
    *(InputClass(name, why, keys, queries=own, needs=LOGITS) for name, why, keys, own in _LOGITS),
    InputClass(
        "gate-infinite",
        "a decay of exactly 0 as a logarithm: differences of sums are inf - inf",
        gate=infinite_gate,
        needs=GATE,
    ),
    InputClass("scale-negative", "the largest product is the smallest logit", needs=LOGITS, scale=-1.0),
    InputClass(
        "scale-zero", "a scale of 0 taken for none; a mask before the scale is 0·inf", needs=SCALE, scale=0.0
    ),
    InputClass("scale-tiny", "logits that all but vanish", needs=LOGITS, scale=2.0**-40),
    InputClass("scale-huge", "logits of thousands: one weight of 1", needs=LOGITS, scale=2.0**12),
)

_ROOM = 2.0**8
"""Between the sizes of values and the largest number of their format: outputs add up several of them."""


def draw_case(
    kind: InputClass, mechanism: str, shape: Shape, *, dtype: str, seed: int, with_state: bool
) -> Case:
    """One case of a class: everything drawn from ``seed``, then rounded to the dtype it is handed over in.

    Heads and sequences differ: value head h of sequence b has values of size (1 + h)(1 + b/2).
    ``predicted-value`` always has a state.
    """
    rng = np.random.default_rng(seed)
    s = shape
    sizes = (1 + np.arange(s.HV)) * (1 + np.arange(s.B)[:, None] / 2)
    takes = named(mechanism)
    rounded = rounding(takes, dtype)
    keys = features(takes, kind.keys(rng, s))
    query_heads = s.H if "q" in takes.shared else s.HV
    alike = np.repeat(keys, query_heads // s.H, axis=2)
    q = rounded("q", kind.length * features(takes, kind.queries(rng, replace(s, H=query_heads), alike)))
    k = rounded("k", kind.length * keys)
    own = np.repeat(keys, s.HV // s.H, axis=2)
    directions = (lambda rng, s: own) if kind.predicted else kind.keys
    entries = draw_entries(
        takes,
        rng,
        s,
        rounded,
        beta=kind.beta,
        gate=kind.gate,
        directions=directions,
        apart=kind.apart,
    )
    v = sizes[:, None, :, None] * rng.standard_normal((s.B, s.T, s.HV, s.V))
    v *= np.minimum(kind.sizes(s.T), float(format_named(dtype).max) / _ROOM)[:, None, None]
    v = v[:, :, : s.H] if "v" in takes.shared else v
    state = sizes[:, :, None, None] * rng.standard_normal((s.B, s.HV, s.K, s.V))
    state = rounded("initial_state", 100 * state if kind.predicted else state)
    case = Case(
        mechanism=mechanism,
        name=kind.name,
        seed=seed,
        dtype=dtype,
        q=q,
        k=k,
        v=rounded("v", v),
        g=entries.get("g"),
        beta=entries.get("beta"),
        initial_state=state if takes.stateful and (with_state or kind.predicted) else None,
        scale=kind.scale * takes.scale(s.K),
        a=entries.get("a"),
        b=entries.get("b"),
        w=entries.get("w"),
    )
    if not kind.predicted:
        return case
    return case.replace(v=rounded("v", predicted_values(case, v / 100, state)))

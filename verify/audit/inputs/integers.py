"""Inputs on which every correct kernel is exact: small integers, whatever the order of its sums.

Keys are +-e_i (length**2 = 1) or +-e_i +- e_j (length**2 = 2), beta is 0 or 1, gates are 0 or -1000 (e^-1000
is 0 in every format), q, v and the state are small integers and K is 4, 16 or 64, so that the scale K**-0.5
is a power of two. Why nothing rounds, in a format of precision p (results) computed with precision P >= 24:

Linear attention erases nothing: an entry grows by at most max|v|, and an output sums at most 2 such entries.
The same with decays of 0 and 1: Mamba-2, simple GLA.
Attention by weights, which has no state, has its own inputs: see `counted`.

Size. beta length**2 is 0, 1 or 2, so I - beta k k^T is the identity, a projection or a reflection, and each
step is S <- (I - beta k k^T) Diag(alpha) S + beta k v^T with integer entries. For a one-entry key, an entry
of row i becomes 0 + v. For a two-entry key, row i becomes -+(row j) +- v. So every |entry| grows by at most
max|v| per token: after t tokens it is at most s_t = max|S_0| + t max|v|.

Recurrent form. The read k^T S has at most 2 terms, v minus it, the product with beta, and the sum are
integers of size at most 2 s_t + max|v|. Output: a sum of at most 2 terms (queries are +-e_i or +-e_i +- e_j)
times a power of two. Scaling before or after the sum is the same.

Chunked form, C <= 64 tokens. L_ij = beta_i k_i^T Gamma k_j is an integer in [-2, 2], because decays are 0 or
1 (formed as e^(G_i - G_j) with G an integer multiple of 1000, exact below 2^P). An entry of T = (I + L)^-1
is minus what a write at token j adds to the error at token i: -beta_i k_i^T(product of transitions)k_j.
Transitions do not lengthen (claim kda.transition-spectrum), so |T_ij| <= |k_i||k_j| = 2. Forward
substitution, on a right-hand side or on the identity, sums products L_ij X_j of integers. With X the writes,
|X| <= 2 s_T + max|v|; with X = T, |X| <= 2; with X = W = T beta k Gamma, at most 2 C. Each sum of absolute
values is then at most C * 2 * 2 C * s_T, which `inexact` requires to be at most 2^P in units of the
scale.

Directions of their own. GDN-2 has gates b and w of 0 or 1, DPLR a vector b like a key and a of entries 0 or
-b, and 0 where the gate resets. In column i of the transition, I - k (b k)^T or Diag(alpha) + b a^T, the i-th
entry is 0 or at most 1, and the other of at most 2 nonzero ones is at most 1 and there only if the i-th is 0:
absolute values of a column of S, which may have two nonzero entries a token more, add up to no more than
before. So those of a column of S add up to at most s_t = K max|S_0| + 2 t max|v|, which bounds all that b k
or a reads, as none of their entries is larger than 1; and an entry of T, now -(b k)_i^T (product of
transitions) k_j or a_i^T (...) b_j, is at most 2. T times writes or reads has sums of at most C * 2 * s_T,
and times the products A_k V of DPLR, at most 2 C max|v| before anything cancels, of C * 2 * 2 C max|v|.

Any order. A partial sum of integers in any order is an integer of size at most the sum of absolute values.
All integers up to 2^P are representable, so that no addition rounds, whatever the tree; fused or not makes
no difference as the products are exact. Only the last conversion, to precision p, is to a smaller format:
`inexact` computes every output exactly and requires it to be a value of that format.

Powers of L are not covered: entries of L^8 reach C(14, 7) 2^8, so an inverse by repeated squaring may round.
"""

from dataclasses import replace

import numpy as np

from verify.audit.case import Array, Case, Shape
from verify.audit.inputs.counted import VANISHES, draw_counted_case, is_counted_case
from verify.audit.mechanism import Mechanism, named
from verify.model.errors import RequestError
from verify.numbers.formats import Format, format_named, is_representable_array

KEY_SIZES = (4, 16, 64)
LARGEST_CHUNK = 64
_RESET = -1000.0


def draw_integer_case(
    mechanism: str, shape: Shape, *, dtype: str, seed: int, with_state: bool, resets: bool
) -> Case:
    """A case on which a correct kernel is exact, for outputs in ``dtype`` and T <= 127.

    Raises:
        RequestError: K is not 4, 16 or 64.
    """
    s = shape
    if s.K not in KEY_SIZES:
        raise RequestError(
            f"integer inputs need K in {KEY_SIZES} so that K**-0.5 is a power of two, got {s.K}"
        )
    if not named(mechanism).stateful:
        return draw_counted_case(mechanism, s, dtype=dtype, seed=seed)
    rng = np.random.default_rng(seed)
    precision = format_named(dtype).precision
    # Outputs reach 2 (max|S_0| + T max|v|); at T = 127 this keeps them within the format's integers.
    largest = int(min(7, 2 ** (precision - 8)))
    v = rng.integers(-largest, largest + 1, (s.B, s.T, s.HV, s.V)).astype(np.float64)
    kind = named(mechanism)
    per_head = (s.B, s.T, s.HV)
    gates = kind.gate_shape(per_head, s.K)
    keys = _short_vectors(rng, s)
    queries = _short_vectors(rng, s)
    decay = np.where(rng.random(gates) < (1 / 16 if resets else 0), _RESET, 0.0) if kind.gate else None
    state = rng.integers(-largest, largest + 1, (s.B, s.HV, s.K, s.V)).astype(np.float64)
    directions = _directions(kind, rng, s, decay)
    return Case(
        mechanism=mechanism,
        name="integer-reset" if resets else "integer",
        seed=seed,
        dtype=dtype,
        q=queries,
        k=keys,
        v=v,
        g=decay,
        beta=_ones(rng, per_head) if kind.erases else None,
        initial_state=state if with_state else None,
        scale=kind.scale(s.K),
        a=directions.get("a"),
        b=directions.get("b"),
        w=directions.get("w"),
    )


def _ones(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """1, or 0 at one place in eight."""
    return (rng.random(shape) < 7 / 8).astype(np.float64)


def _directions(kind: Mechanism, rng: np.random.Generator, s: Shape, decay: Array | None) -> dict[str, Array]:
    """Gates of 0 and 1, or a direction like a key, read in part where the state is kept."""
    if not kind.directed:
        return {}
    if "a" not in kind.data:
        return {"b": _ones(rng, (s.B, s.T, s.HV, s.K)), "w": _ones(rng, (s.B, s.T, s.HV, s.V))}
    b = _short_vectors(rng, replace(s, H=s.HV))
    kept = _ones(rng, b.shape) * (1.0 if decay is None else decay == 0)
    return {"a": 0.0 - b * kept, "b": b}


def _short_vectors(rng: np.random.Generator, s: Shape) -> Array:
    """+-e_i or +-e_i +- e_j with i != j, one of each kind on average, [B, T, H, K]."""
    order = rng.random((s.B, s.T, s.H, s.K)).argsort(-1)
    entries = 1 + rng.integers(0, 2, (s.B, s.T, s.H, 1))
    return np.where(order < entries, rng.choice([-1.0, 1.0], order.shape), 0.0)


def is_integer_case(case: Case) -> bool:
    """Whether a case keeps the conditions of this module, whatever its name."""
    if not case.kind.stateful:
        return is_counted_case(case)
    vectors = [case.q, case.k, *((case.b,) if case.a is not None and case.b is not None else ())]
    short = [np.isin(x, (-1.0, 0.0, 1.0)).all() and (np.abs(x).sum(-1) <= 2).all() for x in vectors]
    whole = [x for x in (case.v, case.initial_state) if x is not None]
    return bool(
        all(short)
        and _directed_exactly(case)
        and np.isin(case.strength, (0.0, 1.0)).all()
        and ((case.log_decay == 0) | (case.log_decay <= VANISHES)).all()
        and all((x == np.rint(x)).all() for x in whole)
        and case.scale > 0
        and np.frexp(case.scale)[0] == 0.5
    )


def _directed_exactly(case: Case) -> bool:
    """Gates of GDN-2 of 0 and 1; a of DPLR 0 or -b, and 0 where the state is reset."""
    if case.a is not None and case.b is not None:
        return bool((((case.a == -case.b) & (case.log_decay == 0)) | (case.a == 0)).all())
    gates = [x for x in (case.b, case.w) if x is not None]
    return all(bool(np.isin(x, (0.0, 1.0)).all()) for x in gates)


def inexact(
    case: Case, output: Array, final_state: Array, output_format: Format, compute: Format
) -> str | None:
    """Why a correct kernel need not be exact on this case; None if it must be.

    Args:
        case: an integer case.
        output: its exact output, [B, T, HV, V].
        final_state: its exact final state.
        output_format: what the output comes back in; the state comes back in ``compute``.
        compute: what the kernel computes in.
    """
    if not is_integer_case(case):
        return "is not one of small integers, so it need not be exact"
    start = 0.0 if case.initial_state is None else np.abs(case.initial_state).max(initial=0.0)
    largest = np.abs(case.v).max(initial=0.0)
    chunk = min(LARGEST_CHUNK, case.shape.T)
    partial_sum = 4 * chunk * chunk * max(start + case.shape.T * largest, 1.0)
    if case.kind.directed:
        size = case.shape.K * start + 2 * case.shape.T * largest
        partial_sum = 4 * chunk * max(chunk * largest + size, 1.0)
    if partial_sum > 2.0**compute.precision:
        return f"has sums that may reach {partial_sum:.0f}, beyond the integers of {compute.name}"
    for name, array, target in (("output", output, output_format), ("final state", final_state, compute)):
        if not is_representable_array(target, array).all():
            return f"has an exact {name} with entries {target.name} cannot represent"
    return None

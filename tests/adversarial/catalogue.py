"""28 faults found in public attention kernels, as broken kernels: how each is called and where it shows.

Letters and digits number the faults; the broken kernels' own docstrings say where each was found.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from verify.audit.case import Case, Shape
from verify.audit.convention import Convention
from verify.audit.inputs.integers import draw_integer_case
from verify.audit.inputs.probes import probe

FOLDER = Path(__file__).parent / "broken"
Inputs = Callable[[Convention], Case]


@dataclass(frozen=True)
class Fault:
    """A broken kernel.

    Args:
        number: of the fault.
        title: what is wrong, in a few words.
        file: in ``broken``, without its suffix.
        function: in that file.
        classes: input classes that show the fault; empty where none does.
        reasons: the reasons that a certificate then names; empty where it knows of none but wrong numbers.
        hides: an input on which the kernel is right; None where there is none.
        shows: an input that shows the fault, for one that no class shows.
        dtype: of q, k and v.
        gradients: whether the fault is one of gradients alone.
        packed: whether the fault is one of packed sequences alone.
        gate_space: what the kernel takes for a gate.
    """

    number: str
    title: str
    file: str
    function: str
    classes: tuple[str, ...]
    reasons: tuple[str, ...]
    hides: Inputs | None
    shows: Inputs | None = None
    dtype: str = "float32"
    gradients: bool = False
    packed: bool = False
    gate_space: str = "ln"

    @property
    def mechanism(self) -> str:
        return self.function.split("_")[1]

    @property
    def target(self) -> str:
        return f"{FOLDER / self.file}.py:{self.function}"

    @property
    def convention(self) -> Convention:
        """Ours, for a kernel that subtracts running sums of gates."""
        packed = "cu_seqlens" if self.packed else ""
        ours = Convention.load("ours", self.mechanism, self.target)
        return dataclasses.replace(ours, gate_sums="running", cu_seqlens=packed, gate_space=self.gate_space)


@dataclass(frozen=True)
class OutOfScope:
    """A fault that no kernel of a mechanism with a convention can have, and why."""

    number: str
    title: str
    why: str


def of(tokens: int, dtype: str = "float32", **options: object) -> Inputs:
    return lambda convention: probe(convention, dtype, tokens, **options)  # type: ignore[arg-type]


def reset_inside_a_block(convention: Convention) -> Case:
    """A reset on another row than the first of a block of 16."""
    case = probe(convention, "float32", 40)
    gates = np.array(case.g)
    gates[:, 21] = -1000.0
    return case.replace(g=gates)


def huge_gates(convention: Convention) -> Case:
    """Gates of -1e8 between zeros."""
    case = probe(convention, "float32", 64)
    rng = np.random.default_rng(0)
    gates = np.where(rng.random(np.shape(case.g)) < 0.5, -1e8 * (1 + rng.random(np.shape(case.g))), 0.0)
    return case.replace(g=gates.astype(np.float32).astype(np.float64))


def large_then_small(convention: Convention) -> Case:
    """Values of 2^20, a reset, and values of 1."""
    case = probe(convention, "float32", 64)
    values, gates = np.array(case.v), np.array(case.g)
    values[:, :32] *= 2.0**20
    gates[:, 32] = -1000.0
    return case.replace(v=values, g=gates)


def low_logits(convention: Convention) -> Case:
    """Every logit at about -120."""
    case = probe(convention, "float32", 20, key=np.eye(8)[0])
    queries = np.array(case.q)
    queries[..., 0] = -120 * 8**0.5
    return case.replace(q=queries.astype(np.float32).astype(np.float64))


def orthogonal_keys(convention: Convention) -> Case:
    return probe(convention, "float32", 8).replace(k=np.eye(8)[None, :, None, :])


def small_integers(convention: Convention) -> Case:
    """Every state is a matrix of small integers, which bfloat16 holds."""
    shape = Shape(B=1, T=9, H=1, HV=2, K=4, V=4)
    return draw_integer_case(
        convention.mechanism, shape, dtype="float32", seed=3, with_state=True, resets=False
    )


OVERFLOW = "exponential of −cumsum formed alone"
LATER = "rounding depends on later tokens"
FAULTS = (
    Fault(
        "A1",
        "e^G and e^−G formed apart",
        "split_exponential",
        "chunked_kda",
        ("gate-strong",),
        (OVERFLOW,),
        of(70, gate=-0.01),
    ),
    Fault(
        "A2",
        "one anchor for 64 rows",
        "mid_chunk_anchor",
        "chunked_kda",
        ("gate-strong",),
        (LATER, OVERFLOW),
        of(64, gate=-2.5),
    ),
    Fault(
        "A4",
        "exclusive sums, inclusive anchor",
        "exclusive_anchor",
        "chunked_kda",
        ("gate-reset",),
        (OVERFLOW,),
        reset_inside_a_block,
    ),
    Fault(
        "A6",
        "a decay of exactly 0",
        "decay_of_zero",
        "chunked_gdn",
        ("gate-reset",),
        ("not finite for strong gates",),
        of(40),
        gate_space="linear",
    ),
    Fault(
        "A7",
        "running sums by a tree rise",
        "tree_scan",
        "chunked_gdn",
        (),
        (),
        of(40),
        shows=huge_gates,
    ),
    Fault(
        "B1",
        "mask after exp",
        "mask_after_exp",
        "chunked_kda",
        ("gate-strong",),
        ("gradient of an exponential that the mask hides",),
        of(40),
        gradients=True,
    ),
    Fault(
        "B2",
        "pad rows read gate 0",
        "padded_gate",
        "chunked_kda",
        ("gate-strong",),
        ("pad rows read the running gate as 0",),
        of(64, gate=-5.0),
    ),
    Fault(
        "B4",
        "pads of a tile score 0",
        "padded_tile_backward",
        "tiled_softmax",
        (),
        (),
        of(20),
        shows=low_logits,
        gradients=True,
    ),
    Fault(
        "B5",
        "0 times an uncleared value",
        "poisoned_tail",
        "tiled_softmax",
        ("random",),
        ("not finite on mild inputs",),
        of(32),
    ),
    Fault(
        "C1",
        "final state from a pad row",
        "tail_at_the_pad",
        "chunked_kda",
        ("random",),
        ("tail chunk read at the pad",),
        of(128),
    ),
    Fault(
        "D1",
        "inverse by doubling in 16 bits",
        "doubling_inverse",
        "chunked_kda",
        ("constant-key-0.97",),
        ("unstable triangular inverse",),
        orthogonal_keys,
    ),
    Fault(
        "E1",
        "prediction rounded before v − Sk",
        "rounded_prediction",
        "recurrent_kda",
        ("predicted-value",),
        (),
        of(1, "bfloat16"),
        dtype="bfloat16",
    ),
    Fault(
        "E2",
        "β through bfloat16",
        "rounded_beta",
        "recurrent_gdn",
        ("random",),
        ("β rounded to bfloat16",),
        of(20, beta=0.5),
    ),
    Fault(
        "E3",
        "state kept in bfloat16",
        "bfloat16_state",
        "recurrent_kda",
        ("random",),
        ("state kept in bfloat16",),
        small_integers,
    ),
    Fault(
        "E4",
        "suffix sums by subtraction",
        "subtracted_sums",
        "chunked_gdn",
        (),
        (),
        of(20),
        shows=large_then_small,
        gradients=True,
    ),
    Fault(
        "F1",
        "2^G inside chunks, e^G between",
        "mixed_bases",
        "chunked_kda",
        ("random",),
        (),
        of(70, gate=0.0),
    ),
    Fault(
        "F4",
        "no erase without gates",
        "ungated_path",
        "recurrent_delta",
        ("random",),
        (),
        None,
    ),
    Fault(
        "F5",
        "clamp before negation",
        "clamp_before_negation",
        "recurrent_gdn",
        ("gate-strong",),
        (),
        None,
    ),
    Fault(
        "G1",
        "backward loses dk without gates",
        "ungated_wy_backward",
        "chunked_delta",
        ("positive",),
        ("wrong gradient of k",),
        of(20),
        gradients=True,
    ),
    Fault(
        "H2",
        "head 0's gate for all, backward",
        "first_heads_decay",
        "chunked_gdn",
        ("positive",),
        ("wrong gradient of the initial state",),
        of(20),
        gradients=True,
    ),
    Fault(
        "H4",
        "two queries share an index row",
        "shared_index_row",
        "tiled_softmax",
        ("random",),
        ("wrong gradient of q, k, v",),
        of(1),
        gradients=True,
    ),
    Fault(
        "I1",
        "state decays from the chunk's start",
        "boundary_inside_a_chunk",
        "chunked_gdn",
        ("integer",),
        ("packed sequences: wrong numbers",),
        of(70),
        packed=True,
    ),
    Fault(
        "I3",
        "state of the slot's last sequence",
        "stale_slot",
        "recurrent_gdn",
        ("random", "positive"),
        (),
        of(20, initial_state=True),
    ),
    Fault(
        "J1",
        "−inf minus −inf in masked tiles",
        "unguarded_maximum",
        "tiled_softmax",
        ("random",),
        ("not finite on mild inputs",),
        of(16),
    ),
    Fault(
        "J3",
        "base-2 lse merged with e",
        "merged_in_another_base",
        "tiled_softmax",
        ("random",),
        (),
        of(16),
    ),
    Fault(
        "K1",
        "anchor on a later row",
        "future_anchor",
        "chunked_kda",
        ("random",),
        (LATER,),
        of(40, gate=(-0.1, -0.01)),
    ),
)
OUT_OF_SCOPE = (
    OutOfScope("F3", "ε of the L2 norm on the mean", "no convention has a norm of q and k inside the kernel"),
    OutOfScope(
        "H1",
        "32-bit offsets wrap",
        "needs more than 2³¹ elements; index arithmetic is not read from the source",
    ),
)


def correct(number: str, title: str, function: str, *classes: str, gradients: bool = False) -> Fault:
    return Fault(number, title, "correct", function, classes, (), None, gradients=gradients)


CONTROLS = (
    correct("N1", "the scale folded into the queries", "folded_gdn", "random", "small"),
    correct("N2", "decay before erase", "recurrent_kda", "random", "gate-mixed"),
    correct("N4", "zeros after the sequence", "padded_kda", "random", "gate-strong"),
    correct("N5", "gradients near a gate of 0", "chunked_gdn", "gate-zero", "gate-strong", gradients=True),
    correct("–", "chunks with running sums", "chunked_kda", "random", "constant-key-0.97", "gate-reset"),
    correct("–", "tiled softmax", "tiled_softmax", "random", "logits-large", "logits-offset"),
)
"""Correct kernels. N3, N7, N8 and N9 are reports about other things than what a kernel of ours computes."""

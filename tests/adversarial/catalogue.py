"""28 faults found in public attention kernels, as broken kernels: how each is called and where it shows.

Letters and digits number the faults; the broken kernels' own docstrings say where each was found.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from verify.audit.case import Case, Shape
from verify.audit.convention.convention import Convention
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
        classes: input classes that show the fault.
        reasons: the reasons that a certificate then names.
        hides: an input on which the kernel is right; None where there is none.
        dtype: of q, k and v.
        gradients: whether the fault is one of gradients alone.
        packed: whether the fault is one of packed sequences alone.
        gate_space: what the kernel takes for a gate.
        chunk_size: tokens per chunk, where it works by chunks.
        qk_norm: what the kernel does with queries and keys.
    """

    number: str
    title: str
    file: str
    function: str
    classes: tuple[str, ...]
    reasons: tuple[str, ...]
    hides: Inputs | None
    dtype: str = "float32"
    gradients: bool = False
    packed: bool = False
    gate_space: str = "ln"
    chunk_size: int = 64
    qk_norm: str = "none"

    @property
    def mechanism(self) -> str:
        return self.function.split("_")[1]

    @property
    def target(self) -> str:
        return f"{FOLDER / self.file}.py:{self.function}"

    @property
    def convention(self) -> Convention:
        """Ours, for a kernel that subtracts running sums of gates over chunks of its own size."""
        packed = "cu_seqlens" if self.packed else ""
        ours = Convention.load("ours", self.mechanism, self.target)
        return dataclasses.replace(
            ours,
            gate_sums="running",
            cu_seqlens=packed,
            gate_space=self.gate_space,
            chunk_argument="",
            qk_norm=self.qk_norm,
            gradients="none" if self.qk_norm != "none" else ours.gradients,
            chunk_size=self.chunk_size if ours.form == "chunked" else ours.chunk_size,
        )


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


def orthogonal_keys(convention: Convention) -> Case:
    return probe(convention, "float32", 8).replace(k=np.eye(8)[None, :, None, :])


def long_keys(convention: Convention) -> Case:
    """Queries and keys beside which no ε counts."""
    case = probe(convention, "float32", 20)
    return case.replace(q=2.0**10 * case.q, k=2.0**10 * case.k)


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
        ("gate-block-start",),
        ("exponent above 0 on the first row of a block",),
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
        ("gate-huge",),
        ("running sums of gates that rise by rounding",),
        of(40),
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
        ("logits-low",),
        ("pads of a tile score 0 in the backward pass",),
        of(20),
        gradients=True,
    ),
    Fault(
        "B5",
        "0 times an uncleared value",
        "poisoned_tail",
        "tiled_softmax",
        ("random",),
        ("not finite where the last tile is partial",),
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
        chunk_size=16,
    ),
    Fault(
        "E1",
        "prediction rounded before v − Sk",
        "rounded_prediction",
        "recurrent_kda",
        ("predicted-value",),
        ("prediction rounded to bfloat16 before v − Sᵀk",),
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
        ("fading",),
        ("sums of later gates formed by subtracting earlier ones",),
        of(20),
        gradients=True,
    ),
    Fault(
        "F1",
        "2^G inside chunks, e^G between",
        "mixed_bases",
        "chunked_kda",
        ("random",),
        ("gates in base 2 in one place and base e in another",),
        of(70, gate=0.0),
    ),
    Fault(
        "F3",
        "ε of the L2 norm on the mean",
        "mean_epsilon",
        "recurrent_gdn",
        ("small",),
        ("ε of the norm added to the mean of squares",),
        long_keys,
        qk_norm="unit",
    ),
    Fault(
        "F4",
        "no erase without gates",
        "ungated_path",
        "recurrent_delta",
        ("random",),
        ("neither erase nor write strength",),
        None,
    ),
    Fault(
        "F5",
        "clamp before negation",
        "clamp_before_negation",
        "recurrent_gdn",
        ("gate-strong",),
        ("decay does not depend on the gate",),
        None,
    ),
    Fault(
        "G1",
        "backward loses dk without gates",
        "ungated_wy_backward",
        "chunked_delta",
        ("random",),
        ("wrong gradient of k",),
        of(20),
        gradients=True,
    ),
    Fault(
        "H2",
        "head 0's gate for all, backward",
        "first_heads_decay",
        "chunked_gdn",
        ("gate-uneven",),
        ("gradients of a head depend on another head",),
        of(20),
        gradients=True,
    ),
    Fault(
        "H4",
        "two queries share an index row",
        "shared_index_row",
        "tiled_softmax",
        ("random",),
        ("backward, queries reach other keys than forward",),
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
        ("starts from the state of an earlier call",),
        of(20, initial_state=True),
    ),
    Fault(
        "J1",
        "−inf minus −inf in masked tiles",
        "unguarded_maximum",
        "tiled_softmax",
        ("random",),
        ("not finite from the second tile on",),
        of(16),
    ),
    Fault(
        "J3",
        "base-2 lse merged with e",
        "merged_in_another_base",
        "tiled_softmax",
        ("random",),
        ("base-2 logsumexp merged with e",),
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
        chunk_size=16,
    ),
)
OUT_OF_SCOPE = (
    OutOfScope(
        "H1",
        "32-bit offsets wrap",
        "needs more than 2³¹ elements; where the source of a Triton kernel can be read, the certificate says "
        "which offsets are at risk, and refutes nothing",
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

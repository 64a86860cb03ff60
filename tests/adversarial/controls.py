"""Correct kernels. N3, N7, N8 and N9 are reports about other things than what a kernel of ours computes."""

from fault import Fault


def correct(
    number: str, title: str, function: str, *classes: str, gradients: bool = False, file: str = "correct"
) -> Fault:
    return Fault(number, title, file, function, classes, (), None, gradients=gradients)


CONTROLS = (
    correct("N1", "the scale folded into the queries", "folded_gdn", "random", "small"),
    correct("N2", "decay before erase", "recurrent_kda", "random", "gate-mixed"),
    correct("N4", "zeros after the sequence", "padded_kda", "random", "gate-strong"),
    correct("N5", "gradients near a gate of 0", "chunked_gdn", "gate-zero", "gate-strong", gradients=True),
    correct("–", "chunks with running sums", "chunked_kda", "random", "constant-key-0.97", "gate-reset"),
    correct("–", "64-bit offsets", "chunked_gdn", "random", file="wide_rows"),
    correct("–", "tiled softmax", "tiled_softmax", "random", "logits-large", "logits-offset"),
)

"""How torch's entrywise operations round: not at all, once, as a library does, or as a formula says."""

from collections.abc import Callable

from torch import Tensor

# Their results are among their operands, constants or integers, so that there is nothing to round.
_MOVE_NAMES = """
abs alias amax amin arange as_strided cat ceil clamp clamp_max clamp_min clone constant_pad_nd copy_
detach diag_embed diagonal diagonal_backward diagonal_copy empty empty_like empty_permuted expand eye
fill_ flip floor full full_like gather index index_copy index_fill index_select lift_fresh
_local_scalar_dense masked_fill masked_scatter max maximum min minimum neg new_empty new_full new_ones
new_zeros ones ones_like permute relu repeat _reshape_alias roll round scalar_tensor select
select_backward select_scatter sign slice slice_backward slice_scatter split split_with_sizes squeeze
stack t _to_copy transpose tril triu trunc unbind unfold _unsafe_view unsqueeze view where zero_ zeros
zeros_like
"""
# One operation of IEEE arithmetic, rounded once.
_ROUNDED_NAMES = "add div mul reciprocal sqrt square sub"
# Libraries promise one unit in the last place for these, not correct rounding.
_ELEMENTARY_NAMES = """
cos exp exp2 expm1 log log1p log2 pow rsqrt sigmoid silu sin softplus tanh
"""
MOVES, ROUNDED, ELEMENTARY = (
    frozenset(names.split()) for names in (_MOVE_NAMES, _ROUNDED_NAMES, _ELEMENTARY_NAMES)
)


def _addcmul(x: Tensor, a: Tensor, b: Tensor, *, value: float = 1) -> Tensor:
    product = a * b
    return x + (product if value == 1 else product * value)


def _addcdiv(x: Tensor, a: Tensor, b: Tensor, *, value: float = 1) -> Tensor:
    ratio = a / b
    return x + (ratio if value == 1 else ratio * value)


def _lerp(x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
    return x + (y - x) * weight


def _rsub(x: Tensor, y: Tensor, alpha: float = 1) -> Tensor:
    # Of a number less a tensor, torch would make the same operation again.
    return -(x if alpha == 1 else x * alpha) + y


def _sigmoid_backward(gradient: Tensor, y: Tensor) -> Tensor:
    return gradient * ((1 - y) * y)


def _tanh_backward(gradient: Tensor, y: Tensor) -> Tensor:
    return gradient * (1 - y * y)


FORMULAS: dict[str, Callable[..., Tensor]] = {
    "addcdiv": _addcdiv,
    "addcmul": _addcmul,
    "lerp": _lerp,
    "rsub": _rsub,
    "sigmoid_backward": _sigmoid_backward,
    "tanh_backward": _tanh_backward,
}
"""Each operation rounded; a kernel that fuses a product with a sum leaves one of the roundings out."""

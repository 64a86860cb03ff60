"""The backends of torch's scaled_dot_product_attention, each as a function: targets for `attnproof certify`.

attnproof certify examples/sdpa_backends.py:math --mechanism softmax --convention sdpa --gradients
"""

from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import pad, scaled_dot_product_attention


def math(query, key, value, **options):
    """The plain formula, matrix by matrix."""
    with sdpa_kernel(SDPBackend.MATH):
        return scaled_dot_product_attention(query, key, value, **options)


def flash(query, key, value, **options):
    """Tiles of keys with a running maximum.

    The backend wants heads of one width and as many of them for keys as for queries; columns of zeros and
    copies of heads change no result.
    """
    width, group = max(query.shape[-1], value.shape[-1]), query.shape[1] // key.shape[1]
    wide = [pad(x, (0, width - x.shape[-1])) for x in (query, key, value)]
    keys, values = (x.repeat_interleave(group, dim=1) for x in wide[1:])
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        output = scaled_dot_product_attention(wide[0], keys, values, **options)
    return output[..., : value.shape[-1]]

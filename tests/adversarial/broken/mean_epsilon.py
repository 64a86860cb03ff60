"""F3: queries and keys are normalised with ε on the mean of squares, K times that on their sum (mlx-lm#1624).

Shows for short queries and keys; hides where they are long beside the root of K ε.
"""

from skeleton import recurrent

EPSILON = 1e-6


def normalised(x):
    """``x / sqrt(|x|^2 + K EPSILON)``; right is ``x / sqrt(|x|^2 + EPSILON)``."""
    x = x.float()
    return x * (x.square().mean(-1, keepdim=True) + EPSILON).rsqrt() * x.shape[-1] ** -0.5


def recurrent_gdn(q, k, v, g, beta, *, scale, initial_state=None, output_final_state=False):
    options = {"initial_state": initial_state, "output_final_state": output_final_state}
    return recurrent(normalised(q), normalised(k), v, g, beta, scale=scale, **options)

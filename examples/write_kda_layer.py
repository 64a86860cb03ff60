"""Writes kda_layer.safetensors: one small KDA head with the initial values of a flash-linear-attention layer.

K = V = 4 and tokens in R^8; e^A_log is uniform in 1..16 and softplus(dt_bias) log-uniform in 0.001..0.1. The
names are those that `attnproof refute gated-collision --weights` reads.
"""

from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

KEYS, VALUES, WIDTH = 4, 4, 8


def layer(seed: int = 0) -> dict[str, np.ndarray]:
    """The arrays of the head, float32."""
    rng = np.random.default_rng(seed)

    def projection(*shape: int) -> np.ndarray:
        return rng.normal(0, WIDTH**-0.5, shape).astype(np.float32)

    step = np.exp(rng.uniform(np.log(0.001), np.log(0.1), KEYS))
    return {
        "w_q": projection(KEYS, WIDTH),
        "w_k": projection(KEYS, WIDTH),
        "w_v": projection(VALUES, WIDTH),
        "w_beta": projection(WIDTH),
        "w_gate": projection(KEYS, WIDTH),
        "A_log": np.log(rng.uniform(1, 16, 1)).astype(np.float32),
        "dt_bias": np.log(np.expm1(step)).astype(np.float32),
    }


if __name__ == "__main__":
    save_file(layer(), Path(__file__).with_name("kda_layer.safetensors"))

"""J1: tiles from the last to the first, and the largest logit of masked tiles is -inf (vllm#48366).

Shows where a whole tile is masked before the first key that is seen; hides where masked keys trail.
"""

from attention import tiled


def tiled_softmax(q, k, v, *, scale):
    last = k.shape[1] - 1

    def sees(rows, columns):
        return last - columns <= rows

    return tiled(q, k.flip(1), v.flip(1), scale=scale, sees=sees, guard=lambda largest: largest)

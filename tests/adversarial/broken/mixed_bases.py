"""F1: inside a chunk the decay is 2^G, between chunks e^G (sglang#31904).

Shows with any decay; hides without.
"""

import functools
import math

from skeleton import chunked, pairwise


def scores(x, y, running):
    return pairwise(x, y, running * math.log(2.0))


chunked_gdn = chunked_kda = functools.partial(chunked, scores=scores)

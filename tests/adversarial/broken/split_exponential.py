"""The decay between two tokens as ``e^G`` times ``e^-G``, each formed alone (executorch#21417)."""

import functools

from skeleton import chunked


def scores(x, y, running):
    return (x * running.exp()) @ (y * (-running).exp()).mT


chunked_gdn = chunked_kda = functools.partial(chunked, scores=scores)

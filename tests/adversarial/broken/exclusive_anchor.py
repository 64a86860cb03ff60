"""A4: sums up to the row before it, relative to a sum that includes the row: an exponent above 0 (fla#77).

Shows with a gate below -88.7 on the first row of a block of 16; hides with the same gate on any other row.
"""

import functools

from skeleton import chunked, pairwise

BLOCK = 16


def scores(x, y, running):
    result = pairwise(x, y, running)
    for start in range(BLOCK, running.shape[2], BLOCK):
        rows, before = slice(start, start + BLOCK), slice(start)
        anchor = running[:, :, start, None]
        exclusive = running[:, :, start - 1 : start + BLOCK - 1]
        left = x[:, :, rows] * (running[:, :, rows] - exclusive).exp() * (exclusive - anchor).exp()
        right = y[:, :, before] * (anchor - running[:, :, before]).exp()
        result[:, :, rows, before] = left @ right.mT
    return result


chunked_gdn = chunked_kda = functools.partial(chunked, scores=scores)

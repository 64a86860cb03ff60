"""Query head hv reads key head hv % H instead of hv // (HV // H)."""

import functools

from attention import tiled

tiled_softmax = functools.partial(tiled, group=lambda heads, count: heads % count)

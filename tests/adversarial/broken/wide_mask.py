"""The causal mask is one diagonal too wide: a token sees the next one."""

import functools

from attention import tiled

tiled_softmax = functools.partial(tiled, sees=lambda rows, columns: columns <= rows + 1)

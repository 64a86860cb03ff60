"""The state is stored in bfloat16 after every token (ollama#15865)."""

import functools

from skeleton import recurrent

recurrent_gdn = recurrent_kda = functools.partial(recurrent, after=lambda state: state.bfloat16().float())

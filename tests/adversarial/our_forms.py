"""All forms of the project's own kernels behind one function, so that one worker serves them all."""

import importlib


def call(*, form, **keywords):
    kind, _, mechanism = form.rpartition("_")
    module = importlib.import_module(f"kernels.{mechanism}.{'triton_tiled' if kind == 'triton' else kind}")
    return getattr(module, form)(**keywords)

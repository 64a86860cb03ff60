"""All forms of the project's own kernels behind one function, so that one worker serves them all."""

import importlib


def call(*, form, **keywords):
    mechanism = form.partition("_")[2]
    module = importlib.import_module(f"kernels.{mechanism}.{form.partition('_')[0]}")
    return getattr(module, form)(**keywords)

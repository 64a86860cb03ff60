"""Calls functions of flash-linear-attention and Transformers in a process of its own, Triton interpreted.

Usage: compat_peers.py CALLS RESULTS. CALLS holds (module, function, positional, keywords) per call, RESULTS
gets its parameters as (name, kind, default) and what the call returned, or None for a call without arguments.
"""

import importlib
import inspect
import sys

import torch


def target(module, function):
    """Transformers' functions are wrapped in a dispatch to other libraries; the inner one is meant."""
    found = getattr(importlib.import_module(module), function)
    return found.__wrapped__ if module.startswith("transformers.") else found


def parameters(function):
    described = []
    for parameter in inspect.signature(function).parameters.values():
        default = "required" if parameter.default is parameter.empty else repr(parameter.default)
        described.append((parameter.name, parameter.kind.name, default))
    return described


def main(calls, results):
    done = []
    for module, function, positional, keywords in torch.load(calls):
        called = target(module, function)
        outcome = called(*positional, **keywords) if positional or keywords else None
        done.append((parameters(called), outcome))
    torch.save(done, results)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""A kernel under test with every fault the worker must survive; loaded by path, in the worker only."""

import ctypes
import functools
import os
import sys
import time

import torch


def implementation(q, k, v, g, beta, **options):
    return v + 1, options["initial_state"]


def substituting(function):
    """A decorator that keeps a function's name and calls another one."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return implementation_used(*args, **kwargs)

    implementation_used = implementation
    return wrapper


def plain_wrapper(function):
    """A decorator that calls the function it wraps."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@substituting
def replaced(q, k, v, g, beta, **options):
    return v, options["initial_state"]


@plain_wrapper
def decorated(q, k, v, g, beta, **options):
    return v, options["initial_state"]


not_a_function = 3


def misbehave(q, k, v, g, beta, scale, initial_state, output_final_state, behaviour):
    batch, _, value_heads, values = v.shape
    state = initial_state
    if state is None:
        state = torch.zeros(batch, value_heads, q.shape[-1], values)
    match behaviour:
        case "copy":
            return v.clone(), state
        case "gate":
            return g.unsqueeze(-1).to(v.dtype), state
        case "layout":
            assert initial_state.shape == (batch, value_heads, values, q.shape[-1])
            return v.clone(), state
        case "scale":
            return torch.full_like(v, scale), state
        case "threads":
            return torch.full_like(v, torch.get_num_threads()), state
        case "raise":
            raise RuntimeError(f"cannot do\n{tuple(v.shape)}")
        case "assert":
            assert v.shape[1] == 0
        case "exit":
            print("leaving now", file=sys.stderr)
            os._exit(7)
        case "sys-exit":
            sys.exit(3)
        case "segfault":
            ctypes.string_at(0)
        case "close-files":
            os.closerange(3, 256)
        case "hang":
            print("about to hang")
            time.sleep(1000)
        case "allocate":
            return v + torch.ones(2**31).sum(), state
        case "shape":
            return v[:, 1:], state
        case "state-shape":
            return v.clone(), state.transpose(-1, -2)
        case "dtype":
            return v.double(), state
        case "integers":
            return v.long(), state
        case "state-dtype":
            return v.clone(), state.half()
        case "nan":
            return torch.full_like(v, torch.nan), state
        case "unwritten":
            out = torch.empty_like(v)
            out[:, 1:] = v[:, 1:]
            return out, state
        case "mutate":
            beta[0, 1, 0] = 0.25
            return v.clone(), state
        case "resize":
            k.resize_(3)
            return v.clone(), state
        case "print":
            print('{"kind": null, "tensors": []}\n' * 3, flush=True)
            os.write(1, b"\xff\x00garbage\n")
            os.write(2, b"garbage\n" * 100_000)
            return v.clone(), state
        case "fork":
            os.fork()
            return v.clone(), state
        case "one":
            return v.clone()
        case "three":
            return v.clone(), state, state
        case "no-state":
            return v.clone(), None
        case "list":
            return v.tolist(), state
        case "meta":
            return v.to("meta"), state
    return None

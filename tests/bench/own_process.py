"""Functions timed in turn, each in a process of its own.

In one process a function's time depends on what ran before it: once large tensors have been freed, glibc
keeps their memory, and later calls no longer pay for fresh pages. So each function gets a process that runs
nothing else, and one of two ways to manage memory:

* ``default``: glibc's settings, as in a user's process that does little else. Whether large intermediate
  tensors cost page faults at every call is a property of the function.
* ``kept``: freed memory is never given back, as in a process that has long reached its peak. No page faults.
"""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from typing import Any

MEMORY = {
    "default": {},
    "kept": {
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
        "MALLOC_TOP_PAD_": str(1 << 28),
    },
}

Maker = tuple[Callable[..., Callable[[], Any]], tuple[Any, ...]]
"""A function and its arguments, which make the call to be timed inside the process that is to time it."""


def timed(makers: dict[str, Maker], rounds: int, memory: str) -> dict[str, list[float]]:
    """Milliseconds of each call in each round, in turn; each is called once more right before."""
    with ExitStack() as stack:
        workers = {name: stack.enter_context(_worker(*maker, memory)) for name, maker in makers.items()}
        for worker in workers.values():
            worker.recv()
        times: dict[str, list[float]] = {name: [] for name in makers}
        for _ in range(rounds):
            for name, worker in workers.items():
                # The threads of the process before spin for some milliseconds after their work.
                time.sleep(0.1)
                worker.send(True)
                times[name].append(worker.recv())
    return times


@contextmanager
def _worker(
    make: Callable[..., Callable[[], Any]], arguments: tuple[Any, ...], memory: str
) -> Iterator[Connection]:
    """The near end of a process that answers with "ready" and then every message with a time."""
    near, far = multiprocessing.Pipe()
    before = dict(os.environ)
    os.environ.update(MEMORY[memory])  # glibc reads them when the process starts.
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(far, make, arguments))
    try:
        process.start()
    finally:
        os.environ.clear()
        os.environ.update(before)
    far.close()
    try:
        yield near
    finally:
        near.close()
        process.join()


def _serve(
    connection: Connection, make: Callable[..., Callable[[], Any]], arguments: tuple[Any, ...]
) -> None:
    run = make(*arguments)
    run()
    connection.send("ready")
    try:
        while connection.recv():
            run()
            start = time.perf_counter()
            run()
            connection.send(1e3 * (time.perf_counter() - start))
    except EOFError:
        return

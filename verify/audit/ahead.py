"""What cases should give, worked out ahead of the kernel's runs on further cores."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from typing import Generic, TypeVar

from verify.audit.case import Case
from verify.audit.memory import keep_freed_memory

T = TypeVar("T")
_WORTH_A_PROCESS = 8
"""Cases that take longer than another process takes to start."""
_AHEAD = 3
"""Cases per process that are begun before they are asked for: enough to keep it busy, few enough to hold."""
_WATCH_S = 1.0


@contextlib.contextmanager
def cores(jobs: int, cases: int) -> Iterator[Executor | None]:
    """A pool of at most ``jobs`` processes; None where ``cases`` are too few to be worth it."""
    processes = min(jobs, cases // _WORTH_A_PROCESS)
    if processes < 2:
        yield None
        return
    # Not forked: a copy of a process whose threads hold locks may wait for them for ever.
    pool = ProcessPoolExecutor(
        processes, get_context("spawn"), initializer=_settle_in, initargs=(os.getpid(),)
    )
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


class Ahead(Generic[T]):
    """Results for a sequence of cases, asked for in that order; some may be left out.

    Args:
        make: what is wanted of a case; it and its results travel between processes.
        cases: all that may be asked for.
        pool: where to work them out; None for here, when asked.
    """

    def __init__(self, make: Callable[[Case], T], cases: Sequence[Case], pool: Executor | None) -> None:
        self._make = make
        self._pool = pool
        self._waiting = list(reversed(cases))
        self._begun: dict[int, Future[T]] = {}
        self._most = _AHEAD * (getattr(pool, "_max_workers", 1))

    def of(self, case: Case) -> T:
        """The result for one case; raises what working it out raised."""
        if self._pool is not None:
            try:
                self._begin(case, self._pool)
                return self._begun.pop(id(case)).result()
            except BrokenExecutor:
                # A process was killed, for its memory perhaps: one at a time needs less.
                self._pool = None
        return self._make(case)

    def _begin(self, case: Case, pool: Executor) -> None:
        while self._waiting and (id(case) not in self._begun or len(self._begun) < self._most):
            following = self._waiting.pop()
            self._begun[id(following)] = pool.submit(self._make, following)


def _settle_in(parent: int) -> None:
    """One thread of arithmetic; the interrupt is the parent's; end when the parent has died."""
    import torch

    torch.set_num_threads(1)
    keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH_S)
    os._exit(1)

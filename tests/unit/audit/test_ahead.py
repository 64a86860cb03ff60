"""Work done ahead on other cores gives what is asked for, in any order of completion, whatever dies."""

import os
import platform
import subprocess
import sys
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from verify.audit.ahead import _AHEAD, Ahead, cores

ROOT = Path(__file__).parents[3]
CASES = [f"case {i}" for i in range(30)]


class Pool:
    """Counts what is begun; breaks after some."""

    _max_workers = 2

    def __init__(self, breaks_after=100):
        self.begun, self.breaks_after = [], breaks_after

    def submit(self, make, case):
        self.begun.append(case)
        if len(self.begun) > self.breaks_after:
            raise BrokenExecutor
        future = Future()
        future.set_result(make(case))
        return future


def test_without_a_pool_each_is_made_when_asked():
    made = []
    ahead = Ahead(made.append, CASES, None)
    ahead.of(CASES[0])
    assert made == [CASES[0]]


def test_results_are_those_of_their_cases_and_some_may_be_left_out():
    with ThreadPoolExecutor(2) as pool:
        ahead = Ahead(str.upper, CASES, pool)
        for case in CASES[::3]:
            assert ahead.of(case) == case.upper()


def test_no_more_is_begun_than_can_be_held():
    pool = Pool()
    ahead = Ahead(str.upper, CASES, pool)
    for i, case in enumerate(CASES):
        ahead.of(case)
        assert len(pool.begun) <= i + _AHEAD * Pool._max_workers
    assert pool.begun == CASES


def test_a_broken_pool_is_done_without():
    pool = Pool(breaks_after=4)
    ahead = Ahead(str.upper, CASES, pool)
    assert [ahead.of(case) for case in CASES] == [case.upper() for case in CASES]
    assert len(pool.begun) == 5


def test_what_making_raises_comes_out_where_it_is_asked_for():
    with ThreadPoolExecutor(1) as pool:
        ahead = Ahead(float, ["1", "two", "3"], pool)
        assert ahead.of("1") == 1
        with pytest.raises(ValueError, match="two"):
            ahead.of("two")
        assert ahead.of("3") == 3


def process_of(case):
    return os.getpid(), case


def test_processes_are_others_and_few_cases_are_not_worth_one():
    with cores(8, 15) as none:
        assert none is None
    with cores(8, 16) as pool:
        ahead = Ahead(process_of, CASES, pool)
        found = [ahead.of(case) for case in CASES]
    assert [case for _, case in found] == CASES
    assert os.getpid() not in {process for process, _ in found}


MEASURE = """
import resource, sys
import numpy as np
from verify.audit.memory import keep_freed_memory

def faults(rounds):
    for _ in range(rounds):
        [np.ones(2**20) for _ in range(4)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

if sys.argv[1] == "kept":
    keep_freed_memory()
print(-faults(3) + faults(10))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc's malloc is asked")
def test_freed_memory_is_kept():
    """Pages that the system hands out for ten rounds of 32 MiB: all of them again, or next to none."""
    by = {
        how: int(subprocess.check_output([sys.executable, "-c", MEASURE, how], cwd=ROOT))
        for how in ("kept", "given back")
    }
    assert by["given back"] > 2**13
    assert by["kept"] < 2**10

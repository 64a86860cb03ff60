"""Work done ahead on other cores gives what is asked for, in any order of completion, whatever dies."""

import os
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor

import pytest

from verify.audit.ahead import _AHEAD, Ahead, cores

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

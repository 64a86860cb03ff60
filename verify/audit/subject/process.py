"""Runs a kernel under test in a worker process; its faults come back as data, never as exceptions."""

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

import numpy as np

from verify.audit.case import Array, Case, Outcome, Problem
from verify.audit.convention.convention import Convention
from verify.audit.gradient.functional import Cotangent
from verify.audit.subject import rawbits
from verify.audit.subject.connection import Worker, interpreter
from verify.audit.subject.handing import cotangents, places
from verify.audit.subject.returned import outcome
from verify.audit.subject.target import Target
from verify.model.errors import EnvironmentProblem, RequestError


class Subject:
    """A kernel under test, served by a worker process that survives its faults.

    The call is made without gradients, with memory from ``torch.empty`` filled with NaN, so that a
    part of the output that nobody wrote shows.

    Args:
        target: the function, imported only in the worker.
        convention: how to call it.
        python: interpreter of the worker; defaults to the one running now. It needs torch.
        time_limit_s: wall-clock limit for one case.
        memory_limit_gib: limit on the worker's private memory (RLIMIT_DATA), imports included.
        start_limit_s: wall-clock limit for importing torch and the target.
        threads: CPU threads of the worker.
        device: torch device; by default ``cuda`` for a Triton kernel when there is a GPU, else ``cpu``.

    Raises:
        RequestError: no such interpreter, module or function.
        EnvironmentProblem: the target cannot be imported, or cannot run on this machine.
    """

    def __init__(
        self,
        target: Target,
        convention: Convention,
        python: str | None = None,
        time_limit_s: float = 60,
        memory_limit_gib: float = 8,
        start_limit_s: float = 300,
        threads: int = 1,
        device: str | None = None,
    ) -> None:
        for what, value in (
            ("time limit", time_limit_s),
            ("memory limit", memory_limit_gib),
            ("threads", threads),
        ):
            if value <= 0:
                raise RequestError(f"the {what} must be positive, got {value}")
        self.target = target
        self.convention = convention
        self._python = interpreter(python)
        self.time_limit_s = time_limit_s
        self._memory_limit_gib = memory_limit_gib
        self._start_limit_s = start_limit_s
        self._threads = threads
        self._device = device
        self._folder = tempfile.TemporaryDirectory(prefix="attnproof-")
        self._worker: Worker | None = None
        self._sources: dict[str, str] = {}
        self.identity: dict[str, Any] = {}
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the worker and remove its files."""
        if self._worker is not None:
            self._worker.end()
            self._worker = None
        self._folder.cleanup()

    def run(
        self,
        case: Case,
        functional: Cotangent | None = None,
        *,
        layout: str = "plain",
        absent: Sequence[str] = (),
        options: Mapping[str, int] = MappingProxyType({}),
    ) -> Outcome:
        """Hand ``case`` to the kernel once; with a functional, also differentiate it.

        Args:
            case: the input.
            functional: whose gradients to return.
            layout: how the inputs lie in memory, see ``worker.tensors.LAYOUTS``.
            absent: our fields to hand over as None.
            options: further keyword arguments.

        Raises:
            RequestError: the convention says the function does not accept such a case.
            EnvironmentProblem: the worker could not be started again after a crash.
        """
        if refusal := self.convention.refusal(case):
            raise RequestError(f"{self.target.requested} cannot be given case {case.name!r}: {refusal}")
        if self.identity.get("triton_interpreted") and case.dtype == "bfloat16":
            raise EnvironmentProblem(
                "Triton's interpreter computes bfloat16 wrongly; use a GPU or another dtype"
            )
        request = self._request(case, functional)
        request["keywords"] |= options
        names = [self.convention.arguments[field] for field in absent]
        return self._call(case, request | {"layout": layout, "absent": names})

    def ask(self, question: str, case: Case | None = None, **changes: Any) -> dict[str, Any]:
        """The worker's answer to a question about the target, see ``worker.large``; empty when it dies."""
        worker = self._worker or self._start()
        message = {} if case is None else self._request(case, None)
        try:
            worker.send(message | changes | {"ask": question})
            answer: dict[str, Any] = worker.receive(self.time_limit_s)
        except (TimeoutError, EOFError, OSError, ValueError):
            worker.end()
            self._worker = None
            return {}
        return answer

    def shapes(self, case: Case) -> dict[str, dict[str, tuple[int, ...]]]:
        """The shapes that a case is handed over in, and those that must come back."""
        handed = {self.convention.arguments[f]: a.shape for f, (a, _) in self.convention.inputs(case).items()}
        back = {
            name: tuple(shape) for name, (shape, _) in self.convention.promised(case, case.shape.B).items()
        }
        return {"inputs": handed, "results": back}

    def sources(self) -> dict[str, str] | None:
        """Fingerprints of all files the target's code was read from so far.

        None when one has changed since they were first asked for, or where they cannot be told. See
        ``worker.sources``: what the target imports while it runs is in a later answer alone.
        """
        worker = self._worker or self._start()
        try:
            worker.send({"ask": "sources"})
            found: dict[str, str] = worker.receive(self._start_limit_s)["sources"]
        except (TimeoutError, EOFError, OSError, ValueError, KeyError):
            worker.end()
            self._worker = None
            return None
        same = all(found.get(path, mark) == mark for path, mark in self._sources.items())
        self._sources |= found
        return dict(self._sources) if same else None

    def run_packed(self, cases: Sequence[Case]) -> Outcome:
        """Hand sequences (cases of B = 1, alike but for T) over in one call, packed along T.

        The output is ``[1, T in all, HV, V]`` and the state ``[N, HV, K, V]``.
        """
        arrays = [case.arrays() for case in cases]
        axes = {field: int(field in cases[0].kind.tokens) for field in arrays[0]}
        joined = {
            field: np.concatenate([x[field] for x in arrays], axis=axis) for field, axis in axes.items()
        }
        states = joined.pop("initial_state", None)
        packed = cases[0].replace(**joined, initial_state=None if states is None else states[:1])
        request = self._request(packed, None, states, len(cases))
        offsets = self._offsets([case.shape.T for case in cases])
        return self._call(packed, request | {"offsets": offsets}, len(cases))

    def _offsets(self, lengths: Sequence[int]) -> tuple[str, list[int]]:
        """The argument for packed sequences and where each begins and ends."""
        return self.convention.cu_seqlens, [0, *np.cumsum(lengths).tolist()]

    def _call(self, case: Case, request: dict[str, Any], sequences: int | None = None) -> Outcome:
        worker = self._worker or self._start()
        start = time.perf_counter()
        try:
            worker.send(request)
            report = worker.receive(self.time_limit_s)
        except TimeoutError:
            message = f"no result within the time limit of {self.time_limit_s:g} s{worker.tail()}"
            return self._lost(worker, Problem("timeout", message), start)
        except (EOFError, OSError, ValueError):
            return self._lost(worker, Problem("killed", f"the target {worker.cause_of_death()}"), start)
        memory = self._memory_limit_gib
        return outcome(self.convention, self._folder.name, case, report, sequences or case.shape.B, memory)

    def _start(self) -> Worker:
        worker = Worker(self._python, self._threads)
        self._worker = worker
        config = {
            "requested": self.target.requested,
            "location": self.target.location,
            "is_file": self.target.is_file,
            "attribute": self.target.attribute,
            "threads": self._threads,
            "device": self._device,
            "memory_bytes": int(self._memory_limit_gib * 2**30),
            "input": str(Path(self._folder.name, "input")),
            "output": str(Path(self._folder.name, "output")),
        }
        name = self.target.requested
        try:
            worker.send(config)
            answer = worker.receive(self._start_limit_s)
        except TimeoutError:
            limit = f"{self._start_limit_s:g} s"
            raise EnvironmentProblem(f"importing {name} took longer than {limit}{worker.tail()}") from None
        except (EOFError, OSError, ValueError):
            raise EnvironmentProblem(f"importing {name} {worker.cause_of_death()}") from None
        if answer["kind"] is not None:
            error = RequestError if answer["kind"] == "request" else EnvironmentProblem
            raise error(f"target {name!r}: {answer['message']}")
        if self.identity and answer["identity"] != self.identity:
            raise EnvironmentProblem(f"{name} changed while it was being certified; run it again")
        self.identity = answer["identity"]
        return worker

    def _request(
        self,
        case: Case,
        functional: Cotangent | None,
        states: Array | None = None,
        sequences: int | None = None,
    ) -> dict[str, Any]:
        """Write the case's tensors; returns the message that says how to call the target with them."""
        names = self.convention.arguments
        headers = []
        weights = {} if functional is None else cotangents(self.convention, case, functional)
        handed = self.convention.inputs(case)
        if states is not None:
            handed["initial_state"] = (self.convention.their_state(case, states), case.gate_dtype)
        with open(Path(self._folder.name, "input"), "wb") as file:
            named = {names[field]: pair for field, pair in handed.items()}
            for name, (array, dtype) in (named | weights).items():
                raw = rawbits.encode(array, dtype)
                headers.append({"name": name, "dtype": dtype, "shape": array.shape, "bytes": len(raw)})
                file.write(raw)
        keywords: dict[str, Any] = {**self.convention.extra, **self.convention.absent(case)}
        keywords |= self.convention.numbers(case)
        return {
            "tensors": headers,
            "layout": "plain",
            "arranged": [names[field] for field in case.arrays() if field not in self.convention.written],
            "absent": [],
            "offsets": self._offsets([case.shape.T] * case.shape.B)
            if self.convention.token_layout == "THD"
            else None,
            "cotangents": list(weights),
            "places": places(self.convention, case, sequences or case.shape.B),
            "positional": [names[field] for field in self.convention.positional],
            "keywords": keywords,
            "returns": self.convention.returns,
            "time_limit_s": self.time_limit_s,
        }

    def _lost(self, worker: Worker, problem: Problem, start: float) -> Outcome:
        """End a worker that is of no more use; the next case starts another."""
        worker.end()
        self._worker = None
        return Outcome(None, None, "", "", problem, time.perf_counter() - start)

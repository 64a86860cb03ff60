"""Runs a kernel under test in a worker process; its faults come back as data, never as exceptions."""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from verify.audit.case import Array, Case, Outcome, Problem
from verify.audit.convention import Convention
from verify.audit.gradient.functional import Cotangent
from verify.audit.subject import rawbits
from verify.audit.subject.connection import Worker, interpreter
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

    def run(self, case: Case, functional: Cotangent | None = None, *, strided: bool = False) -> Outcome:
        """Hand ``case`` to the kernel once; with a functional, also differentiate it.

        Args:
            case: the input.
            functional: whose gradients to return.
            strided: hand over inputs that are not contiguous.

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
        return self._call(case, self._request(case, functional) | {"strided": strided})

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
        offsets = [0, *np.cumsum([case.shape.T for case in cases]).tolist()]
        request = self._request(packed, None, states)
        return self._call(packed, request | {"offsets": [self.convention.cu_seqlens, offsets]}, len(cases))

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
        return self._outcome(case, report, sequences)

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
        self, case: Case, functional: Cotangent | None, states: Array | None = None
    ) -> dict[str, Any]:
        """Write the case's tensors; returns the message that says how to call the target with them."""
        names = self.convention.arguments
        headers = []
        cotangents = {} if functional is None else self._cotangents(functional)
        handed = self.convention.inputs(case)
        if states is not None:
            handed["initial_state"] = (self.convention.swap_state(states), case.gate_dtype)
        with open(Path(self._folder.name, "input"), "wb") as file:
            named = {names[field]: pair for field, pair in handed.items()}
            for name, (array, dtype) in (named | cotangents).items():
                raw = rawbits.encode(array, dtype)
                headers.append({"name": name, "dtype": dtype, "shape": array.shape, "bytes": len(raw)})
                file.write(raw)
        keywords: dict[str, Any] = {**self.convention.extra, **self.convention.absent(case)}
        if "scale" in names:
            keywords[names["scale"]] = case.scale
        return {
            "tensors": headers,
            "strided": False,
            "offsets": None,
            "cotangents": list(cotangents),
            "positional": [names[field] for field in self.convention.positional],
            "keywords": keywords,
            "returns": self.convention.returns,
            "time_limit_s": self.time_limit_s,
        }

    def _cotangents(self, functional: Cotangent) -> dict[str, tuple[Array, str]]:
        """The functional's coefficients in their layout, for the worker to cast."""
        c = self.convention
        pairs = {"output": (c.swap_tokens(functional.output), "float64")}
        if c.gradients == "output-and-state" and c.returns_state:
            pairs["final_state"] = c.swap_state(functional.state), "float64"
        return pairs

    def _lost(self, worker: Worker, problem: Problem, start: float) -> Outcome:
        """End a worker that is of no more use; the next case starts another."""
        worker.end()
        self._worker = None
        return Outcome(None, None, "", "", problem, time.perf_counter() - start)

    def _outcome(self, case: Case, report: dict[str, Any], sequences: int | None) -> Outcome:
        seconds = report["seconds"]
        if report["kind"] is not None:
            message = report["message"]
            if report["kind"] == "raised":
                message = f"the target raised {message}"
            elif report["kind"] == "memory":
                message = f"the target ran out of its {self._memory_limit_gib:g} GiB of memory: {message}"
            return Outcome(None, None, "", "", Problem(report["kind"], message), seconds)
        arrays, dtypes, problem = self._read_back(case, report["tensors"], sequences)
        if report["mutated"] is not None:
            problem = Problem("inputs-mutated", report["mutated"])
        output, state = arrays.get("output"), arrays.get("final_state")
        return Outcome(
            output=None if output is None else self.convention.swap_tokens(output),
            final_state=None if state is None else self.convention.swap_state(state),
            output_dtype=dtypes["output"],
            state_dtype=dtypes.get("final_state", ""),
            problem=problem,
            seconds=seconds,
            gradients={
                field: self.convention.own_gradient(case, field, arrays[f"d_{name}"])
                for field, name in self.convention.arguments.items()
                if f"d_{name}" in arrays and field in case.arrays()
            },
        )

    def _read_back(
        self, case: Case, headers: list[dict[str, Any]], sequences: int | None
    ) -> tuple[dict[str, Array], dict[str, str], Problem | None]:
        """Arrays that have the promised shape, every dtype, and the first broken promise."""
        s, c = case.shape, self.convention
        inner = (s.K, s.V) if c.state_layout == "KV" else (s.V, s.K)
        tokens = (s.T, s.HV) if c.token_layout == "BTHD" else (s.HV, s.T)
        promised = {
            "output": ((s.B, *tokens, s.V), c.resolve(c.output_dtype, case.dtype)),
            "final_state": ((sequences or s.B, s.HV, *inner), c.resolve(c.state_dtype, case.dtype)),
        }
        for field, (array, dtype) in c.inputs(case).items():
            promised[f"d_{c.arguments[field]}"] = array.shape, dtype
        arrays, problem = {}, None
        with open(Path(self._folder.name, "output"), "rb") as file:
            for header in headers:
                raw, name, dtype = file.read(header["bytes"]), header["name"], header["dtype"]
                shape, expected = promised[name]
                got = tuple(header["shape"])
                if dtype != expected:
                    message = f"{name} came back in {dtype}; the convention says {expected}"
                    problem = problem or Problem("wrong-dtype", message)
                if got != shape:
                    message = f"{name} came back with shape {got}; the convention says {shape}"
                    problem = problem or Problem("wrong-shape", message)
                elif dtype in rawbits.FORMATS:
                    arrays[name] = rawbits.decode(raw, dtype, got)
        return arrays, {h["name"]: h["dtype"] for h in headers}, problem

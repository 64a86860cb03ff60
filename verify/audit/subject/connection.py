"""The worker process: how it is started, its private channel, and the tail of what it prints."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from verify.model.errors import RequestError

_WORKER = Path(__file__).with_name("worker")
# Under a private package name, so that no module of the worker answers an import of the target.
_BOOT = """
import importlib, sys, types
package = sys.modules["_attnproof_worker"] = types.ModuleType("_attnproof_worker")
package.__path__ = [sys.argv[2]]
importlib.import_module("_attnproof_worker.serve").main()
"""
_TAIL_BYTES = 2000
_EXIT_WAIT_S = 5.0


class Worker:
    """The process, its private channel, and the tail of what it prints."""

    def __init__(self, python: str, threads: int) -> None:
        ours, theirs = socket.socketpair()
        limits = {
            name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        }
        with theirs:
            self._process = subprocess.Popen(
                [python, "-c", _BOOT, str(theirs.fileno()), str(_WORKER)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env={**os.environ, **limits},
            )
        self._channel = ours
        self._received = b""
        self._printed = b""
        self._reader = threading.Thread(target=self._drain, daemon=True)
        self._reader.start()

    def send(self, message: dict[str, Any]) -> None:
        self._channel.settimeout(_EXIT_WAIT_S)
        self._channel.sendall(json.dumps(message).encode() + b"\n")

    def receive(self, limit_s: float) -> dict[str, Any]:
        """The next message.

        Raises:
            TimeoutError: none came in time.
            EOFError, OSError: the process is gone.
            ValueError: the channel carried something else.
        """
        deadline = time.monotonic() + limit_s
        while b"\n" not in self._received:
            self._channel.settimeout(max(deadline - time.monotonic(), 1e-3))
            received = self._channel.recv(65536)
            if not received:
                raise EOFError
            self._received += received
        line, self._received = self._received.split(b"\n", 1)
        message: dict[str, Any] = json.loads(line)
        return message

    def tail(self) -> str:
        """The last line the process printed, as the end of a sentence."""
        lines = [line.strip() for line in self._printed.decode(errors="replace").splitlines() if line.strip()]
        return f"; it last printed: {lines[-1][:300]}" if lines else ""

    def cause_of_death(self) -> str:
        """How the process ended, as the end of a sentence."""
        try:
            code = self._process.wait(_EXIT_WAIT_S)
        except subprocess.TimeoutExpired:
            return f"closed the worker's channel{self.tail()}"
        self._reader.join(_EXIT_WAIT_S)
        if code >= 0:
            return f"ended its process with exit status {code}{self.tail()}"
        return f"was killed by {signal.Signals(-code).name}{self.tail()}"

    def end(self) -> None:
        """Kill the process and everything it started."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            self._process.poll()
        self._process.wait()
        self._channel.close()
        self._reader.join(_EXIT_WAIT_S)

    def _drain(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            while block := os.read(stream.fileno(), 65536):
                self._printed = (self._printed + block)[-_TAIL_BYTES:]


def interpreter(python: str | None) -> str:
    if python is None:
        return sys.executable
    found = shutil.which(python)
    if found is None:
        raise RequestError(f"there is no Python interpreter {python!r}; give its path")
    return found

"""A certification's journal: every step that was judged, one line each, safe against a crash at any time."""

import fcntl
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeVar

from verify.audit.record import codec
from verify.model import certificate, digest

T = TypeVar("T")
Say = Callable[[str], None]
"""Told, in one sentence, what the user should know."""
NAME = certificate.JOURNAL


class Journal:
    """Steps of one certification, kept in a file.

    The first line holds hashes of what every step depends on; each further line a step, its value and a hash
    of both, on the disk before the next step begins. A last line that was cut off is dropped. A journal of
    something else, or one that is not to be resumed, is replaced when the first step is done, not before.

    Args:
        path: the file; None to keep nothing.
        depends: hashes of all that the steps depend on, by what a user would call it.
        resume: whether to take over the steps of an earlier, interrupted certification.
        say: told what becomes of an earlier journal.
    """

    def __init__(self, path: Path | None, depends: Mapping[str, str], resume: bool, say: Say) -> None:
        self.path = path
        self._depends = dict(depends)
        self._say = say
        self._places: dict[str, int] = {}
        self._file: IO[bytes] | None = None
        self._replaces = True
        if path is not None and path.exists() and self._open(path):
            self._take_over(path, resume)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is KeyboardInterrupt and self._places:
            self._say(f"stopped; {self.steps} judged steps are kept, --resume continues with them")
        if self._file is not None:
            self._file.close()

    def discard(self) -> None:
        """Remove the file: what it was kept for is finished."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    @property
    def steps(self) -> int:
        """How many steps are kept."""
        return len(self._places)

    def has(self, step: str) -> bool:
        """Whether a step is kept."""
        return step in self._places

    def keep(self, step: str, compute: Callable[[], T]) -> T:
        """The value of a step: the one kept, or else computed and kept.

        Where a file is kept, a computed value too is given back as it would be read: a resumed certification
        then works with the very same numbers, down to their order in memory.
        """
        if self.path is None:
            return compute()
        if step in self._places:
            value: T = codec.decode(self._line(self._places[step])["value"])
            return value
        text = codec.encode(compute())
        self._write(step, text)
        kept: T = codec.decode(text)
        return kept

    def _open(self, path: Path) -> bool:
        """Open and lock the file; where another certification holds it, do without one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            self.path = self._file = None
            self._say(f"another run is writing {path}; this one cannot be resumed")
            return False
        return True

    def _take_over(self, path: Path, resume: bool) -> None:
        found, places, end = self._read()
        if not places:
            return
        changed = [name for name, value in self._depends.items() if found.get(name) != value]
        if not resume:
            self._say(
                f"an interrupted run left {len(places)} judged steps in {path}. Starting anew, which "
                "replaces them; to continue there, stop this and add --resume"
            )
        elif changed:
            self._say(f"{path} cannot be continued: {' and '.join(changed)} changed. Starting anew")
        else:
            self._say(f"resuming: {len(places)} steps were judged before")
            self._places, self._replaces = places, False
            assert self._file is not None
            self._file.truncate(end)

    def _read(self) -> tuple[dict[str, str], dict[str, int], int]:
        """What the file depends on, where each step begins, and where its last whole line ends."""
        assert self._file is not None
        depends: dict[str, str] = {}
        places: dict[str, int] = {}
        end = 0
        self._file.seek(0)
        for raw in self._file:
            try:
                line = json.loads(raw)
                if end == 0:
                    depends = line["depends"]
                elif line["sha256"] == digest.of_json([line["step"], line["value"]]):
                    places[line["step"]] = end
                else:
                    break
            except (ValueError, KeyError, TypeError):
                break
            if not raw.endswith(b"\n"):
                places.pop(line.get("step"), None)
                break
            end += len(raw)
        return depends, places, end

    def _line(self, place: int) -> dict[str, Any]:
        assert self._file is not None
        self._file.seek(place)
        line: dict[str, Any] = json.loads(self._file.readline())
        return line

    def _write(self, step: str, text: str) -> None:
        if self._file is None and (self.path is None or not self._open(self.path)):
            return
        assert self._file is not None
        if self._replaces:
            self._file.truncate(0)
            self._append({"depends": self._depends})
            self._replaces = False
        line = {"step": step, "value": text, "sha256": digest.of_json([step, text])}
        self._places[step] = self._append(line)

    def _append(self, line: dict[str, Any]) -> int:
        """Write at the end, onto the disk; returns where the line begins."""
        assert self._file is not None
        place = self._file.seek(0, os.SEEK_END)
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        return place

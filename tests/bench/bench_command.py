"""How long the command takes: help, list, all claims cold and from the cache, each a whole process.

Exit codes are checked before anything is timed. Run: ``python tests/bench/bench_command.py``.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("attnproof"))


def seconds(words: list[str], folder: Path, runs: int) -> float:
    """Median wall time of a command that must succeed."""
    environment = {**os.environ, "ATTNPROOF_CACHE": str(folder / "cache")}
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        done = subprocess.run(
            [COMMAND, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        times.append(time.perf_counter() - start)
        if done.returncode != 0:
            raise SystemExit(f"red: attnproof {' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return statistics.median(times)


def main() -> None:
    """Time each command and print its ratio to the start of the interpreter."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        listed = subprocess.run([COMMAND, "list"], capture_output=True, text=True, check=True).stdout
        claims = [line.split()[0] for line in listed.splitlines() if line.startswith("  ")]
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        empty = time.perf_counter() - start
        rows = {
            "--help": seconds(["--help"], folder, 5),
            "list": seconds(["list"], folder, 5),
            f"prove {len(claims)} claims, cold": seconds(["prove", "--fresh", *claims], folder, 1),
            f"prove {len(claims)} claims, filling the cache": seconds(["prove", *claims], folder, 1),
            f"prove {len(claims)} claims, cached": seconds(["prove", *claims], folder, 3),
            "recheck": seconds(["recheck"], folder, 1),
        }
    for what, taken in rows.items():
        print(f"{what:<36} {taken:6.2f} s  {taken / empty:7.1f} × an empty interpreter")


if __name__ == "__main__":
    main()

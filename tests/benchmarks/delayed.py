"""A million delayed jobs in one process: to put, their memory, to read them again, and to fire.

`python -m tests.benchmarks.delayed 100000` takes another number of jobs.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import embedlog
from tests.benchmarks.groups import resident_bytes
from tests.benchmarks.machine import memory_folder

COUNT = 1_000_000
VALUE = b"v" * 100
NEVER_S = 1_000_000.0
EARLY_S = 5.0
WAIT_S = 0.02
SECONDS_MAX = 600


def until(is_true: Callable[[], bool]) -> float:
    """Return the seconds until a condition holds."""
    started = time.perf_counter()
    while not is_true():
        assert time.perf_counter() - started < SECONDS_MAX
        time.sleep(WAIT_S)
    return time.perf_counter() - started


def put(path: Path, count: int) -> tuple[float, float]:
    """Put jobs for one moment; return the seconds and the bytes of a job."""
    with embedlog.open(path, durability="os") as cluster, cluster.queue("jobs") as queue:
        queue.put(VALUE, delay=NEVER_S)
        until(lambda: queue.stats().delayed == 1)
        before = resident_bytes()
        when = time.time() + NEVER_S
        started = time.perf_counter()
        for _ in range(count):
            queue.put(VALUE, at=when)
        seconds = time.perf_counter() - started
        until(lambda: queue.stats().delayed == count + 1)
        return seconds / count, (resident_bytes() - before) / count


def read_again(path: Path, count: int) -> float:
    """Open the directory; return the seconds until a job is moved, after `count` were read."""
    with embedlog.open(path, durability="os") as cluster, cluster.queue("jobs") as queue:
        started = time.perf_counter()
        queue.put(VALUE, delay=0.001)
        assert queue.get(timeout=SECONDS_MAX) is not None, count
        return time.perf_counter() - started


def fire(path: Path, count: int) -> float:
    """Let jobs become due at one moment; return the seconds of one until all are ready."""
    with embedlog.open(path, durability="os") as cluster, cluster.queue("jobs") as queue:
        queue.put(VALUE, delay=NEVER_S)
        until(lambda: queue.stats().delayed == 1)
        # The last put comes before the moment, however long the puts take.
        due = time.time() + EARLY_S + count * 0.0004
        for _ in range(count):
            queue.put(VALUE, at=due)
        late = max(0.0, time.time() - due)
        time.sleep(max(0.0, due - time.time()))
        return (until(lambda: queue.stats().delayed == 1) + late) / count


def _measure(folder: str, count: int) -> None:
    spawn = multiprocessing.get_context("spawn")
    path = Path(folder) / "data"

    def alone(work: Callable[[Path, int], object], path: Path) -> object:
        with ProcessPoolExecutor(1, mp_context=spawn) as pool:
            return pool.submit(work, path, count).result()

    seconds, size = alone(put, path)  # type: ignore[misc]
    print(f"  to put           {seconds * 1e6:8.1f} us each", flush=True)
    print(f"  memory           {size:8.0f} bytes each", flush=True)
    print(f"  to read again    {alone(read_again, path):8.1f} s for all", flush=True)
    fired: float = alone(fire, Path(folder) / "due")  # type: ignore[assignment]
    print(f"  to become ready  {fired * 1e6:8.1f} us each")


def main() -> None:
    """Print the figures of a million jobs, or of the number in the last argument."""
    count = int(sys.argv[-1]) if sys.argv[-1].isdecimal() else COUNT
    print(f"\n{count:,} delayed jobs of {len(VALUE)} bytes")
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        _measure(folder, count)


if __name__ == "__main__":
    main()

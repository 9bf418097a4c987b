"""Job queues against the embedded queues of Python: put, get and acknowledge one job.

A *worker* puts a job, gets a job and acknowledges it, again and again. The figures are microseconds
for one job, over all workers. Four workers work on a queue in which jobs wait, because some
libraries fetch jobs ahead: a job that one process has fetched is not there for the next process.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import embedlog
from tests.benchmarks.rival_queues import RIVALS, VALUE, Rival, WorkerQueue
from tests.benchmarks.table import show

COUNTS = {True: 400, False: 2_000}
"""Jobs of a measurement, durable or not."""
ROUNDS = 3
WORKERS = 4
IN_FLIGHT = 100
WAITING = 2_000
"""Jobs that wait in the queue of several workers: more than four workers fetch ahead."""
WAIT_SECONDS = 120


OURS = "embedlog"


def _embedlog(path: Path, durable: bool, *, wait: bool = False) -> WorkerQueue:
    cluster = embedlog.connect_or_open(path, durability="fsync" if durable else "os")
    queue = cluster.queue("jobs")

    def acknowledge(job: embedlog.Job) -> None:
        job.ack(wait=wait)

    def close() -> None:
        queue.close()
        cluster.close()

    return WorkerQueue(
        lambda: queue.put(VALUE), lambda: queue.get(timeout=10), acknowledge, close, queue.flush
    )


def _embedlog_waiting(path: Path, durable: bool) -> WorkerQueue:
    return _embedlog(path, durable, wait=True)


def turn(queue: WorkerQueue, count: int) -> None:
    """Put, get and acknowledge `count` jobs, one after the other."""
    for _ in range(count):
        queue.put()
        job = queue.get()
        while job is None:  # another worker has taken it, and its own job is on its way
            job = queue.get()
        queue.acknowledge(job)
    queue.flush()


def one_worker(rival: Rival, path: Path, durable: bool) -> float:
    """Return the seconds of a job with one worker."""
    count = COUNTS[durable]
    queue = rival.open(path, durable)
    turn(queue, 5)
    started = time.perf_counter()
    turn(queue, count)
    seconds = time.perf_counter() - started
    queue.close()
    return seconds / count


def in_flight(rival: Rival, path: Path, durable: bool) -> float:
    """Return the seconds of a job with one worker that holds a hundred jobs."""
    count = COUNTS[durable]
    queue = rival.open(path, durable)
    turn(queue, 5)
    started = time.perf_counter()
    for _ in range(count // IN_FLIGHT):
        for _ in range(IN_FLIGHT):
            queue.put()
        for job in [queue.get() for _ in range(IN_FLIGHT)]:
            queue.acknowledge(job)
    queue.flush()
    seconds = time.perf_counter() - started
    queue.close()
    return seconds / count


def threads(rival: Rival, path: Path, durable: bool) -> float:
    """Return the seconds of a job with four workers in threads."""
    count = COUNTS[durable] // WORKERS
    first = _with_waiting_jobs(rival, path, durable)
    queues = [first] + [
        first if rival.is_shared else rival.open(path, durable) for _ in range(WORKERS - 1)
    ]
    start = threading.Barrier(WORKERS + 1)

    def work(queue: WorkerQueue) -> None:
        turn(queue, 1)
        start.wait()
        turn(queue, count)

    workers = [threading.Thread(target=work, args=(queue,)) for queue in queues]
    for worker in workers:
        worker.start()
    start.wait(WAIT_SECONDS)
    started = time.perf_counter()
    for worker in workers:
        worker.join()
    seconds = time.perf_counter() - started
    for queue in {id(queue): queue for queue in queues}.values():
        queue.close()
    return seconds / (count * WORKERS)


def _with_waiting_jobs(rival: Rival, path: Path, durable: bool) -> WorkerQueue:
    queue = rival.open(path, durable)
    for _ in range(WAITING):
        queue.put()
    return queue


def processes(rival: Rival, path: Path, durable: bool) -> float:
    """Return the seconds of a job with four workers in processes."""
    count = COUNTS[durable] // WORKERS
    spawn = multiprocessing.get_context("spawn")
    start, end = spawn.Barrier(WORKERS + 1), spawn.Barrier(WORKERS + 1)
    _with_waiting_jobs(rival, path, durable).close()
    workers = [
        spawn.Process(target=_work, args=(rival.name, path, durable, count, start, end))
        for _ in range(WORKERS)
    ]
    for worker in workers:
        worker.start()
    start.wait(WAIT_SECONDS)
    started = time.perf_counter()
    end.wait(WAIT_SECONDS)
    seconds = time.perf_counter() - started
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0, worker.exitcode
    return seconds / (count * WORKERS)


def _work(name: str, path: Path, durable: bool, count: int, start: Any, end: Any) -> None:
    rival = next(each for each in ROWS if each.name == name)
    queue = rival.open(path, durable)
    turn(queue, 1)
    start.wait(WAIT_SECONDS)
    turn(queue, count)
    end.wait(WAIT_SECONDS)
    queue.close()


ROWS = (
    Rival(OURS, _embedlog, is_shared=True),
    Rival(f"{OURS}, ack(wait=True)", _embedlog_waiting, is_shared=True),
    *RIVALS,
)
MEASURES: dict[str, Callable[[Rival, Path, bool], float]] = {
    "1 worker": one_worker,
    "1 worker, 100 jobs in flight": in_flight,
    "4 workers in threads": threads,
    "4 workers in processes": processes,
}


def main() -> None:
    """Print a table for each number of workers, durable and not synced."""
    for durable in (True, False):
        for title, measure in MEASURES.items():
            best: dict[str, float] = {}
            for _ in range(ROUNDS):
                for rival in ROWS:
                    with tempfile.TemporaryDirectory() as folder:
                        took = measure(rival, Path(folder), durable)
                    best[rival.name] = min(best.get(rival.name, took), took)
            level = "durable" if durable else "not synced"
            show(f"put, get, acknowledge: {title}, {level} (a job)", best,
                 ours=OURS, unit="us")  # fmt: skip


if __name__ == "__main__":
    main()

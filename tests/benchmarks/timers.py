"""The timing wheel against heapq, and a hundred thousand parked long polls."""

from __future__ import annotations

import heapq
import itertools
import random
import time

import embedlog
from embedlog.purgatory.timer import Timer, TimerTask
from embedlog.testing.sim_clock import SimClock
from tests.benchmarks.table import show

COUNT = 1_000_000
PARKED = 100_000
DELAYS_MS = [random.Random(7).randrange(30_000) for _ in range(COUNT)]


class Task(TimerTask):
    """A timer that only counts."""

    __slots__ = ()
    fired = 0

    def run(self) -> None:
        """Count."""
        Task.fired += 1


def wheel() -> dict[str, float]:
    """Add a million timers, cancel every other, expire the rest; return seconds an operation."""
    clock = SimClock()
    timer = Timer(clock)
    tasks = [Task(delay) for delay in DELAYS_MS]
    Task.fired = 0
    started = time.perf_counter()
    for task in tasks:
        timer.add(task)
    added = time.perf_counter()
    for task in tasks[::2]:
        task.cancel()
    cancelled = time.perf_counter()
    clock.advance(31_000)
    timer.advance_clock(clock.monotonic_ms())
    expired = time.perf_counter()
    assert Task.fired == COUNT // 2
    return {
        "add": (added - started) / COUNT,
        "cancel": (cancelled - added) / (COUNT // 2),
        "expire": (expired - cancelled) / (COUNT // 2),
    }


def heap() -> dict[str, float]:
    """Do the same with heapq and lazy deletion."""
    queue: list[tuple[int, int, list[bool]]] = []
    numbers = itertools.count()
    cells = [[True] for _ in range(COUNT)]
    started = time.perf_counter()
    for delay, cell in zip(DELAYS_MS, cells, strict=True):
        heapq.heappush(queue, (delay, next(numbers), cell))
    added = time.perf_counter()
    for cell in cells[::2]:
        cell[0] = False
    cancelled = time.perf_counter()
    fired = 0
    while queue:
        if heapq.heappop(queue)[2][0]:
            fired += 1
    expired = time.perf_counter()
    assert fired == COUNT // 2
    return {
        "add": (added - started) / COUNT,
        "cancel": (cancelled - added) / (COUNT // 2),
        "expire": (expired - cancelled) / (COUNT // 2),
    }


def parked_long_polls() -> None:
    """Print the cost of a hundred thousand waiting fetches: parked, idle, and woken."""
    from embedlog.broker.context import RequestContext
    from wire.schemas.fetch import FetchPartition, FetchRequest, FetchTopic

    with embedlog.open() as cluster:
        cluster.admin().create_topics({"t": 1})
        topic_id = cluster.broker().core.controller.image.topics_by_name["t"].topic_id
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=600_000, min_bytes=1,
            topics=[FetchTopic(topic_id=topic_id, partitions=[partition])],
        )  # fmt: skip
        started = time.perf_counter()
        waiting = [
            cluster.broker().core.handle(RequestContext(api_key=1, api_version=17), request)
            for _ in range(PARKED)
        ]
        parked = time.perf_counter()
        used = time.process_time()
        time.sleep(2)
        idle = time.process_time() - used
        with cluster.producer() as producer:
            producer.send("t", b"wake").result()
        woken = time.perf_counter() - parked - 2
        assert all(answer.done() for answer in waiting)
    print(f"\n{PARKED:,} parked long polls")
    print(f"  to park {(parked - started) / PARKED * 1e6:.1f} us each")
    print(f"  idle    {idle * 1000:.1f} ms of CPU in 2 s")
    print(f"  to wake {woken / PARKED * 1e6:.1f} us each")


def main() -> None:
    """Print all tables of timers."""
    ours, theirs = wheel(), heap()
    for what in ours:
        show(f"one million timers, {what} (each)",
             {"timing wheel": ours[what], "heapq": theirs[what]}, ours="timing wheel")  # fmt: skip
    parked_long_polls()

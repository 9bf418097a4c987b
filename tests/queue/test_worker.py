"""Workers call a function with each job, in threads or in an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

import pytest

import embedlog
from embedlog import Job, Queue, exponential
from embedlog.errors import IllegalState
from tests.queue.test_queue import is_empty

PATIENCE_S = 30


class Seen:
    """Counts jobs; `wait` returns when there were enough."""

    def __init__(self, count: int) -> None:
        self.values: Counter[object] = Counter()
        self._left = count
        self._is_enough = threading.Event()
        self._lock = threading.Lock()

    def add(self, value: object) -> None:
        with self._lock:
            self.values[value] += 1
            self._left -= 1
            if not self._left:
                self._is_enough.set()

    def wait(self) -> None:
        assert self._is_enough.wait(PATIENCE_S)


def test_each_job_is_worked_once(queue: Queue) -> None:
    seen = Seen(200)

    @queue.worker(concurrency=4)
    def work(job: Job) -> None:
        seen.add(job.value)

    queue.put_many([b"%d" % number for number in range(200)])
    with work:
        seen.wait()
    assert set(seen.values.values()) == {1}
    assert len(seen.values) == work.done_count == 200
    assert is_empty(queue)
    assert queue.stats().ready == queue.stats().locked == 0


def test_coroutines_run_side_by_side(queue: Queue) -> None:
    seen = Seen(8)
    together = 0
    most = 0

    @queue.worker(concurrency=4)
    async def work(job: Job) -> None:
        nonlocal together, most
        together += 1
        most = max(most, together)
        await asyncio.sleep(0.02)
        together -= 1
        seen.add(job.value)

    queue.put_many(list(range(8)))
    with work:
        seen.wait()
    assert most == 4
    assert len(seen.values) == work.done_count == 8


@pytest.mark.parametrize("is_async", [False, True])
def test_a_failing_job_is_tried_again_and_then_dead(queue: Queue, is_async: bool) -> None:
    failures: list[tuple[int, str | None]] = []
    seen = Seen(3)

    def fail(job: Job) -> None:
        failures.append((job.failures, job.last_error))
        seen.add(job.value)
        raise ValueError(f"try {job.failures}")

    async def fail_async(job: Job) -> None:
        fail(job)

    worker = queue.worker(
        fail_async if is_async else fail, retries=2, backoff=exponential(0.01, 0.02)
    )
    queue.put(b"bad")
    with worker:
        seen.wait()
    assert failures == [(0, None), (1, "ValueError: try 0"), (2, "ValueError: try 1")]
    assert worker.failed_count == 3
    assert worker.done_count == 0
    (dead,) = queue.dead
    assert (dead.value, dead.reason, dead.deliveries) == (b"bad", "ValueError: try 2", 3)


def test_the_result_of_the_function_is_the_result_of_the_job(queue: Queue) -> None:
    with queue.worker(lambda job: job.value + 1):
        assert queue.result(queue.put(41, reply=True), timeout=PATIENCE_S) == 42


def test_a_job_that_the_function_settled_stays_so(queue: Queue) -> None:
    seen = Seen(2)

    @queue.worker
    def work(job: Job) -> None:
        seen.add(job.value)
        job.reject("by hand")

    queue.put_many([1, 2])
    with work:
        seen.wait()
    assert [dead.reason for dead in queue.dead] == ["by hand", "by hand"]


def test_stop_waits_for_the_running_jobs(queue: Queue) -> None:
    has_begun, may_end = threading.Event(), threading.Event()

    @queue.worker
    def work(_job: Job) -> None:
        has_begun.set()
        assert may_end.wait(PATIENCE_S)

    queue.put_many([1, 2])
    work.start()
    assert has_begun.wait(PATIENCE_S)
    assert not work.stop(timeout=0)
    may_end.set()
    work.start()
    assert work.stop()
    queue.flush()
    assert work.done_count >= 1


def test_a_worker_is_a_function_too(queue: Queue) -> None:
    @queue.worker(concurrency=2)
    def double(number: int) -> int:
        return 2 * number

    assert double(4) == 8
    assert not double.is_running
    double.start()
    with pytest.raises(IllegalState, match="runs already"):
        double.start()
    assert double.stop()


def test_the_jobs_of_a_key_are_worked_one_after_another(cluster: embedlog.Cluster) -> None:
    running: Counter[bytes] = Counter()
    order: dict[bytes, list[int]] = {b"a": [], b"b": []}
    seen = Seen(40)
    lock = threading.Lock()

    def work(job: Job) -> None:
        assert job.key is not None
        with lock:
            running[job.key] += 1
            assert running[job.key] == 1
        threading.Event().wait(0.001)
        order[job.key].append(job.value)
        with lock:
            running[job.key] -= 1
        seen.add(job.value)

    with cluster.queue("jobs", ordered=True) as queue:
        for number in range(40):
            queue.put(number, key="ab"[number % 2])
        with queue.worker(work, concurrency=4) as worker:
            seen.wait()
        assert worker.failed_count == 0
    assert order == {b"a": list(range(0, 40, 2)), b"b": list(range(1, 40, 2))}


def test_exponential_refuses_shrinking_pauses() -> None:
    with pytest.raises(ValueError, match="0 <= first <= longest"):
        exponential(10, 1)

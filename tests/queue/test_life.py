"""A queue that is dropped, closed before or after its cluster, or used by many threads."""

from __future__ import annotations

import gc
import threading
from collections import Counter
from random import Random

import pytest

import embedlog
from embedlog.errors import ClosedError
from tests.queue.test_queue import is_empty, taken


def test_a_dropped_queue_warns_and_leaves_its_group(cluster: embedlog.Cluster) -> None:
    queue = cluster.queue("jobs")
    queue.put_many([b"1", b"2"])
    queue.put(b"later", delay=1000)
    taken(queue)
    with pytest.warns(ResourceWarning, match="made here, was not closed"):
        del queue
        gc.collect()
    with cluster.queue("jobs") as other:
        assert {taken(other).value, taken(other).value} == {b"1", b"2"}


def test_a_queue_ends_with_its_cluster() -> None:
    cluster = embedlog.open()
    queue = cluster.queue("jobs")
    queue.put(b"1")
    queue.put(b"later", delay=1000)
    job = taken(queue)
    cluster.close()
    for call in (lambda: queue.put(b"2"), lambda: queue.get(timeout=1), lambda: job.ack(wait=True)):
        with pytest.raises(ClosedError):
            call()
    queue.close()


def test_close_ends_a_waiting_get(cluster: embedlog.Cluster) -> None:
    queue = cluster.queue("jobs")
    is_empty(queue)
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            queue.get()
        except ClosedError as error:
            errors.append(error)

    threads = [threading.Thread(target=wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    threading.Event().wait(0.05)
    queue.close()
    for thread in threads:
        thread.join(30)
    assert len(errors) == 3


@pytest.mark.parametrize("is_remote", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seed", range(4))
def test_threads_lose_no_job_and_finish_each_once(
    cluster: embedlog.Cluster, seed: int, is_remote: bool
) -> None:
    """Six threads with two queue objects settle jobs in every way, some from other threads."""
    count = 300
    done: Counter[bytes] = Counter()
    lock = threading.Lock()
    target = cluster.listen("127.0.0.1", 0).address if is_remote else cluster
    queues = [embedlog.Queue(target, "jobs", retries=1000) for _ in range(2)]

    def work(number: int) -> None:
        random = Random(100 * seed + number)
        queue = queues[number % 2]
        kept: list[embedlog.Job] = []
        while len(done) < count or kept:
            job = queue.get(timeout=0.1)
            if job is not None:
                kept.append(job)
            while kept and (job is None or random.random() < 0.7 or len(kept) > 5):
                job = kept.pop(random.randrange(len(kept)))
                choice = random.random()
                if choice < 0.6:
                    with lock:
                        done[job.value] += 1
                    job.ack(wait=random.random() < 0.1)
                elif choice < 0.75:
                    job.release()
                elif choice < 0.9:
                    job.release(error="again")
                else:
                    job.renew()
                    kept.append(job)
        queue.flush()

    queues[0].put_many([b"%d" % number for number in range(count)])
    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert len(done) == count
    assert set(done.values()) == {1}
    stats = queues[0].stats()
    assert (stats.ready, stats.locked, stats.late) == (0, 0, 0)
    for queue in queues:
        queue.close()

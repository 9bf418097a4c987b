"""Many threads, one broker: no record is lost or repeated, and no call waits for ever."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from embedlog.broker.context import RequestContext
from embedlog.cluster.cluster import Cluster
from embedlog.runtime.pending import Pending
from tests.golden.batches import simple
from tests.golden.requests import Topic, fetch, produce
from wire.records import iter_batches
from wire.schema import declaration

PARTITIONS = 3
PRODUCERS = 3
COUNT = 120
V = 12


class Caller:
    """One thread and its use of the broker."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def call(self, request: Any, version: int) -> Any:
        api_key = declaration(type(request)).api
        assert api_key is not None
        answer = self.cluster.broker().core.handle(RequestContext(api_key, version), request)
        if isinstance(answer, Pending):
            assert self.cluster.runtime.scheduler.wait(answer, 60_000), "nobody answered"
            return answer.result()
        return answer


def write(cluster: Cluster, topic: Topic, name: int) -> None:
    caller = Caller(cluster)
    for number in range(COUNT):
        batch = simple(b"%d-%d" % (name, number))
        response = caller.call(produce(topic, 9, batch, partition=number % PARTITIONS), 9)
        assert response.responses[0].partition_responses[0].error_code == 0


def read(cluster: Cluster, topic: Topic, in_session: bool) -> list[bytes]:
    """Read every value as it comes; offsets must be consecutive."""
    caller = Caller(cluster)
    offsets = [0] * PARTITIONS
    values: list[bytes] = []
    session, epoch = 0, 0 if in_session else -1
    while len(values) < PRODUCERS * COUNT:
        more = [(topic, index, offsets[index]) for index in range(1, PARTITIONS)]
        request = fetch(
            topic, V, offsets[0], more=more, max_wait_ms=30_000, min_bytes=1,
            session_id=session, session_epoch=epoch,
        )  # fmt: skip
        response = caller.call(request, V)
        assert response.error_code == 0
        if in_session:
            session, epoch = response.session_id, epoch + 1
        for found in (one for answered in response.responses for one in answered.partitions):
            for batch in iter_batches(memoryview(found.records)):
                if batch.base_offset >= offsets[found.partition_index]:
                    assert batch.base_offset == offsets[found.partition_index]
                    offsets[found.partition_index] = batch.next_offset
                    values += [record.value for record in batch.records()]
    return values


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["memory", "os", "fsync"])
def test_producers_and_consumers_side_by_side(durability: str, tmp_path: Path) -> None:
    path = None if durability == "memory" else tmp_path
    results: list[list[bytes]] = []
    failures: list[BaseException] = []

    def run(target: Any, *arguments: Any) -> None:
        try:
            result = target(*arguments)
            if result is not None:
                results.append(result)
        except BaseException as error:
            failures.append(error)
            raise

    with Cluster(path, durability=durability) as cluster:
        made = cluster.create_topic("t", PARTITIONS)
        topic = made.name, made.topic_id
        threads = [
            threading.Thread(target=run, args=(write, cluster, topic, name))
            for name in range(PRODUCERS)
        ]
        threads += [
            threading.Thread(target=run, args=(read, cluster, topic, in_session))
            for in_session in (True, False)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert cluster.broker().core.replica_manager.fetch_purgatory.delayed == 0
    expected = {b"%d-%d" % (name, n) for name in range(PRODUCERS) for n in range(COUNT)}
    for values in results:
        assert (len(values), set(values)) == (len(expected), expected)
    assert len(results) == 2

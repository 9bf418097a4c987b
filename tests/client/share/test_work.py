"""Members that work at random on the same partitions: each record is done once, by one of them."""

from __future__ import annotations

import threading
import time
from random import Random

import pytest

import embedlog
from embedlog import AcknowledgeType, Producer, ShareConsumer, ShareRecord
from tests.client.share.places import EXPLICIT, Connect, Place

PARTITIONS = 3
RECORDS = 240
LONG_S = 60
Where = tuple[int, int]


class Worker:
    """A member that finishes, gives back or keeps records at random, and sometimes starts anew."""

    def __init__(self, place: Place, seed: int, mode: str) -> None:
        self._place = place
        self._random = Random(seed)
        self._mode = mode
        self._chosen: dict[Where, ShareRecord] = {}
        """Records with a final acknowledgement that has no outcome yet."""
        self.done: list[Where] = []
        """Records whose final acknowledgement the leader has taken."""
        self.failed: list[tuple[Where, object]] = []

    def work(self, is_over: threading.Event) -> None:
        while not is_over.is_set():
            with self._place.consumer(
                EXPLICIT, share_acquire_mode=self._mode, max_poll_records=7
            ) as consumer:
                consumer.set_acknowledgement_commit_callback(self._settled)
                for _ in range(self._random.randrange(4, 12)):
                    if not is_over.is_set():
                        self._turn(consumer)

    def _turn(self, consumer: ShareConsumer) -> None:
        for record in consumer.poll(200):
            self._acknowledge(consumer, record)
        choice = self._random.random()
        if choice < 0.4:
            consumer.commit_sync()
        elif choice < 0.6:
            consumer.commit_async()

    def _acknowledge(self, consumer: ShareConsumer, record: ShareRecord) -> None:
        choice = self._random.random()
        if choice < 0.1:
            consumer.acknowledge(record, AcknowledgeType.RELEASE)
        elif choice < 0.2:
            consumer.acknowledge(record, AcknowledgeType.RENEW)
        else:
            final = AcknowledgeType.REJECT if choice < 0.3 else AcknowledgeType.ACCEPT
            consumer.acknowledge(record, final)
            self._chosen[record.partition, record.offset] = record

    def _settled(self, offsets: dict[tuple[str, int], set[int]], error: object) -> None:
        for (_, partition), found in offsets.items():
            for offset in found:
                where = partition, offset
                if self._chosen.pop(where, None) is None:
                    continue
                if error is None:
                    self.done.append(where)
                else:
                    self.failed.append((where, error))


@pytest.mark.parametrize("mode", ["batch_optimized", "record_limit"])
def test_each_record_is_done_once(connect: Connect, mode: str) -> None:
    place = Place(connect, PARTITIONS, **{"share.delivery.count.limit": "10"})
    random = Random(11)
    left = RECORDS
    while left:
        size = min(left, random.randrange(1, 12))
        place.fill(*[b"%d" % left] * size, partition=random.randrange(PARTITIONS))
        left -= size
    workers = [Worker(place, seed, mode) for seed in range(3)]
    is_over = threading.Event()
    threads = [threading.Thread(target=each.work, args=(is_over,)) for each in workers]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + LONG_S
    while sum(len(each.done) for each in workers) < RECORDS and time.monotonic() < deadline:
        is_over.wait(0.05)
    is_over.set()
    for thread in threads:
        thread.join()
    assert not [failure for each in workers for failure in each.failed]
    done = [where for each in workers for where in each.done]
    assert len(set(done)) == len(done), "a record was done twice"
    assert len(done) == RECORDS


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["batch_optimized", "record_limit"])
def test_the_jobs_of_a_key_are_worked_one_after_another(
    cluster: embedlog.Cluster, mode: str
) -> None:
    address = cluster.listen("127.0.0.1", 0).address
    place = Place(lambda: address, 1, **{"embedlog.share.key.order": "true"})
    with Producer(address) as producer:
        for number in range(90):
            producer.send(place.topic, b"%d" % number, key=b"%d" % (number * number % 7))
    in_work: dict[bytes | None, int] = {}
    done: list[tuple[bytes | None, int]] = []
    broken: list[object] = []

    def work() -> None:
        with place.consumer(EXPLICIT, share_acquire_mode=mode, max_poll_records=3) as consumer:
            while len(done) < 90 and not broken:
                for record in consumer.poll(100):
                    if in_work.setdefault(record.key, record.offset) != record.offset:
                        broken.append(record)
                    if record.offset % 5 == 0 and record.delivery_count == 1:
                        consumer.acknowledge(record, AcknowledgeType.RELEASE)
                    else:
                        done.append((record.key, record.offset))
                        consumer.acknowledge(record)
                    in_work.pop(record.key, None)  # its acknowledgement is sent later
                consumer.commit_sync()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_S)
    assert not broken
    for key in {key for key, _ in done}:
        offsets = [offset for each, offset in done if each == key]
        assert offsets == sorted(set(offsets))
    assert len(done) == 90

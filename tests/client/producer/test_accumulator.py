"""The queues between `send` and the sender: due batches, their order, and their nodes."""

from __future__ import annotations

from typing import Any

import pytest

from embedlog.client.errors import BufferExhausted
from embedlog.client.metadata import PartitionInfo, TopicInfo
from embedlog.client.parse_settings import parse
from embedlog.client.producer.accumulator import NEVER, MemoryWait, RecordAccumulator
from embedlog.client.producer.batch import ProducerBatch
from embedlog.client.producer.queues import PartitionQueue, ProducerQueues, TopicQueues
from embedlog.client.producer.settings import complete
from embedlog.client.producer.sizes import record_size
from embedlog.client.settings import PRODUCER
from embedlog.testing import SimRuntime, sim_runtime
from wire.records import build_batch

LINGER_MS = 10


class Nobody:
    """A `Delivery` for futures that nobody waits for."""

    def run(self) -> None: ...

    def wait_for(self, batch: ProducerBatch, timeout: float | None) -> None: ...


class Bench:
    """An accumulator, its clock, and a topic whose partitions the `leaders` lead."""

    def __init__(self, leaders: list[int], *, is_exact: bool = False, **settings: Any) -> None:
        self.runtime: SimRuntime = sim_runtime(seed=3)
        known = complete(parse(PRODUCER, {"batch_size": 1000, **settings}), in_process=False)
        self.accumulator = RecordAccumulator(known, self.runtime.clock, is_exact=is_exact)
        nobody = Nobody()
        self.accumulator.delivery = lambda: nobody
        self.topics = ProducerQueues(known, self.runtime.random.below, self.accumulator.lock)
        self.leaders = [PartitionInfo(n, leader, 0) for n, leader in enumerate(leaders)]
        info = TopicInfo("t", bytes(16), False, self.leaders)
        self.topic: TopicQueues = self.topics.queues(info)
        self.refused_nodes: set[int] = set()

    def append(self, queue: PartitionQueue, value: bytes = b"", *, sticky: bool = False) -> bool:
        size = record_size(None, value, None)
        stamp = self.runtime.clock.wall_ms()
        append = self.accumulator.append
        return append(queue, size, stamp, None, value, None, None, sticky) is not None

    def drain(self) -> dict[int, list[ProducerBatch]]:
        """Return the ready batches, by node."""
        found: dict[int, list[ProducerBatch]] = {}
        for batch in self.accumulator.ready(
            self.runtime.clock.monotonic_ms(),
            LINGER_MS,
            {self.topic.name: self.topic.info},
            lambda _, leader: leader.leader not in self.refused_nodes,
            False,
        ):
            assert batch.leader is not None
            found.setdefault(batch.leader.leader, []).append(batch)
        return found

    def drained(self) -> dict[int, list[int]]:
        """Return the drained partitions, by node."""
        found = self.drain().items()
        return {node: [batch.partition for batch in batches] for node, batches in found}


def test_a_batch_is_due_when_it_lingered_and_says_when() -> None:
    bench = Bench([1])
    bench.append(bench.topic.queue(0))
    assert bench.drained() == {}
    assert bench.accumulator.next_due_ms == LINGER_MS
    bench.runtime.clock.advance(LINGER_MS - 1)
    assert bench.drained() == {}
    bench.runtime.clock.advance(1)
    assert bench.drained() == {1: [0]}
    assert bench.drained() == {}
    assert bench.accumulator.next_due_ms == NEVER


def test_a_full_batch_and_what_is_before_another_are_due_at_once() -> None:
    bench = Bench([1])
    queue = bench.topic.queue(0)
    bench.append(queue, bytes(600))
    assert bench.drained() == {}
    bench.append(queue, bytes(600))
    (batch,) = bench.drain()[1]
    assert batch.record_count == 1
    assert batch.is_closed
    assert bench.drained() == {}, "the second has room"


def test_everything_is_due_while_somebody_waits_for_memory() -> None:
    bench = Bench([1, 1], buffer_memory=2000)
    for partition in range(2):
        assert bench.append(bench.topic.queue(partition))
    assert bench.drained() == {}
    bench.accumulator.pool.queue_up()
    assert bench.drained() == {1: [0, 1]}
    bench.accumulator.pool.leave()


def test_one_batch_of_a_partition_is_taken_at_a_time() -> None:
    bench = Bench([1])
    queue = bench.topic.queue(0)
    for _ in range(3):
        bench.append(queue, bytes(2000))
    assert [bench.drained() for _ in range(4)] == [{1: [0]}] * 3 + [{}]


def test_muted_partitions_and_nodes_that_take_nothing_are_passed_over() -> None:
    bench = Bench([1, 2, 1])
    for partition in range(3):
        bench.append(bench.topic.queue(partition), bytes(2000))
    bench.topic.queue(0).is_muted = True
    bench.refused_nodes.add(2)
    assert bench.drained() == {1: [2]}
    bench.topic.queue(0).is_muted = False
    bench.refused_nodes.clear()
    assert bench.drained() == {1: [0], 2: [1]}


def test_a_partition_without_a_leader_is_named() -> None:
    bench = Bench([-1, 1])
    for partition in range(2):
        bench.append(bench.topic.queue(partition))
    bench.runtime.clock.advance(LINGER_MS)
    assert bench.drained() == {1: [1]}
    assert list(bench.accumulator.lacks_leader) == ["t"]


def test_a_retry_waits_for_its_back_off_unless_another_leads_now() -> None:
    bench = Bench([1])
    queue = bench.topic.queue(0)
    bench.append(queue, bytes(2000))
    (batch,) = bench.drain()[1]
    batch.retry_at_ms, batch.attempts = 100, 1
    bench.accumulator.put_back(batch)
    assert bench.drained() == {}
    assert bench.accumulator.next_due_ms == 100
    bench.leaders[0] = PartitionInfo(0, 2, 1)
    assert bench.drained() == {2: [0]}
    bench.accumulator.put_back(batch)
    assert bench.drained() == {}, "the new one has failed too"
    bench.runtime.clock.advance(100)
    assert bench.drained() == {2: [0]}


def test_a_retry_comes_first_and_sequences_stay_in_order() -> None:
    bench = Bench([1])
    queue = bench.topic.queue(0)
    for _ in range(4):
        bench.append(queue, bytes(2000))
    sent = [bench.drain()[1][0] for _ in range(3)]
    for number, batch in enumerate(sent):
        batch.numbers = 1, 0, number
    for batch in (sent[1], sent[0], sent[2]):
        bench.accumulator.put_back(batch)
    assert [batch.base_sequence for batch in queue.batches] == [0, 1, 2, -1]


def test_sequences_stay_in_order_where_they_begin_again() -> None:
    bench = Bench([1])
    queue = bench.topic.queue(0)
    for _ in range(3):
        bench.append(queue, bytes(2000))
    sent = [bench.drain()[1][0] for _ in range(3)]
    for number, batch in zip((2**31 - 2, 2**31 - 1, 0), sent, strict=True):
        batch.numbers = 1, 0, number
    for batch in reversed(sent):
        bench.accumulator.put_back(batch)
    assert list(queue.batches) == sent


def test_what_is_too_old_is_taken_out_and_the_next_moment_is_known() -> None:
    bench = Bench([1, 1])
    bench.append(bench.topic.queue(0))
    bench.runtime.clock.advance(5)
    bench.append(bench.topic.queue(1))
    expired, oldest_ms = bench.accumulator.take_expired(4)
    assert [batch.partition for batch in expired] == [0]
    assert expired[0].is_closed
    assert oldest_ms == 5


def test_a_sticky_record_goes_on_in_the_next_partition_when_its_batch_is_full() -> None:
    bench = Bench([1] * 3)
    queue = bench.topics.sticky_queue(bench.topic)
    for _ in range(40):
        bench.append(queue, bytes(100), sticky=True)
    counts = [len(each.batches) for each in bench.topic.queues.values()]
    assert sum(counts) >= 4
    assert len(counts) > 1, "one partition does not get everything"
    open_batches = [each for each in bench.topic.queues.values() if each.open is not None]
    assert len(open_batches) <= 1, "no partition is left with a half-full batch"


def test_an_open_batch_without_room_is_closed_when_the_sticky_partition_comes_to_it() -> None:
    """It once stayed open with another batch behind it, and its records were never counted."""
    bench = Bench([1, 1])
    for partition in range(2):
        bench.append(bench.topic.queue(partition), bytes(900))
    queue = bench.topics.sticky_queue(bench.topic)
    bench.append(queue, bytes(900), sticky=True)
    bench.append(queue, bytes(900), sticky=True)
    for each in bench.topic.queues.values():
        waiting = list(each.batches)
        assert all(batch.is_closed for batch in waiting[:-1])
        assert all(
            batch.record_count == len(batch.records.values) for batch in waiting if batch.is_closed
        )


def test_a_partition_is_left_after_a_batch_size_though_its_batches_left_half_full() -> None:
    bench = Bench([1] * 8)
    first = bench.topics.sticky_queue(bench.topic)
    for _ in range(4):
        bench.append(bench.topics.sticky_queue(bench.topic), bytes(300), sticky=True)
        bench.runtime.clock.advance(LINGER_MS)
        bench.drain()
    assert bench.topic.sticky_queue is not first


@pytest.mark.parametrize("length", [0, 1, 50, 57, 63, 64, 100, 300, 8192])
@pytest.mark.parametrize("key", [None, b"key", bytes(70)])
def test_over_the_network_a_batch_is_filled_to_the_byte(length: int, key: bytes | None) -> None:
    """A record joins while 61 + the written bytes + the record are within batch.size, as
    in Kafka."""
    bench = Bench([1], is_exact=True, batch_size=16_384)
    queue = bench.topic.queue(0)
    value = bytes(length)
    size = record_size(key, value, None)
    number = 0
    while len(queue.batches) < 3:
        stamp = 10**12 + number % 40
        bench.accumulator.append(queue, size, stamp, key, value, None, None, False)
        number += 1
    for batch in list(queue.batches)[:2]:
        keys = None if key is None else [key] * len(batch.records.values)
        written = build_batch(batch.records.values, keys=keys, timestamps=batch.records.timestamps)
        assert len(written) <= 16_384
        one_more = [*batch.records.values, value]
        keys = None if key is None else [key] * len(one_more)
        more = build_batch(one_more, keys=keys, timestamps=[*batch.records.timestamps, stamp])
        assert len(more) > 16_384 or len(written) == 16_384


def test_compressed_batches_reserve_what_they_hold() -> None:
    bench = Bench([1], compression_type="gzip", buffer_memory=100_000)
    bench.topic.compression_ratio = 0.1
    bench.append(bench.topic.queue(0), bytes(100))
    (batch,) = bench.topic.queue(0).batches
    assert batch.size_limit == int((1000 - 61) / (0.1 * 1.05))
    assert batch.memory == batch.size_limit
    bench.topic.compression_ratio = 0.000_1
    bench.topic.queue(0).close_open()
    assert not bench.append(bench.topic.queue(0), bytes(100)), "all of buffer.memory is not free"


def test_the_ratio_grows_fast_and_shrinks_slowly() -> None:
    topic = Bench([1]).topic
    topic.learn_ratio(0.2)
    assert topic.compression_ratio == pytest.approx(0.995)
    topic.learn_ratio(1.3)
    assert topic.compression_ratio == pytest.approx(1.3)
    topic.compression_ratio = 0.5
    topic.learn_ratio(0.51)
    assert topic.compression_ratio == pytest.approx(0.55)


class Lone(Bench):
    """One partition whose queue holds three closed batches and an open one."""

    def __init__(self, leader: int = 1) -> None:
        super().__init__([leader])
        queue = self.queue = self.topic.queue(0)
        for _ in range(7):
            self.append(queue, bytes(450))
        assert [batch.is_closed for batch in queue.batches] == [True, True, True, False]

    def take(self, now_ms: int = 0, may_be_sent: Any = None) -> list[ProducerBatch]:
        topics = {self.topic.name: self.topic.info}
        return self.accumulator.ready(now_ms, 100, topics, may_be_sent, False)


def test_what_is_ready_is_taken_batch_by_batch_and_the_rest_says_when_it_will_be() -> None:
    bench = Lone()
    waiting = list(bench.queue.batches)
    assert [bench.take() for _ in range(3)] == [[batch] for batch in waiting[:3]]
    assert bench.take() == [], "the open one may linger"
    created_ms = waiting[3].created_ms
    assert bench.accumulator.next_due_ms == created_ms + 100
    waiting[3].is_wanted = True
    assert bench.take() == [waiting[3]]
    assert waiting[3].is_closed
    assert not bench.accumulator.active
    assert bench.take() == []
    assert bench.accumulator.next_due_ms == NEVER


def test_what_may_not_be_sent_is_left() -> None:
    bench = Lone()
    first = bench.queue.batches[0]
    bench.queue.is_muted = True
    assert bench.take() == []
    bench.queue.is_muted = False
    first.retry_at_ms = 5
    assert bench.take(4) == []
    assert bench.accumulator.next_due_ms == 5
    assert bench.take(5, lambda batch, leader: leader.leader != 1) == []
    assert bench.queue.batches[0] is first
    assert bench.take(5, lambda batch, leader: batch is first) == [first]


def test_a_partition_without_a_leader_names_its_topic() -> None:
    bench = Lone(leader=-1)
    assert bench.take() == []
    assert list(bench.accumulator.lacks_leader) == [bench.topic.name]


def test_queues_are_served_by_turns() -> None:
    many = Lone()
    many.topic.info.partitions.append(PartitionInfo(1, 1, 0))
    other = many.topic.queue(1)
    for _ in range(5):
        many.append(other, bytes(450))
    topics = {many.topic.name: many.topic.info}
    (first,) = many.accumulator.ready(0, 100, topics, None, True)
    served = [[batch.partition for batch in many.take()] for _ in range(3)]
    assert [first.partition, *served] == [0, [1, 0], [1, 0], []]


def test_the_first_that_are_closed_may_be_encoded_ahead() -> None:
    bench = Lone()
    batches = list(bench.queue.batches)
    assert bench.accumulator.closed_first(2) == batches[:2]
    assert bench.accumulator.closed_first(9) == batches[:3]
    assert Bench([1]).accumulator.closed_first(9) == []


def test_the_oldest_batch_that_is_left_may_be_in_any_queue() -> None:
    bench = Bench([1, 1])
    bench.append(bench.topic.queue(0))
    began_ms = bench.runtime.clock.monotonic_ms()
    bench.runtime.clock.advance(5)
    bench.append(bench.topic.queue(1))
    assert bench.accumulator.take_expired(began_ms - 1) == ([], began_ms)


def test_keys_of_a_topic_that_was_made_anew_with_fewer_partitions_stay_inside_it() -> None:
    bench = Bench([1, 1, 1])
    keys = [b"%d" % number for number in range(9)]
    assert len({bench.topic.queue_of(key).partition for key in keys}) == 3
    smaller = bench.topics.queues(TopicInfo("t", bytes(15) + b"\1", False, bench.leaders[:1]))
    assert {smaller.queue_of(key).partition for key in keys} == {0}


def test_a_wait_for_memory_ends_with_the_time_of_the_whole_call() -> None:
    bench = Bench([1])
    limits: list[int | None] = []

    class Full:
        def wait(self, is_done: Any, timeout_ms: int | None, **more: Any) -> bool:
            limits.append(timeout_ms)
            return False

        def arrived(self) -> None: ...

    settings = {"batch.size": 1000, "max.block.ms": 50}
    driver: Any = Full()
    waiting = MemoryWait(bench.accumulator, driver, settings, bench.runtime.clock)
    began_ms = bench.runtime.clock.monotonic_ms()
    for passed_ms in (30, 40):
        bench.runtime.clock.advance(passed_ms)
        with pytest.raises(BufferExhausted):
            waiting.until(lambda: False, began_ms)
    assert limits == [20, 0]

"""Partitions by key agree with every other Kafka client; without a key one partition fills up."""

from __future__ import annotations

from _thread import RLock
from typing import Any

import pytest

import embedlog
from embedlog.client.metadata import PartitionInfo, TopicInfo
from embedlog.client.parse_settings import parse
from embedlog.client.producer.partitioners import ChosenPartitioner, RoundRobinPartitioner, murmur2
from embedlog.client.producer.queues import NodeLatencies, ProducerQueues, TopicQueues
from embedlog.client.producer.settings import complete
from embedlog.client.settings import PRODUCER
from embedlog.errors import ConfigError

VECTORS = [
    (b"", 0x106E08D9),
    (b"1", 0x892E6F8F),
    (b"21", 0xC5F2F8EC),
    (b"abc", 0x1C94221B),
    (bytes([0, 1, 2, 3]), 0x723792A0),
    (b"key-1", 0x0B8601B8),
    (b"foobar", 0xD0E47BBE),
    ("grüße".encode(), 0x73DA9E0C),
    (b"a-little-bit-long-string", 0xC53B1DA0),
    (b"a-little-bit-longer-string", 0xA768C9C3),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", 0xFC7D49CD),
    (bytes(range(256)), 0x8BDE9476),
]


@pytest.mark.parametrize(("key", "hashed"), VECTORS)
def test_murmur2_equals_the_other_clients(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed


@pytest.mark.parametrize(
    ("key", "by_three", "by_hundred"),
    [(b"", 0, 81), (b"foobar", 0, 66), ("grüße".encode(), 2, 48), (bytes(range(256)), 1, 74)],
)
def test_the_sign_is_dropped_before_the_remainder(
    key: bytes, by_three: int, by_hundred: int
) -> None:
    assert _queue_numbers(3, key) == [by_three] * 2
    assert _queue_numbers(100, key) == [by_hundred] * 2, "the second answer comes from memory"


@pytest.mark.slow
def test_the_memory_of_keys_is_bounded() -> None:
    queues = _queues([1] * 97)
    for number in range(70_000):
        queues.queue_of(b"%d" % number)
    assert len(queues.by_key) <= 65_536
    assert queues.queue_of(b"foobar").partition == (0xD0E47BBE & 0x7FFFFFFF) % 97


def _queue_numbers(partition_count: int, key: bytes) -> list[int]:
    queues = _queues([1] * partition_count)
    return [queues.queue_of(key).partition for _ in range(2)]


def _topic(leaders: list[int]) -> TopicInfo:
    partitions = [PartitionInfo(number, leader, 0) for number, leader in enumerate(leaders)]
    return TopicInfo("t", bytes(16), False, partitions)


def test_round_robin_takes_the_partitions_with_a_leader_in_turn() -> None:
    partitioner = RoundRobinPartitioner()
    topic = _topic([1, -1, 2, 1])
    assert [partitioner.partition(topic, b"one key", b"v") for _ in range(7)] == [
        0, 2, 3, 0, 2, 3, 0,
    ]  # fmt: skip
    other = TopicInfo("other", bytes(16), False, topic.partitions)
    assert partitioner.partition(other, None, None) == 0, "each topic has a counter"
    nowhere = _topic([-1, -1])
    assert [partitioner.partition(nowhere, None, None) for _ in range(2)] == [1, 0]


class Fixed:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def configure(self, settings: Any) -> None:
        self.seen.append(settings)

    def partition(self, topic: Any, key: Any, value: Any) -> int:
        return 7

    def close(self) -> None:
        self.seen.append("closed")


def test_a_partitioner_is_a_function_an_object_a_class_or_kafkas_name() -> None:
    assert ChosenPartitioner(lambda topic, key, value: 5, {}).choose(_topic([1]), None, None) == 5
    given = Fixed()
    chosen = ChosenPartitioner(given, {"a": 1})
    assert chosen.choose(_topic([1]), None, None) == 7
    chosen.close()
    assert given.seen == [{"a": 1}, "closed"]
    assert ChosenPartitioner(Fixed, {}).choose(_topic([1]), None, None) == 7
    name = "org.apache.kafka.clients.producer.RoundRobinPartitioner"
    assert ChosenPartitioner(name, {}).choose(_topic([1]), None, None) == 0


@pytest.mark.parametrize("given", ["my.Partitioner", 5, object()])
def test_what_cannot_choose_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"partitioner\.class="):
        ChosenPartitioner(given, {})


def test_a_leader_is_slow_when_its_batches_wait_longer_than_the_time_out() -> None:
    latencies = NodeLatencies(100)
    assert not latencies.is_slow(1)
    latencies.batch_was_ready(1, 0, could_be_sent=False)
    latencies.batch_was_ready(1, 100, could_be_sent=False)
    assert not latencies.is_slow(1)
    latencies.batch_was_ready(1, 101, could_be_sent=False)
    assert latencies.is_slow(1)
    latencies.batch_was_ready(1, 102, could_be_sent=True)
    assert not latencies.is_slow(1)
    assert not NodeLatencies(0).is_watching


class Draws:
    """A producer's random numbers; the test sets the next one."""

    def __init__(self) -> None:
        self.drawn = 0

    def below(self, count: int) -> int:
        return self.drawn % count


def _queues(
    leaders: list[int], draws: Draws | None = None, availability_timeout_ms: int = 0
) -> TopicQueues:
    given = {"partitioner.availability.timeout.ms": availability_timeout_ms, "batch.size": 100}
    known = complete(parse(PRODUCER, given), in_process=False)
    return TopicQueues(_topic(leaders), ProducerQueues(known, (draws or Draws()).below, RLock()))


def test_a_sticky_partition_switches_at_the_end_of_the_batch_that_makes_batch_size_full() -> None:
    queues = _queues([1, 1])
    for _ in range(2):
        chosen = queues.choose_sticky()
        queues.produced(chosen, 60)
        queues.produced(chosen, 39)
        assert queues.sticky_queue is chosen
        queues.produced(queues.queue(1 - chosen.partition), 100)
        assert queues.sticky_queue is chosen, "only what went there counts"
        queues.produced(chosen, 1)
        assert queues.sticky_queue is None


def test_a_shorter_queue_is_chosen_more_often() -> None:
    # Weights (longest + 1 - size): 3 for partition 0, 1 for partition 1.
    draws = Draws()
    queues = _queues([1, 1], draws)
    queues.queue(0)
    queues.queue(1).batches.extend([object()] * 2)
    drawn = []
    for draws.drawn in range(4):
        drawn.append(queues.choose_sticky().partition)
    assert drawn == [0, 0, 0, 1]


def test_equal_queues_are_chosen_evenly() -> None:
    draws = Draws()
    queues = _queues([1, 1], draws)
    for number in range(2):
        queues.queue(number).batches.extend([object()] * 2)
    draws.drawn = 1
    assert queues.choose_sticky().partition == 1


def test_adaptive_begins_when_every_partition_has_had_a_batch() -> None:
    draws = Draws()
    queues = _queues([1, 1], draws)
    queues.queue(0).batches.extend([object()] * 9)
    # Uniform: the first of two. Weighted by 1 and 10, a draw of 1 is the second.
    assert queues.choose_sticky().partition == 0
    queues.queue(1)
    draws.drawn = 1
    assert queues.choose_sticky().partition == 1
    draws.drawn = 0
    assert queues.choose_sticky().partition == 0


def test_slow_leaders_are_avoided_unless_all_are_slow() -> None:
    draws = Draws()
    queues = _queues([1, 2, 1], draws, availability_timeout_ms=100)
    latencies = queues.rules.latencies
    latencies.batch_was_ready(1, 0, could_be_sent=False)
    latencies.batch_was_ready(1, 500, could_be_sent=False)
    for number in range(3):
        queues.queue(number)
    for draws.drawn in range(3):
        assert queues.choose_sticky().partition == 1
    latencies.batch_was_ready(2, 0, could_be_sent=False)
    latencies.batch_was_ready(2, 500, could_be_sent=False)
    assert queues.choose_sticky().partition == 2 % 3


def test_partitions_without_a_leader_are_chosen_only_if_none_has_one() -> None:
    draws = Draws()
    assert _queues([-1, 1], draws).choose_sticky().partition == 1
    draws.drawn = 1
    assert _queues([-1, -1], draws).choose_sticky().partition == 1


def test_a_partitioner_may_see_key_and_value_before_they_are_serialized() -> None:
    seen: list[tuple[Any, ...]] = []

    def choose(topic: Any, key: Any, key_bytes: Any, value: Any, value_bytes: Any) -> int:
        seen.append((topic.name, key, key_bytes, value, value_bytes))
        return int(key or 0)

    with embedlog.open() as cluster:
        cluster.create_topic("t", 4)
        settings: Any = {
            "partitioner_class": choose,
            "key_serializer": lambda key: b"%d" % key,
            "value_serializer": str.encode,
        }
        with cluster.producer(**settings) as producer:
            assert producer.send("t", "v", 3).result().partition == 3
            written = producer.send_batch("t", ["a", "b", "c"], keys=[1, None, 1]).result()
            assert sorted(batch.partition for batch in written) == [0, 1]
    assert seen == [
        ("t", 3, b"3", "v", b"v"),
        ("t", 1, b"1", "a", b"a"),
        ("t", None, None, "b", b"b"),
        ("t", 1, b"1", "c", b"c"),
    ]


def test_a_partitioner_with_defaults_is_called_as_before() -> None:
    partition = ChosenPartitioner(lambda topic, key, value, bias=2, more=3: bias + more, {}).choose
    assert partition(_topic([1]), None, None) == 5


def test_a_partitioner_that_takes_something_else_is_refused_when_the_producer_is_made() -> None:
    with pytest.raises(ConfigError, match=r"called with \(topic, key_bytes, value_bytes\)"):
        ChosenPartitioner(lambda topic: 0, {})


@pytest.mark.parametrize("wrong", [1.5, "0", None])
def test_a_partitioner_that_returns_no_number_is_named(wrong: Any) -> None:
    with (
        embedlog.open() as cluster,
        cluster.producer(partitioner_class=lambda topic, key, value: wrong) as producer,
    ):
        for send in (
            lambda: producer.send("t", b"v"),
            lambda: producer.send_batch("t", [b"v"]),
        ):
            with pytest.raises(TypeError, match=r"<lambda>\(returned partition="):
                send()

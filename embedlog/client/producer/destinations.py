"""Where a record goes: from a topic's name, a partition or a key to the queue that it joins.

With a key: murmur2, as every Kafka client does it, so that one key always lands in one partition
whoever sends it. Without: one partition at a time until it got about a batch (KIP-794), which
keeps batches full. Or as partitioner.class says, which may be

    a function      (topic, key_bytes, value_bytes) -> partition, of a `TopicInfo` and what is
                    sent; or (topic, key, key_bytes, value, value_bytes) -> partition, as Kafka's,
                    with key and value as they were before they were serialized
    an object       with such a method `partition`, and perhaps `configure(settings)`, `close()`
    a class         of such objects, called without arguments; `RoundRobinPartitioner` is one
    Kafka's name    of its round robin partitioner
"""

from __future__ import annotations

from embedlog import errors
from embedlog.client.arguments import partition_number
from embedlog.client.user_code import describe
from embedlog.common import deque
from embedlog.errors import ClosedError, ConfigError, TimedOut, error_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import RLock
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from embedlog.client.drivers.driver import Driver
    from embedlog.client.metadata import Metadata, TopicInfo
    from embedlog.client.producer.batch import ProducerBatch
    from embedlog.client.producer.columns import Columns
    from embedlog.client.settings import Settings
    from embedlog.transport import Transport

    Partition = Callable[..., int]
    """Of the topic, key and value as they are sent, and as they were given."""

_SEED = 0x9747B28C
_FACTOR = 0x5BD1E995
_MASK = 0xFFFF_FFFF
POSITIVE = 0x7FFF_FFFF


def murmur2(data: bytes) -> int:
    """The 32-bit MurmurHash2 of `data`, unsigned, with the seed of Kafka's clients.

    >>> hex(murmur2(b"foobar"))
    '0xd0e47bbe'
    """
    size = len(data)
    hashed = _SEED ^ size
    whole = size & ~3
    for position in range(0, whole, 4):
        block = int.from_bytes(data[position : position + 4], "little") * _FACTOR & _MASK
        block = (block ^ block >> 24) * _FACTOR & _MASK
        hashed = hashed * _FACTOR & _MASK ^ block
    if size > whole:
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * _FACTOR & _MASK
    hashed = (hashed ^ hashed >> 13) * _FACTOR & _MASK
    return hashed ^ hashed >> 15


class RoundRobinPartitioner:
    """Spreads records evenly over the partitions that have a leader, whatever their keys.

    >>> with embedlog.open() as cluster, embedlog.Admin(cluster) as admin:
    ...     created = admin.create_topics({"events": 3}).check()
    ...     chosen = embedlog.RoundRobinPartitioner
    ...     with embedlog.Producer(cluster, partitioner_class=chosen) as producer:
    ...         [producer.send("events", b"v", key=b"k").result().partition for _ in range(4)]
    [0, 1, 2, 0]
    """

    def __init__(self) -> None:
        self._counters: dict[str, Callable[[], int]] = {}

    def partition(self, topic: TopicInfo, key: bytes | None, value: bytes | None) -> int:
        """The next partition of the topic; one without a leader only if none has one."""
        counter = self._counters.get(topic.name)
        if counter is None:
            from itertools import count

            counter = self._counters.setdefault(topic.name, count().__next__)
        number = counter()
        available = topic.available
        return available[number % len(available)] if available else number % len(topic.partitions)


_BY_NAME = {
    "org.apache.kafka.clients.producer.RoundRobinPartitioner": RoundRobinPartitioner,
    "RoundRobinPartitioner": RoundRobinPartitioner,
}


class ChosenPartitioner:
    """What partitioner.class names, as one function and what it leaves behind."""

    __slots__ = ("_close", "choose")

    def __init__(self, given: Any, settings: Mapping[str, Any]) -> None:
        """Make the object if a class is given, and configure it.

        Raises:
            ConfigError: it is nothing that could choose a partition.
        """
        made = _BY_NAME.get(given, given) if isinstance(given, str) else given
        if isinstance(made, type):
            made = made()
        choose = getattr(made, "partition", None) or (made if callable(made) else None)
        if choose is None or isinstance(made, str):  # which has a `partition` of its own
            raise ConfigError(
                f"partitioner.class={given!r}: must be a function "
                f"(topic, key_bytes, value_bytes) -> partition, an object or class with such a "
                f"method `partition`, or {sorted(_BY_NAME)[0]!r}"
            )
        configure = getattr(made, "configure", None)
        if configure is not None:
            configure(settings)
        self.choose: Partition = _with_all(choose, made)
        self._close = getattr(made, "close", None)

    def close(self) -> None:
        """Let the object give back what it holds."""
        if self._close is not None:
            self._close()


def _with_all(choose: Callable[..., Any], made: Any) -> Partition:
    """The user's function or method, in whichever of its two forms, as one that takes all."""
    name = describe(choose)

    def by_bytes(
        topic: TopicInfo,
        key: bytes | None,
        value: bytes | None,
        _key: Any = None,
        _value: Any = None,
    ) -> int:
        return partition_number(choose(topic, key, value), name, "returned partition")

    def as_kafkas(
        topic: TopicInfo, key_bytes: bytes | None, value_bytes: bytes | None, key: Any, value: Any
    ) -> int:
        chosen = choose(topic, key, key_bytes, value, value_bytes)
        return partition_number(chosen, name, "returned partition")

    if isinstance(made, RoundRobinPartitioner):
        return by_bytes
    from inspect import signature

    try:
        accepts = signature(choose)
    except (TypeError, ValueError):  # it is written in C and does not tell
        return by_bytes
    for form, count in ((by_bytes, 3), (as_kafkas, 5)):
        try:
            accepts.bind(*[None] * count)
        except TypeError:
            continue
        return form
    raise ConfigError(
        f"partitioner.class: {name}{accepts} is called with (topic, key_bytes, value_bytes) or "
        f"with (topic, key, key_bytes, value, value_bytes)"
    )


class NodeLatencies:
    """Which leaders do not keep up: batches for them are ready, and for long none could be sent.

    partitioner.availability.timeout.ms says how long; at 0 nobody is watched (KIP-794). Not
    thread-safe: the accumulator uses it under its lock.
    """

    __slots__ = ("_drained_ms", "_ready_ms", "_timeout_ms")

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._ready_ms: dict[int, int] = {}
        self._drained_ms: dict[int, int] = {}

    @property
    def is_watching(self) -> bool:
        """Is anything to be told at all?"""
        return self._timeout_ms > 0

    def batch_was_ready(self, node_id: int, now_ms: int, *, could_be_sent: bool) -> None:
        """A batch for the node was due."""
        self._ready_ms[node_id] = now_ms
        if could_be_sent or node_id not in self._drained_ms:
            self._drained_ms[node_id] = now_ms

    def is_slow(self, node_id: int) -> bool:
        """Have batches for the node waited longer than the time-out?"""
        ready_ms = self._ready_ms.get(node_id)
        return ready_ms is not None and ready_ms - self._drained_ms[node_id] > self._timeout_ms


_CACHED_KEYS_MAX = 65_536
_RATIO_WORSE_STEP = 0.05
_RATIO_BETTER_STEP = 0.005


class PartitionQueue:
    """The batches of one partition that wait for the sender, oldest first."""

    __slots__ = ("batches", "is_muted", "open", "partition", "topic")

    def __init__(self, topic: TopicQueues, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.batches: deque[ProducerBatch] = deque()
        self.open: ProducerBatch | None = None
        """The last batch, while records may still join it."""
        self.is_muted = False
        """One request at a time (max.in.flight 1), and one is under way."""

    def close_open(self) -> None:
        """Let no more records into the last batch."""
        if self.open is not None:
            self.open.close()
            self.open = None

    def insert(self, batch: ProducerBatch) -> None:
        """Put back a batch that was sent, before what was not.

        Batches with sequences stay in the order of their sequences.
        """
        position = 0
        if batch.base_sequence >= 0:
            for waiting in self.batches:
                if not _is_before(waiting, batch):
                    break
                position += 1
        self.batches.insert(position, batch)


class TopicQueues:
    """The queues of one topic, and which of them records without a key join."""

    __slots__ = (
        "by_key",
        "compression_ratio",
        "has_choice",
        "info",
        "name",
        "queues",
        "rules",
        "sticky_queue",
        "sticky_size",
    )

    def __init__(self, info: TopicInfo, rules: Topics) -> None:
        self.name = info.name
        self.info = info
        """The topic as metadata last described it."""
        self.has_choice = len(info.partitions) > 1
        """Has it more than one partition?"""
        self.rules = rules
        self.queues: dict[int, PartitionQueue] = {}
        self.by_key: dict[bytes, PartitionQueue] = {}
        """Where records with these keys go, as long as the topic has so many partitions."""
        self.sticky_queue: PartitionQueue | None = None
        """The queue of the sticky partition; None when another is to be chosen."""
        self.sticky_size = 0
        """Bytes of the batches that went there."""
        self.compression_ratio = 1.0
        """Estimate of compressed to plain size."""

    def queue(self, partition: int) -> PartitionQueue:
        """The queue of `partition`, made when first asked for."""
        found = self.queues.get(partition)
        if found is None:
            found = self.queues[partition] = PartitionQueue(self, partition)
        return found

    def queue_of(self, key: bytes) -> PartitionQueue:
        """The queue that the hash of `key` decides, remembered: hashing 8 bytes takes 1 us.

        When the memory is full it is emptied; a dict that evicts one by one would cost each hit.
        """
        by_key = self.by_key
        found = by_key.get(key)
        if found is None:
            hashed = murmur2(key) & POSITIVE
            if len(by_key) >= _CACHED_KEYS_MAX:
                by_key.clear()
            found = by_key[key] = self.queue(hashed % len(self.info.partitions))
        return found

    def learn_ratio(self, observed: float) -> None:
        """Move the estimate: up fast when batches compress worse, down slowly."""
        if observed > self.compression_ratio:
            self.compression_ratio = max(self.compression_ratio + _RATIO_WORSE_STEP, observed)
        else:
            self.compression_ratio = max(self.compression_ratio - _RATIO_BETTER_STEP, observed)

    def choose_sticky(self) -> PartitionQueue:
        """Choose the next partition for records without a key. Requires: the accumulator's lock.

        At random among those that have a leader. By the adaptive rules once each partition of the
        topic has had a batch: then a shorter queue is more likely (weight: longest + 1 - batches).
        """
        info, rules = self.info, self.rules
        available = info.available or [each.partition for each in info.partitions]
        sizes: list[int] = []
        if rules.adaptive and len(self.queues) >= len(info.partitions):
            if rules.latencies.is_watching:
                is_slow = rules.latencies.is_slow
                quick = [n for n in available if not is_slow(info.partitions[n].leader)]
                available = quick or available
            sizes = [len(self.queue(number).batches) for number in available]
        self.sticky_size = 0
        if len(available) == 1:
            number = available[0]
        elif sizes and min(sizes) < max(sizes):
            number = _weighted(available, sizes, rules.below)
        else:
            number = available[rules.below(len(available))]
        chosen = self.sticky_queue = self.queue(number)
        return chosen

    def produced(self, queue: PartitionQueue, size: int) -> None:
        """Count a batch that went to `queue`: after enough of them another is the sticky one.

        Requires: the accumulator's lock; the topic has a choice.
        """
        if queue is self.sticky_queue:
            if self.rules.compresses:
                size = int(size * self.compression_ratio)
            self.sticky_size += size
            if self.sticky_size >= self.rules.switch_size:
                self.sticky_queue = None


def _weighted(
    available: Sequence[int], queue_sizes: Sequence[int], below: Callable[[int], int]
) -> int:
    longest = max(queue_sizes)
    drawn = below(sum(longest + 1 - size for size in queue_sizes))
    for partition, size in zip(available, queue_sizes, strict=True):
        drawn -= longest + 1 - size
        if drawn < 0:
            return partition
    raise AssertionError(f"weights of {queue_sizes} ended before the draw")


def _is_before(waiting: ProducerBatch, batch: ProducerBatch) -> bool:
    """Do the numbers of `waiting` come before those of `batch`? They may have begun again at 0."""
    if waiting.base_sequence < 0:
        return False
    return 0 < (batch.base_sequence - waiting.base_sequence) & 0x7FFF_FFFF < 0x4000_0000


class Topics:
    """The queues of all topics that one producer has sent to, and how each of them chooses the
    partition of records without a key."""

    __slots__ = (
        "_found",
        "_lock",
        "adaptive",
        "below",
        "compresses",
        "latencies",
        "switch_size",
    )

    def __init__(self, settings: Settings, below: Callable[[int], int], lock: RLock) -> None:
        """`below(n)` draws a number of [0, n). `lock` is the accumulator's."""
        self._lock = lock
        self._found: dict[str, TopicQueues] = {}
        self.below = below
        self.switch_size: int = max(min(settings["batch.size"], settings["buffer.memory"]), 1)
        """Bytes after which another is chosen, at the end of a batch."""
        self.adaptive: bool = settings["partitioner.adaptive.partitioning.enable"]
        """Rather one with a short queue, and none whose leader does not keep up?"""
        self.compresses: bool = settings["compression.type"] != "none"
        self.latencies = NodeLatencies(settings["partitioner.availability.timeout.ms"])

    def queues(self, info: TopicInfo) -> TopicQueues:
        """The queues of a topic that is now as `info` says, made when first asked for."""
        found = self._found.get(info.name)
        if found is None:
            with self._lock:
                found = self._found.setdefault(info.name, TopicQueues(info, self))
        is_resized = len(info.partitions) != len(found.info.partitions)
        found.info = info
        if is_resized:
            found.has_choice = len(info.partitions) > 1
            found.by_key = {}  # after the info: whoever fills it has seen that
        return found

    def sticky_queue(self, topic: TopicQueues) -> PartitionQueue:
        """The queue that a record without a key joins now."""
        with self._lock:
            return topic.sticky_queue or topic.choose_sticky()


class Destinations:
    """The topics that one producer has sent to. Waits for metadata where it must."""

    def __init__(
        self,
        metadata: Metadata,
        topics: Topics,
        driver: Driver,
        settings: Settings,
        transport: Transport,
        *,
        awaited: Callable[[], set[str]],
    ) -> None:
        """`awaited()` are the topics of records without an outcome."""
        self._metadata = metadata
        self._topics = topics
        self._awaited = awaited
        self._driver = driver
        self._transport = transport
        self._clock = transport.runtime.clock
        self._is_in_process = transport.in_process
        self._max_block_ms: int = settings["max.block.ms"]
        chosen = settings["partitioner.class"]
        self._chosen = None if chosen is None else ChosenPartitioner(chosen, settings)
        self._partitioner = None if self._chosen is None else self._chosen.choose
        self._ignores_keys: bool = settings["partitioner.ignore.keys"]
        self._is_closed = False
        self.known: dict[str, TopicQueues] = {}
        """What `topic` has found; forgotten when metadata has news."""
        self.waited_ns = 0
        """For metadata, in all."""
        metadata.on_news = self._renew
        metadata.wanted.in_use = self._topics_in_use

    def close(self) -> None:
        """Find nothing any more: every look-up raises ClosedError, also one that waits."""
        self._is_closed = True
        self.known.clear()
        if self._chosen is not None:
            self._chosen.close()

    def _renew(self) -> None:
        """Metadata has news: look again. What was found since the last news was in use."""
        for name in list(self.known):
            self._metadata.want(name)
        self.known.clear()

    def _topics_in_use(self) -> set[str]:
        """The topics sent to since the last news, and those of records without an outcome."""
        return self._awaited() | self.known.keys()

    def is_sticky(self, partition: int | None, key: bytes | None) -> bool:
        """Does such a record go wherever there is room?"""
        return (
            partition is None and (key is None or self._ignores_keys) and self._partitioner is None
        )

    def topic(self, name: str) -> TopicQueues:
        """The queues of a topic, waiting for metadata if it is not known.

        Raises:
            ClosedError: the producer is closed.
            TimedOut: the topic is not known after max.block.ms.
            KafkaError: the cluster refuses to tell.
        """
        queues = self.known.get(name)
        if queues is None:
            if self._is_closed:
                raise ClosedError("the producer is closed")
            info = self._metadata.topics.get(name)
            if info is None:
                info = self._await_topic(name)
            queues = self.known[name] = self._topics.queues(info)
        return queues

    def queue(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        given: tuple[Any, Any],
    ) -> PartitionQueue:
        """The queue of the partition that was named, or that the record's key decides.

        `given` are key and value before they were serialized.
        """
        queues = self.topic(topic)
        if partition is not None:
            return self._named(queues, partition)
        if self._partitioner is not None:
            return self._named(queues, self._partitioner(queues.info, key, value, *given))
        if key is not None and not self._ignores_keys:
            return queues.queue_of(key)
        return self._topics.sticky_queue(queues)

    def divide(
        self,
        topic: str,
        columns: Columns,
        partition: int | None,
        given: tuple[Sequence[Any] | None, Sequence[Any]],
    ) -> list[tuple[PartitionQueue, Columns]]:
        """The records of each partition, with its queue.

        `given` are the keys and the values before they were serialized.
        """
        queues = self.topic(topic)
        if partition is not None:
            return [(self._named(queues, partition), columns)]
        if self._partitioner is not None:
            info = queues.info
            choose = self._partitioner
            keys, values = given
            # One by one beside the serialized ones, which `by_partition` goes through in order.
            before = zip([None] * len(values) if keys is None else keys, values, strict=True)
            parts = columns.by_partition(
                lambda key, value: int(choose(info, key, value, *next(before)))
            )
            return [(self._named(queues, number), part) for number, part in parts.items()]
        sticky = self._topics.sticky_queue(queues)
        if columns.keys is None or self._ignores_keys:
            return [(sticky, columns)]
        queue_of = queues.queue_of
        parts = columns.by_partition(
            lambda key, _: (sticky if key is None else queue_of(bytes(key))).partition
        )
        return [(queues.queue(number), part) for number, part in parts.items()]

    def _await_topic(self, name: str) -> TopicInfo:
        metadata = self._metadata
        metadata.want(name)
        answer_count = metadata.answer_count

        def is_refused() -> bool:
            return (
                name in metadata.errors
                and metadata.answer_count > answer_count
                and not self._transport.makes_topics
            )

        def is_settled() -> bool:
            known = name in metadata.topics or metadata.topic_error(name) is not None
            return known or metadata.failure is not None or is_refused()

        self._wait(is_settled)
        info = metadata.topics.get(name)
        if info is not None:
            return info
        error = metadata.topic_error(name) or metadata.failure
        if error is not None:
            raise error
        if is_refused():
            metadata.wanted.forget([name])
            code = metadata.errors[name].code
            text = "and sending to it makes none (auto.create.topics.enable=false)"
            raise error_for(code, f"there is no topic {name!r}, {text}")
        last = metadata.last_error or metadata.errors.get(name)
        reason = f"no answer from {self._transport!r}" if last is None else str(last)
        raise TimedOut(
            f"topic {name!r} is not in the cluster's metadata after max.block.ms="
            f"{self._max_block_ms}: {reason}"
        )

    def _named(self, queues: TopicQueues, partition: int) -> PartitionQueue:
        if partition < 0:
            raise ValueError(f"partition={partition}: must not be negative")
        if partition >= len(queues.info.partitions):
            queues = self._await_partition(queues.name, partition)
        return queues.queue(partition)

    def _await_partition(self, name: str, partition: int) -> TopicQueues:
        """The queues of a topic once it has that partition; somebody may be adding it.

        A cluster of this process says so at once, others are asked for max.block.ms.
        """
        metadata = self._metadata
        answers = [metadata.answer_count]

        def is_there() -> bool:
            info = metadata.topics.get(name)
            if info is not None and partition < len(info.partitions):
                return True
            if metadata.answer_count > answers[0]:
                answers[0] = metadata.answer_count
                if self._is_in_process:
                    return True
                metadata.request_update()
                self._driver.run()
            return False

        metadata.request_update()
        self._wait(is_there)
        queues = self.topic(name)
        count = len(queues.info.partitions)
        if partition < count:
            return queues
        text = f"topic {name!r} has no partition {partition}, only {count}"
        if self._is_in_process:
            raise errors.UnknownTopicOrPartition(text)
        raise TimedOut(f"{text}, also after max.block.ms={self._max_block_ms}")

    def _wait(self, is_done: Callable[[], bool]) -> None:
        began_us = self._clock.monotonic_us()
        self._driver.wait(lambda: self._is_closed or is_done(), self._max_block_ms)
        self.waited_ns += (self._clock.monotonic_us() - began_us) * 1000
        if self._is_closed:
            raise ClosedError("the producer was closed while a record waited for metadata")

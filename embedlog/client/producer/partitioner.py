"""Which partition a record goes to: by its key, or sticky when it has none.

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

from embedlog.client.arguments import partition_number
from embedlog.client.user_code import describe
from embedlog.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from embedlog.client.metadata import TopicInfo

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


class StickyPartition:
    """The partition of one topic that records without a key go to at this time.

    Not thread-safe: the accumulator calls it under its lock.
    """

    __slots__ = ("_below", "_produced_size", "_switch_size", "partition")

    def __init__(self, switch_size: int, below: Callable[[int], int]) -> None:
        """`switch_size` is batch.size; `below(n)` draws a number of [0, n)."""
        self._switch_size = max(switch_size, 1)
        self._below = below
        self._produced_size = 0
        self.partition = -1
        """-1 before the first choice."""

    def produced(self, size: int, *, batch_is_full: bool) -> bool:
        """Count `size` bytes sent to the partition; True when it is time to choose another.

        That is after batch.size bytes at the end of a batch, and after twice as many anyway.
        """
        self._produced_size += size
        limit = self._switch_size if batch_is_full else 2 * self._switch_size
        return self._produced_size >= limit

    def choose(self, available: Sequence[int], queue_sizes: Sequence[int] | None = None) -> int:
        """Choose a partition of `available`, at least one, at random.

        `queue_sizes`, when given, are batches waiting for each of them: a shorter queue is more
        likely (weight: longest + 1 - size), equal queues are equally likely.
        """
        self._produced_size = 0
        if len(available) == 1:
            self.partition = available[0]
        elif queue_sizes is None or min(queue_sizes) == max(queue_sizes):
            self.partition = available[self._below(len(available))]
        else:
            self.partition = self._weighted(available, queue_sizes)
        return self.partition

    def _weighted(self, available: Sequence[int], queue_sizes: Sequence[int]) -> int:
        longest = max(queue_sizes)
        drawn = self._below(sum(longest + 1 - size for size in queue_sizes))
        for partition, size in zip(available, queue_sizes, strict=True):
            drawn -= longest + 1 - size
            if drawn < 0:
                return partition
        raise AssertionError(f"weights of {queue_sizes} ended before the draw")

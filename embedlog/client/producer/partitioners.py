"""The partition of a record: by its key, or by the function that partitioner.class names.

With a key: murmur2, as in every Kafka client, so that all clients send a key to the same partition.
Without a key: `queues.py` chooses the partition.
partitioner.class may be

    a function      (topic, key_bytes, value_bytes) -> partition, with a `TopicInfo`; or
                    (topic, key, key_bytes, value, value_bytes) -> partition, as Kafka's, with key
                    and value before they were serialized
    an object       whose method `partition` is such a function; it may have
                    `configure(settings)` and `close()`
    a class         of such objects, called without arguments, like `RoundRobinPartitioner`
    Kafka's name    of its round robin partitioner
"""

from __future__ import annotations

from embedlog.client.arguments import partition_number
from embedlog.client.user_code import describe
from embedlog.errors import ConfigError
from embedlog.runtime.outer_call import as_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from embedlog.client.metadata import TopicInfo

    ChoosePartition = Callable[..., int]
    """Takes the topic, the serialized key and value, and the key and value before serialization."""

_SEED = 0x9747B28C
_FACTOR = 0x5BD1E995
_MASK = 0xFFFF_FFFF
POSITIVE = 0x7FFF_FFFF


def murmur2(data: bytes) -> int:
    """Return the 32-bit MurmurHash2 of `data`, unsigned, with the seed of Kafka's clients.

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
        """Return the next partition in turn; skip those without a leader if any has one."""
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
    """The user's partitioner as one function, and its `close`."""

    def __init__(self, given: Any, settings: Mapping[str, Any]) -> None:
        """Make the object if a class is given, and configure it.

        Raises:
            ConfigError: the value cannot choose a partition.
        """
        made = _BY_NAME.get(given, given) if isinstance(given, str) else given
        if isinstance(made, type):
            made = made()
        choose = getattr(made, "partition", None) or (made if callable(made) else None)
        if choose is None or isinstance(made, str):  # a str has a `partition` of its own
            raise ConfigError(
                f"partitioner.class={given!r}: must be a function "
                f"(topic, key_bytes, value_bytes) -> partition, an object or class with such a "
                f"method `partition`, or {sorted(_BY_NAME)[0]!r}"
            )
        configure = getattr(made, "configure", None)
        if configure is not None:
            configure(settings)
        self.choose: ChoosePartition = _with_all(choose, made)
        self._close = getattr(made, "close", None)

    def close(self) -> None:
        if self._close is not None:
            as_user(self._close)


def _with_all(choose: Callable[..., Any], made: Any) -> ChoosePartition:
    """Return a function of all five arguments that calls the user's function in its form."""
    name = describe(choose)

    def by_bytes(
        topic: TopicInfo,
        key: bytes | None,
        value: bytes | None,
        _key: Any = None,
        _value: Any = None,
    ) -> int:
        return partition_number(as_user(choose, topic, key, value), name, "returned partition")

    def as_kafkas(
        topic: TopicInfo, key_bytes: bytes | None, value_bytes: bytes | None, key: Any, value: Any
    ) -> int:
        chosen = as_user(choose, topic, key, key_bytes, value, value_bytes)
        return partition_number(chosen, name, "returned partition")

    if isinstance(made, RoundRobinPartitioner):
        return by_bytes
    from inspect import signature

    try:
        accepts = signature(choose)
    except (TypeError, ValueError):  # written in C, without a signature
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

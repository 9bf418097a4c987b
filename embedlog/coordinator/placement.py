"""Java's hash of a name: it chooses the partition of an internal topic for a group or a
transactional id, and it orders a `HashMap`.
"""

from __future__ import annotations

from embedlog import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from embedlog.controller.metadata import MetadataImage

_SIGN = 1 << 31
_MASK = (1 << 32) - 1
_HASH_MAP_SIZE_MIN = 16


def partition_of(key: str, partition_count: int) -> int:
    """Return the partition of `key`: the absolute value of Java's hash, modulo the count.

    >>> partition_of("my-group", 50)
    12
    """
    return _absolute(java_hash(key)) % partition_count


class Placement:
    """The partitions of one internal topic, by keys. It keeps hashes: to hash a long name takes
    microseconds.
    """

    COUNT_MAX = 100_000
    """Hashes that are kept at most."""

    def __init__(self, topic: str, metadata: Callable[[], MetadataImage]) -> None:
        self._topic = topic
        self._metadata = metadata
        self._hashes: dict[str, int] = {}

    def partition_of(self, key: str) -> int:
        """Return the partition of a key. Raise NotCoordinator while the topic does not exist."""
        topic = self._metadata().topics_by_name.get(self._topic)
        if topic is None:
            raise errors.NotCoordinator()
        found = self._hashes.get(key)
        if found is None:
            if len(self._hashes) >= self.COUNT_MAX:
                self._hashes.clear()
            found = self._hashes[key] = _absolute(java_hash(key))
        return found % len(topic.partitions)


def java_hash(text: str) -> int:
    """Return Java's `String.hashCode`: a polynomial over UTF-16 code units, as a signed 32-bit
    number.

    >>> java_hash("my-group")
    -1906497762
    """
    value = 0
    if text.isascii():
        for unit in text.encode():
            value = (31 * value + unit) & _MASK
    else:
        units = text.encode("utf-16-be", "surrogatepass")
        for high, low in zip(units[::2], units[1::2], strict=True):
            value = (31 * value + (high << 8 | low)) & _MASK
    return (value ^ _SIGN) - _SIGN


def hash_map_order(keys: Collection[str]) -> list[str]:
    """Return the keys, given in the order of their insertion, as a Java `HashMap` iterates over
    them.

    >>> hash_map_order(["sticky", "range", "b", "a"])
    ['a', 'b', 'range', 'sticky']
    """
    size = _HASH_MAP_SIZE_MIN
    while len(keys) > size * 3 // 4:
        size *= 2

    def bucket(key: str) -> int:
        value = java_hash(key) & _MASK
        return (value ^ value >> 16) & (size - 1)

    return sorted(keys, key=bucket)


def _absolute(value: int) -> int:
    """Return an int32's absolute value as Kafka does: 0 for -2**31, because +2**31 does not fit."""
    return 0 if value == -_SIGN else abs(value)

"""Which partition a record goes to: by its key, or sticky when it has none.

With a key: murmur2, as every Kafka client does it, so that one key always lands in one partition
whoever sends it. Without: one partition at a time until it got about a batch (KIP-794), which
keeps batches full.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SEED = 0x9747B28C
_FACTOR = 0x5BD1E995
_MASK = 0xFFFF_FFFF
_POSITIVE = 0x7FFF_FFFF
_CACHED_KEYS_MAX = 65_536


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


class KeyHashes:
    """The non-negative hash of keys, remembered: hashing 8 bytes takes 1 us, looking up 0.05.

    When the memory is full it is emptied; a dict that evicts one by one would cost each hit.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}

    def __call__(self, key: bytes) -> int:
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _CACHED_KEYS_MAX:
                self._known.clear()
            found = self._known[key] = murmur2(key) & _POSITIVE
        return found


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
        """Choose a partition of `available` at random.

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

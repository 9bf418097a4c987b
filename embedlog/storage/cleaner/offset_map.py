"""The last offset of each key in the dirty range, for as many keys as the memory limit allows.

The map is a dictionary of the keys themselves. Kafka keeps hashes instead, which may collide; this
map never removes a wrong record, and costs about 130 bytes more per key. When the memory is used
up, the round ends at that offset, and the next round continues there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

ENTRY_OVERHEAD = 130
"""Memory per key besides the key's bytes: the headers of two objects, and a slot in a dictionary
that has just grown. Measured with 16-byte keys: 75 in a full dictionary, 127 after it grew."""

NEVER = (1 << 63) - 1
"""The last offset of the key None: above every offset, so that no record without a key is kept."""


class OffsetMap:
    """A dictionary of the last offset of each key, with a memory limit. For one thread."""

    __slots__ = ("_latest", "_size", "_size_max")

    def __init__(self, size_max: int) -> None:
        """`is_full` is true once the map uses about `size_max` bytes."""
        self._latest: dict[bytes | None, int] = {None: NEVER}
        self._size_max = size_max
        self._size = 0

    def add(self, keys: Sequence[bytes | None], offsets: Iterable[int]) -> None:
        """Add the records of one batch. Batches come in offset order."""
        latest = self._latest
        before = len(latest)
        latest.update(zip(keys, offsets, strict=True))
        latest[None] = NEVER
        added = len(latest) - before
        if added:
            known = keys if None not in keys else [key for key in keys if key is not None]
            key_size = sum(map(len, known)) // len(known)  # type: ignore[arg-type]
            self._size += added * (key_size + ENTRY_OVERHEAD)

    @property
    def is_full(self) -> bool:
        """Return whether the memory limit is reached. `add` still works then."""
        return self._size >= self._size_max

    @property
    def latest(self) -> Callable[[bytes | None, int], int]:
        """The function `(key, default)` that returns the key's last offset, or the default."""
        return self._latest.get

    def __len__(self) -> int:
        return len(self._latest) - 1

"""Key -> offset of the last record with that key, for as many keys as a given memory holds.

A dictionary of the keys themselves: two keys never collide, so no record is lost. It costs about
130 bytes more per key than Kafka's table of hashes. When the memory is used up, compaction cleans
with the keys mapped so far, and the next round continues from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

ENTRY_OVERHEAD = 130
"""Bytes per key besides its own: the headers of two objects, and a slot of a dictionary that has
just grown. Measured with 16-byte keys: 75 when it is full, 127 after it grew."""

NEVER = (1 << 63) - 1
"""Offset of the record that would follow one without a key: none of these is ever kept."""


class OffsetMap:
    """Filled in offset order, then read. For one thread."""

    __slots__ = ("_latest", "_size", "_size_max")

    def __init__(self, size_max: int) -> None:
        """The map is full at about `size_max` bytes."""
        self._latest: dict[bytes | None, int] = {None: NEVER}
        self._size_max = size_max
        self._size = 0

    def add(self, keys: Sequence[bytes | None], offsets: Iterable[int]) -> None:
        """Note the records of one batch."""
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
        """Whether the memory is used up. `add` still works."""
        return self._size >= self._size_max

    @property
    def latest(self) -> Callable[[bytes | None, int], int]:
        """The function from a key to its offset, or to the second argument without one."""
        return self._latest.get

    def __len__(self) -> int:
        return len(self._latest) - 1

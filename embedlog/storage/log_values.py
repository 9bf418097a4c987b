"""What appends and reads return: values without behaviour."""

from __future__ import annotations

from _operator import itemgetter

TYPE_CHECKING = False


class LogAppendInfo(tuple[int, int, int, int, bool, int, int]):
    """The outcome of an append. A tuple, because every append makes one.

    `log_append_time_ms` is -1 on a CreateTime topic. A `duplicate` was not written again: its
    offsets are those of the first write. `size` is in bytes.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def first_offset(self) -> int: ...
        @property
        def last_offset(self) -> int: ...
        @property
        def log_append_time_ms(self) -> int: ...
        @property
        def log_start_offset(self) -> int: ...
        @property
        def duplicate(self) -> bool: ...
        @property
        def max_timestamp(self) -> int: ...
        @property
        def size(self) -> int: ...

    else:
        first_offset = property(itemgetter(0))
        last_offset = property(itemgetter(1))
        log_append_time_ms = property(itemgetter(2))
        log_start_offset = property(itemgetter(3))
        duplicate = property(itemgetter(4))
        max_timestamp = property(itemgetter(5))
        size = property(itemgetter(6))

    def __repr__(self) -> str:
        return (
            f"LogAppendInfo(offsets {self[0]}..{self[1]}, log_append_time_ms={self[2]}, "
            f"log_start_offset={self[3]}, duplicate={self[4]}, max_timestamp={self[5]}, "
            f"size={self[6]})"
        )


class LogRead(tuple[memoryview, int, int, int]):
    """The outcome of a read: whole batches of one segment, possibly none.

    `records` is a view of the segment's mapping: read-only, and valid for ever. The next read
    continues at `next_offset`. `records` begins at byte `position` of the segment at
    `segment_base_offset`.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def records(self) -> memoryview: ...
        @property
        def next_offset(self) -> int: ...
        @property
        def segment_base_offset(self) -> int: ...
        @property
        def position(self) -> int: ...

    else:
        records = property(itemgetter(0))
        next_offset = property(itemgetter(1))
        segment_base_offset = property(itemgetter(2))
        position = property(itemgetter(3))

    def __repr__(self) -> str:
        return (
            f"LogRead({len(self[0])} bytes, next_offset={self[1]}, "
            f"segment_base_offset={self[2]}, position={self[3]})"
        )

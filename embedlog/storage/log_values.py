"""The results of appends and reads: values without behaviour."""

from __future__ import annotations

from embedlog.common import item


class LogAppendInfo(tuple[int, int, int, int, bool, int, int]):
    """The outcome of an append. A tuple, because every append makes one.

    `log_append_time_ms` is -1 on a CreateTime topic. A `duplicate` was not written again: it has
    the offsets of the first write. `size` is in bytes.
    """

    __slots__ = ()

    first_offset: int = item(0)
    last_offset: int = item(1)
    log_append_time_ms: int = item(2)
    log_start_offset: int = item(3)
    duplicate: bool = item(4)
    max_timestamp: int = item(5)
    size: int = item(6)

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

    records: memoryview = item(0)
    next_offset: int = item(1)
    segment_base_offset: int = item(2)
    position: int = item(3)

    def __repr__(self) -> str:
        return (
            f"LogRead({len(self[0])} bytes, next_offset={self[1]}, "
            f"segment_base_offset={self[2]}, position={self[3]})"
        )

"""When a segment is done, and the next one begins: by its size, its age and its index."""

from __future__ import annotations

from embedlog.storage.segments.indexes.offset import ENTRY_SIZE, RELATIVE_OFFSET_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.storage.log_config import LogConfig


class RollLimits:
    """How far one segment takes batches without asking `is_reached`. Requires: the partition lock.

    Everything is asked when a batch passes one of `size_max`, `offset_max` and `time_max`: of a
    thousand appends one is.
    """

    __slots__ = ("created_ms", "first_timestamp", "offset_max", "size_max", "time_max")

    def __init__(self, created_ms: int) -> None:
        self.created_ms = created_ms
        """Wall time: the age of a segment whose records have no timestamps."""
        self.first_timestamp = -1
        """Largest timestamp of the first batch, -1 when there is none: the age of a roll."""
        self.size_max = self.offset_max = self.time_max = -1

    def forget(self) -> None:
        """Ask at the next batch: the configuration has changed."""
        self.time_max = -1

    def is_reached(
        self,
        config: LogConfig,
        age_max: int,
        *,
        base_offset: int,
        position: int,
        size: int,
        last_offset: int,
        latest: int,
        now_ms: int,
        entry_count: int,
    ) -> bool:
        """Whether a batch of `size` bytes at `position` needs a new segment.

        If not, note what fits without asking again. `age_max` is in milliseconds; the segment's
        offset index has `entry_count` entries, `latest` is the batch's largest timestamp.
        """
        if last_offset > base_offset + RELATIVE_OFFSET_MAX:
            return True
        first = self.first_timestamp
        # The time index has entries half as large again, and at most as many.
        room = config.segment_index_bytes // ENTRY_SIZE * 2 // 3
        if position:
            waited = latest - first if first >= 0 and latest >= 0 else now_ms - self.created_ms
            room -= entry_count
            if position + size > config.segment_bytes or waited > age_max or room <= 0:
                return True
        # The index cannot be full before: between two entries there is more than the interval.
        filled_size = position + (room - 1) * config.index_interval_bytes
        self.size_max = min(config.segment_bytes, filled_size)
        self.offset_max = base_offset + RELATIVE_OFFSET_MAX
        self.time_max = first + age_max if first >= 0 else -1
        return False

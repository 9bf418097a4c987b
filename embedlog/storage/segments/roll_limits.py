"""When a segment is full and the next one begins: by size, age and index."""

from __future__ import annotations

from embedlog.storage.segments.indexes.offset import ENTRY_SIZE, RELATIVE_OFFSET_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.storage.log_config import LogConfig


class RollLimits:
    """Limits up to which a segment certainly takes another batch.

    `is_reached` must decide only about a batch that passes `size_max`, `offset_max` or `time_max`:
    about one append in a thousand. Requires: the partition lock.
    """

    __slots__ = ("created_ms", "first_timestamp", "offset_max", "size_max", "time_max")

    def __init__(self, created_ms: int) -> None:
        self.created_ms = created_ms
        """Wall time of creation, from which the age counts if records have no timestamps."""
        self.first_timestamp = -1
        """Largest timestamp of the first batch, from which the age counts; -1 if it has none."""
        self.size_max = self.offset_max = self.time_max = -1

    def forget(self) -> None:
        """Let `is_reached` decide about the next batch: the configuration has changed."""
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

        If not, set the limits up to which `is_reached` need not be called. `age_max` is in
        milliseconds. The segment's offset index has `entry_count` entries; `latest` is the batch's
        largest timestamp.
        """
        if last_offset > base_offset + RELATIVE_OFFSET_MAX:
            return True
        first = self.first_timestamp
        # The limit holds for the time index as well: an entry is 1.5 times as large as an entry of
        # the offset index, and there are at most as many.
        room = config.segment_index_bytes // ENTRY_SIZE * 2 // 3
        if position:
            waited = latest - first if first >= 0 and latest >= 0 else now_ms - self.created_ms
            room -= entry_count
            if position + size > config.segment_bytes or waited > age_max or room <= 0:
                return True
        # The index cannot be full at a smaller size: entries are more than the interval apart.
        filled_size = position + (room - 1) * config.index_interval_bytes
        self.size_max = min(config.segment_bytes, filled_size)
        self.offset_max = base_offset + RELATIVE_OFFSET_MAX
        self.time_max = first + age_max if first >= 0 else -1
        return False

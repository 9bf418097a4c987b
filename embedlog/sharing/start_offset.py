"""The first offset of a share group in a partition without a stored start."""

from __future__ import annotations

from embedlog import errors
from embedlog.config.types import duration_ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.replication.partition import Partition

_BY_DURATION = "by_duration:"


def start_offset(partition: Partition, reset: str, now_ms: int) -> int:
    """Return the first offset by share.auto.offset.reset; `now_ms` is wall time.

    Raises:
        OffsetNotAvailable: no record is as new as by_duration demands.
    """
    offsets = partition.log.offsets
    if reset == "earliest":
        return offsets.log_start_offset
    if not reset.startswith(_BY_DURATION):
        return offsets.high_watermark
    duration = duration_ms(reset.removeprefix(_BY_DURATION))
    assert duration is not None, reset
    found = partition.log.reader.fetch_offset(
        max(0, now_ms - duration), end_offset=offsets.high_watermark
    )
    if found is None:
        raise errors.OffsetNotAvailable()
    return found[1]

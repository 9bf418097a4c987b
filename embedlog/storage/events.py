"""What the storage logs: recoveries, failures, deletions. `Log` is another thing here."""

from __future__ import annotations

from embedlog import logs
from embedlog.storage.degradation import CUT, Degradation
from embedlog.storage.recovery.torn_write import content_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import TopicPartition
    from embedlog.errors import CorruptRecord
    from embedlog.storage.log import Log
    from embedlog.storage.segment import Segment

events = logs.Log("storage")

_REFUSAL_INTERVAL_MS = 10_000


def write_refused(
    topic_partition: TopicPartition, error: OSError, now_ms: int, tell_from_ms: int
) -> int:
    """The disk took no write, though it may take the next. Returns when to tell of it again."""
    if now_ms < tell_from_ms:
        return tell_from_ms
    events.error("%s: the disk refused a write: %s", topic_partition, error)
    return now_ms + _REFUSAL_INTERVAL_MS


def poisoned(topic_partition: TopicPartition, error: Exception) -> None:
    """The log takes no more writes."""
    events.error("%s refuses writes from here on: %s", topic_partition, error, exc_info=error)


def cut(
    topic_partition: TopicPartition,
    error: CorruptRecord,
    segment: Segment,
    later: list[Segment],
    *,
    wall_ms: int,
) -> tuple[int, Degradation]:
    """Recovery cuts a log at the end of `segment`: how many bytes it takes out, and the news."""
    size = content_size(segment.view(segment.size, segment.capacity))
    size += sum(content_size(each.view(0, each.capacity)) for each in later)
    reason = (
        f"cut at offset {segment.next_offset}: {size} bytes in {1 + len(later)} segments were put "
        f"aside ({segment.directory}/*.quarantine): {error}"
    )
    events.warning("%s was %s", topic_partition, reason)
    return size, Degradation(CUT, str(topic_partition), since_ms=wall_ms, reason=reason)


def opened(log: Log, *, recovered: bool) -> None:
    """A log is ready, or as ready as it can be."""
    if log.failure is not None:
        events.error(
            "%s is damaged: it is served up to offset %d and refuses writes: %s",
            log.topic_partition,
            log.log_end_offset,
            log.failure,
        )
    elif recovered:
        events.info(
            "%s was recovered after an unclean shutdown: offsets %d to %d in %d segments",
            log.topic_partition,
            log.log_start_offset,
            log.log_end_offset,
            len(log.segments),
        )

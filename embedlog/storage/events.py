"""What the storage logs: recoveries, failures, deletions. `Log` is another thing here."""

from __future__ import annotations

from embedlog import logs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import TopicPartition
    from embedlog.errors import CorruptRecord
    from embedlog.storage.log import Log
    from embedlog.storage.segment import Segment

events = logs.Log("storage")

_REFUSAL_INTERVAL_MS = 10_000
_STEP_SIZE = 1 << 20


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
    topic_partition: TopicPartition, error: CorruptRecord, segment: Segment, later: list[Segment]
) -> int:
    """Recovery cuts a log at the end of `segment`. Returns how many bytes are taken out."""
    size = _content_size(segment.view(segment.size, segment.capacity))
    size += sum(_content_size(each.view(0, each.capacity)) for each in later)
    events.warning(
        "%s was cut at offset %d: %d bytes in %d segments were put aside (%s/*.quarantine): %s",
        topic_partition,
        segment.next_offset,
        size,
        1 + len(later),
        segment.directory,
        error,
    )
    return size


def _content_size(view: memoryview) -> int:
    """Bytes up to the last one that is not 0: a file is extended with zeros in advance."""
    end = len(view)
    while end:
        start = max(0, end - _STEP_SIZE)
        found = len(bytes(view[start:end]).rstrip(b"\0"))
        if found:
            return start + found
        end = start
    return 0


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

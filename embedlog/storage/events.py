"""Log lines of storage: recoveries, failures, deletions."""

from __future__ import annotations

from embedlog.logger import Logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import TopicPartition

events = Logger("storage")

_REFUSAL_INTERVAL_MS = 10_000


def write_refused(
    topic_partition: TopicPartition, error: OSError, now_ms: int, tell_from_ms: int
) -> int:
    """Log that the disk refused a write, at most once in 10 s; return when to log it again."""
    if now_ms < tell_from_ms:
        return tell_from_ms
    events.error("%s: the disk refused a write: %s", topic_partition, error)
    return now_ms + _REFUSAL_INTERVAL_MS


def records_refused(
    topic_partition: TopicPartition, error: Exception, now_ms: int, tell_from_ms: int
) -> int:
    """Log that a limit refused records, at most once in 10 s; return when to log it again."""
    if now_ms < tell_from_ms:
        return tell_from_ms
    events.warning("records for %s were refused: %s", topic_partition, error)
    return now_ms + _REFUSAL_INTERVAL_MS


def poisoned(topic_partition: TopicPartition, error: Exception) -> None:
    """Log that a log refuses all further writes."""
    events.error("%s refuses writes from here on: %s", topic_partition, error, exc_info=error)

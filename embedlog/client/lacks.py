"""The reasons why metadata names no leader of a partition."""

from __future__ import annotations

from embedlog import errors
from wire.error_codes import ErrorCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.client.metadata import Metadata
    from embedlog.errors import KafkaError


def lack_of(metadata: Metadata, topic: str, partition: int) -> KafkaError | None:
    """Return the reason; None before the first answer, or if there is a leader."""
    info = metadata.topics.get(topic)
    if info is None:
        return metadata.errors.get(topic) or metadata.last_error
    count = len(info.partitions)
    if partition >= count:
        return errors.UnknownTopicOrPartition(
            f"there is no partition {topic}-{partition}: topic {topic!r} has {count} partitions"
        )
    if metadata.leader(topic, partition) is not None:
        return None
    return errors.LeaderNotAvailable(f"{topic}-{partition} has no leader")


def is_missing(metadata: Metadata, topic: str, partition: int, *, since: int) -> bool:
    """Return whether an answer later than number `since` says that there is no such partition."""
    if metadata.answer_count <= since:
        return False
    lack = lack_of(metadata, topic, partition)
    return lack is not None and lack.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

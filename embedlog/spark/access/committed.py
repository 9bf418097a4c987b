"""Committed offsets of a data directory, read from the log of `__consumer_offsets`."""

from __future__ import annotations

from typing import NamedTuple

from embedlog.common import TopicPartition
from embedlog.coordinator.records import GROUP_RECORD_TYPES, RecordFormat
from embedlog.reader.reader import LogDirectoryReader
from embedlog.topic_names import OFFSETS_TOPIC
from wire.schemas.group_metadata import OffsetCommitKey


class CommittedOffset(NamedTuple):
    """The offset that one group has committed for one partition."""

    group: str
    topic_partition: TopicPartition
    offset: int
    leader_epoch: int
    metadata: str
    timestamp: int
    """Time of the commit in milliseconds."""


def committed_offsets(reader: LogDirectoryReader) -> list[CommittedOffset]:
    """Return the committed offsets of all groups, sorted by group, topic and partition.

    Offsets of open transactions are left out.

    Raises:
        CorruptRecord: the log of `__consumer_offsets` is damaged, so the offsets are unknown.
    """
    found: dict[tuple[str, TopicPartition], CommittedOffset] = {}
    decode = RecordFormat(GROUP_RECORD_TYPES).decode
    for number in reader.partitions(OFFSETS_TOPIC):
        for record in reader.partition(OFFSETS_TOPIC, number).records(
            isolation_level="read_committed"
        ):
            if record.key is None:
                continue
            decoded = decode(record.key, record.value)
            if decoded is None or not isinstance(decoded.key, OffsetCommitKey):
                continue
            key, value = decoded.key, decoded.value
            place = (key.group, TopicPartition(key.topic, key.partition))
            if value is None:
                found.pop(place, None)
            else:
                found[place] = CommittedOffset(
                    *place, value.offset, value.leader_epoch, value.metadata, value.commit_timestamp
                )
    return [found[place] for place in sorted(found)]

"""From a committed offset to its record, in the value version that Kafka chooses.

an expiry time of its own    1    the only version that has room for it
otherwise                    4    with the topic's id
"""

from __future__ import annotations

from embedlog.coordinator.result import CoordinatorRecord
from wire.schemas.group_metadata import OffsetCommitKey, OffsetCommitValue

_VERSION = 4
_VERSION_WITH_EXPIRY = 1
_NO_EXPIRY = -1


def offset_record(
    group_id: str, topic: str, partition: int, value: OffsetCommitValue
) -> CoordinatorRecord:
    """The record of one committed offset."""
    version = _VERSION if value.expire_timestamp == _NO_EXPIRY else _VERSION_WITH_EXPIRY
    return CoordinatorRecord(_key(group_id, topic, partition), value, version)


def offset_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    """The record that deletes a committed offset."""
    return CoordinatorRecord(_key(group_id, topic, partition))


def _key(group_id: str, topic: str, partition: int) -> OffsetCommitKey:
    return OffsetCommitKey(group=group_id, topic=topic, partition=partition)

"""Committing offsets of a group from outside, and deleting records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from embedlog.errors import ConfigError, OffsetOutOfRange
from embedlog.testing.topics.transactions import CLIENT_ID

if TYPE_CHECKING:
    from embedlog.testing.topics.logs import Logs


def commit_offsets(
    logs: Logs, group: str, offsets: Mapping[tuple[str, int], Any], *, beyond_end: bool
) -> None:
    """Store offsets for a group: see `Kafka.commit`."""
    if not isinstance(offsets, Mapping) or not offsets:
        raise ConfigError(f'offsets {offsets!r}: expected a dict, such as {{("t", 0): 5}}')
    for place, stored in offsets.items():
        if not isinstance(place, tuple) or len(place) != 2:
            raise ConfigError(f"offsets: {place!r} is no pair of topic and partition")
        topic, index = place
        logs.check_partition(topic, index)
        offset = getattr(stored, "offset", stored)
        if type(offset) is not int or offset < 0:
            raise ConfigError(f"offsets: {place}: {stored!r} is no offset")
        end = logs.leader(topic, index)[1].log.log_end_offset
        if offset > end and not beyond_end:
            raise OffsetOutOfRange(
                f"partition {index} of {topic!r} ends at offset {end}, before {offset}; "
                "beyond_end=True commits it all the same"
            )
    with logs.cluster.admin(client_id=CLIENT_ID) as admin:
        admin.alter_group_offsets(group, offsets).check()


def delete_before(logs: Logs, topic: str, before: int | Mapping[int, int]) -> dict[int, int]:
    """Delete records below an offset; return each partition's first offset."""
    partitions = range(logs.partition_count(topic))
    given = before if isinstance(before, Mapping) else dict.fromkeys(partitions, before)
    wanted = {}
    for index, offset in given.items():
        logs.check_partition(topic, index)
        if type(offset) is not int or offset < -1:
            raise ConfigError(f"before={before!r}: expected an offset, or -1 for all records")
        if not isinstance(before, Mapping) and offset >= 0:
            # One number for all partitions: a shorter partition loses all its records.
            offset = min(offset, logs.leader(topic, index)[1].log.offsets.high_watermark)
        wanted[topic, index] = offset
    with logs.cluster.admin(client_id=CLIENT_ID) as admin:
        found = admin.delete_records(wanted).check()
    return {place.partition: offset for place, offset in found.items()}

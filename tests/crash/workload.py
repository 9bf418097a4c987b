"""The records of killed writers: topic and offset determine the bytes of a record.

    log       idempotent producer; delete_records keeps it short
    sized     plain producer; retention.bytes keeps it short
    keyed     plain producer; compaction keeps it short; some values are tombstones
    shared    two threads and one producer, so that they share syncs; the value names the writer
    made-N    created and deleted all the time

A topic with one writer holds exactly one possible record at each offset: a lost, altered, invented,
doubled or misplaced record shows at once.
"""

from __future__ import annotations

import random
from typing import NamedTuple

SEGMENT_SIZE = 1 << 20
RETENTION_SIZE = 2 << 20
KEY_COUNT = 50
_TOMBSTONE_EVERY = 41
_SIZES = (10, 10, 10, 100, 100, 100, 1_000, 5_000, 20_000, 60_000)
_NOISE = random.Random(7).randbytes(1 << 18)

LOG, SIZED, KEYED, SHARED = "log", "sized", "keyed", "shared"
GROUPS = ("group-0", "group-1", "group-2", "group-3")
MADE = ("made-0", "made-1", "made-2")

_COMMON = {"segment.bytes": str(SEGMENT_SIZE), "file.delete.delay.ms": "20", "retention.ms": "-1"}
TOPICS: dict[str, dict[str, str]] = {
    LOG: _COMMON,
    SIZED: {**_COMMON, "retention.bytes": str(RETENTION_SIZE)},
    KEYED: {**_COMMON, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
    SHARED: {**_COMMON, "retention.bytes": str(RETENTION_SIZE)},
}
"""The permanent topics, and the settings that they must have."""

CHANGED_SETTING = "max.compaction.lag.ms"
"""The setting of the first topic that is changed all the time; it changes nothing else."""

BROKER = {
    # A producer that asks for the metadata of a deleted topic would create it again.
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.segment.bytes": str(SEGMENT_SIZE),
    "log.initial.task.delay.ms": "5",
    "log.retention.check.interval.ms": "20",
    "log.cleaner.backoff.ms": "5",
}


class Content(NamedTuple):
    """Key and value of a record."""

    key: bytes | None
    value: bytes | None


def content(topic: str, number: int) -> Content:
    """Return record `number` of a topic; with one writer, the number is its offset."""
    key = b"key-%d" % (number % KEY_COUNT) if topic == KEYED else None
    if topic == KEYED and number % _TOMBSTONE_EVERY == 0:
        return Content(key, None)
    mixed = number * 2654435761 & 0xFFFFFFFF
    size = _SIZES[(mixed >> 8) % len(_SIZES)]
    start = mixed % (len(_NOISE) - size)
    return Content(key, b"%s|%d|" % (topic.encode(), number) + _NOISE[start : start + size])


def number_in(topic: str, value: bytes | None) -> int:
    """Return the number in a value; -1 if the value is not of this topic."""
    parts = (value or b"").split(b"|", 2)
    if len(parts) < 3 or parts[0] != topic.encode() or not parts[1].isdigit():
        return -1
    return int(parts[1])

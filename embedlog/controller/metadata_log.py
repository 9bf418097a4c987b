"""The metadata log: every change of the cluster's state, in the format of any other log.

It is partition 0 of `__cluster_metadata`, in the data directory beside the topics' logs. One change
is one batch, so a crash leaves all of it or nothing. On disk a change is synced before it is
published, whatever the durability level of the topics: if a crash could remove a topic, it would
take synced records with it.
"""

from __future__ import annotations

import wire
from embedlog.common import TopicPartition
from embedlog.controller.metadata import MetadataImage
from embedlog.controller.metadata_records import FRAME_VERSION, RECORDS, RemoveTopicRecord
from embedlog.controller.replay import ImageBuilder, snapshot
from embedlog.errors import KafkaStorageError
from embedlog.storage.log.checked_read import read_checked
from embedlog.storage.validation.origin import AppendOrigin
from embedlog.topic_names import METADATA_TOPIC
from wire.interpreter import interpret
from wire.primitives import read_uvarint, uvarint
from wire.records import build_batch
from wire.schema import declaration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from embedlog.runtime import Clock
    from embedlog.storage.log.log import Log
    from wire.records.batch import RecordBatch
    from wire.records.legacy import LegacyBatch

METADATA_PARTITION = TopicPartition(METADATA_TOPIC, 0)
LOG_SETTINGS: dict[str, object] = {
    "cleanup_policy": "delete",
    "retention_ms": -1,
    "retention_bytes": -1,
    "max_message_bytes": 2**31 - 1,
    "segment_bytes": 8 << 20,
}
"""Settings of the log. No retention: only a snapshot shortens the log."""

ROOM_SIZE = 4 << 10
"""Size reserved behind the last record, enough for some 80 deletions of topics."""
SNAPSHOT_RECORD_COUNT_MIN = 1000
"""A shorter log is never rewritten: replaying this many records takes some 10 ms."""


class MetadataLog:
    """Appends records and replays them. Requires: the controller lock, except for `replay`."""

    def __init__(self, log: Log, clock: Clock, *, sync: bool) -> None:
        self._log = log
        self._clock = clock
        self._sync = sync
        self.removed_topic_ids: set[bytes] = set()
        """Ids of topics deleted in the replayed log: a crash may have left their data behind."""

    @property
    def end_offset(self) -> int:
        return self._log.log_end_offset

    def replay(self, image: MetadataImage) -> MetadataImage:
        """Apply the whole log to `image`, which holds the brokers that are in no log.

        Raises:
            CorruptRecord: the log is damaged, or holds records unknown to `metadata_records`.
        """
        builder = ImageBuilder(image)
        start = self._log.offsets.log_start_offset
        for checked in read_checked(self._log):
            try:
                for record in _records(checked.batch, start):
                    builder.apply(record)
                    if isinstance(record, RemoveTopicRecord):
                        self.removed_topic_ids.add(record.topic_id)
            except (ValueError, KeyError) as error:
                # The bytes are intact, so records before them must be missing.
                raise checked.corrupt(f"{type(error).__name__}: {error}") from error
        return builder.build(self.end_offset)

    def append(self, records: Sequence[Any]) -> int:
        """Write one change, synced on disk; return the offset after it.

        Raises:
            KafkaStorageError: the disk refuses. Either the change is not in the log, or the log
                takes no more writes: the next open must not find a refused change.
        """
        values = [_encode(record) for record in records]
        batch = build_batch(values, timestamps=self._clock.wall_ms())
        log = self._log
        with log.lock:
            if self._sync:
                # Sync the segment's file name first: after that, only a broken disk can make the
                # sync of the records fail.
                log.durability.sync_name(log.segments[-1])
            log.append_as_leader(
                batch,
                leader_epoch=0,
                origin=AppendOrigin.COORDINATOR,
                now_ms=self._clock.wall_ms(),
            )
        return self.commit()

    def commit(self) -> int:
        """Sync and commit the written records; return the offset after them.

        Raises KafkaStorageError as `append` does.
        """
        log = self._log
        with log.lock:
            log.check_usable()
            end = log.log_end_offset
        if self._sync:
            try:
                log.durability.sync(end)
            except KafkaStorageError as error:
                raise log.health.poison(error) from error
        with log.lock:
            log.offsets.commit(self._sync)
            if self._sync:
                # Deleting a topic writes a record, even on a full disk: reserve room for it.
                active = log.segments[-1]
                active.file.keep_room(active.size, ROOM_SIZE)
        return end

    def needs_snapshot(self, image: MetadataImage) -> bool:
        """Return whether the log is much longer than a snapshot of `image`."""
        count = self._log.log_end_offset - self._log.offsets.log_start_offset
        return count >= SNAPSHOT_RECORD_COUNT_MIN and count > 4 * len(snapshot(image))

    def rewrite(self, image: MetadataImage) -> int:
        """Write a snapshot of `image` in one batch and drop earlier records; return the end offset.

        After a crash before the log start moves, the old records precede the snapshot; the first
        record of the snapshot voids them.
        """
        with self._log.lock:
            self._log.roll()
            start = self._log.log_end_offset
        end = self.append(snapshot(image))
        with self._log.lock:
            self._log.offsets.increment_log_start_offset(start)
        return end


def _records(batch: RecordBatch | LegacyBatch, start: int) -> Iterator[Any]:
    """Yield a batch's records from offset `start` on. Raise ValueError for a malformed record."""
    for record in batch.records():
        if record.offset >= start:
            yield decode(bytes(record.value or b""))


def decode(value: bytes) -> Any:
    """Decode a metadata record. Raise ValueError if it is malformed."""
    frame, position = read_uvarint(value, 0)
    record_type, position = read_uvarint(value, position)
    version, position = read_uvarint(value, position)
    cls = RECORDS.get(record_type)
    if frame != FRAME_VERSION or cls is None:
        raise wire.MalformedMessage(f"frame {frame}, record type {record_type}")
    return wire.decode(cls, version, value, position)


def _encode(record: Any) -> bytes:
    declared = declaration(type(record))
    version = declared.last_version
    assert declared.record_type is not None, record
    header = uvarint(FRAME_VERSION) + uvarint(declared.record_type) + uvarint(version)
    return header + interpret(record, version)

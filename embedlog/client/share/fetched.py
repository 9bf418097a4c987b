"""`FetchedPartition`: a leader's answer for one partition, handed out batch by batch.

The answer has whole batches of the log, and the ranges of offsets that this member has acquired.
Only records in these ranges are handed out. An acquired offset without a record is a gap: it was
compacted away, or belongs to a control batch.
"""

from __future__ import annotations

from embedlog.client.errors import RecordUnreadable
from embedlog.client.share.acknowledge_type import AcknowledgeType
from embedlog.client.share.record import ShareRecord
from embedlog.runtime.outer_call import as_user
from wire.records import RecordBatch, RecordsError, iter_batches
from wire.records.decode.choose import rows
from wire.records.decode.rows import rows_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from embedlog.client.serializers import Converter
    from embedlog.common import TopicPartition
    from wire.records.decode.rows import Rows
    from wire.records.legacy import LegacyBatch
    from wire.schemas.share_fetch import PartitionData

    Converters = tuple[Converter | None, Converter | None]
    AcquiredRange = tuple[int, int, int]
    """First offset, last offset, delivery count."""

_LAST = 2**63 - 1
_ADVICE = "acknowledge_offset can replace the acknowledgement that the client chose: {}"


class Unreadable:
    """Records that cannot be handed out, and how the client acknowledges them."""

    __slots__ = ("error", "kind", "offsets")

    def __init__(self, error: RecordUnreadable, offsets: list[int], kind: int) -> None:
        self.error = error
        self.offsets = offsets
        self.kind = kind


class FetchedPartition:
    """The acquired records of one partition. `take` hands them out."""

    def __init__(
        self,
        key: TopicPartition,
        topic_id: bytes,
        node_id: int,
        data: PartitionData,
        *,
        check_crcs: bool,
    ) -> None:
        self.key = key
        self.topic_id = topic_id
        self.node_id = node_id
        self._acquired: list[AcquiredRange] = sorted(
            (each.first_offset, each.last_offset, each.delivery_count)
            for each in data.acquired_records
        )
        self._data = memoryview(data.records or b"")
        """The batches that were not begun."""
        self._check_crcs = check_crcs
        self._position = 0
        """The batches up to this offset were handed out."""
        self._rows: Iterator[ShareRecord] = iter(())
        """The records of the current batch that were not handed out."""
        self.gaps: list[int] = []
        """Acquired offsets without a record, for the caller to take."""
        self.is_drained = False

    def left(self) -> list[int]:
        """Return the acquired offsets that were not handed out. The object is drained after it."""
        left = [record.offset for record in self._rows]
        left += _offsets(self._within(self._position, _LAST))
        self._position, self.is_drained = _LAST, True
        return left

    def take(self, converters: Converters) -> tuple[list[ShareRecord], Unreadable | None]:
        """Return the records of the next batch, maybe none.

        If a record is unreadable, return the records before it, and what to do about it. The next
        call goes on after it.
        """
        found: list[ShareRecord] = []
        failure = self._hand_out(converters, found)
        if failure is None and not found:
            failure = self._begin_batch() or self._hand_out(converters, found)
        return found, failure

    def _hand_out(self, converters: Converters, found: list[ShareRecord]) -> Unreadable | None:
        """Append the records of the current batch to `found`, up to an unreadable one."""
        if converters == (None, None):
            found += self._rows
            return None
        for record in self._rows:
            try:
                found.append(_converted(record, converters))
            except RecordUnreadable as error:
                return Unreadable(error, [record.offset], AcknowledgeType.RELEASE)
        return None

    def _begin_batch(self) -> Unreadable | None:
        """Decode the next batch that has acquired offsets, into `_rows`.

        If Ctrl-C comes meanwhile, the next call decodes the batch again.
        """
        try:
            batch = next(iter_batches(self._data), None)
        except RecordsError as error:
            # The rest of the answer is unreadable. Another delivery may be sound.
            return self._unreadable(self.left(), str(error), AcknowledgeType.RELEASE)
        if batch is None:
            self.gaps += self.left()
            return None
        first, end = max(batch.base_offset, self._position), batch.next_offset
        gaps = _offsets(self._within(self._position, first))
        acquired = self._within(first, end)
        chosen: Iterator[ShareRecord] = iter(())
        failure: Unreadable | None = None
        if acquired:
            try:
                chosen = iter(self._chosen(batch, self._decode(batch), acquired, gaps))
            except RecordsError as error:
                text = str(error)
                failure = self._unreadable(_offsets(acquired), text, AcknowledgeType.REJECT)
        left, position = self._data[len(batch.buffer) :], max(end, self._position)
        # No call and no jump comes between these assignments, so that no signal does.
        self._data, self._position, self._rows = left, position, chosen
        self.gaps += gaps
        return failure

    def _decode(self, batch: RecordBatch | LegacyBatch) -> Rows:
        if self._check_crcs:
            batch.check_crc()
        if not isinstance(batch, RecordBatch):
            return rows_of(list(batch.records()))
        return rows_of(()) if batch.is_control else rows(batch)

    def _chosen(
        self,
        batch: RecordBatch | LegacyBatch,
        decoded: Rows,
        acquired: list[AcquiredRange],
        gaps: list[int],
    ) -> list[ShareRecord]:
        """Return the acquired records of a batch, and add the offsets between them to `gaps`."""
        head = (*self.key, batch.partition_leader_epoch, batch.timestamp_type)
        ranges = iter(acquired)
        first, last, count = next(ranges)
        chosen: list[ShareRecord] = []
        for row in decoded:
            offset = row[0]
            while offset > last:
                gaps += range(first, last + 1)
                following = next(ranges, None)
                if following is None:
                    return chosen
                first, last, count = following
            if offset >= first:
                gaps += range(first, offset)
                first = offset + 1
                fields: Any = (*head, *row, count)
                chosen.append(ShareRecord(fields))
        gaps += range(first, last + 1)
        gaps += _offsets(ranges)
        return chosen

    def _within(self, start: int, end: int) -> list[AcquiredRange]:
        """Return the parts of the acquired ranges in [start, end)."""
        return [
            (max(first, start), min(last, end - 1), count)
            for first, last, count in self._acquired
            if last >= start and first < end
        ]

    def _unreadable(self, offsets: list[int], reason: str, kind: int) -> Unreadable | None:
        if not offsets:
            return None
        return Unreadable(_unreadable(self.key, offsets[0], reason, kind), offsets, kind)


def _offsets(ranges: Iterator[AcquiredRange] | list[AcquiredRange]) -> list[int]:
    return [offset for first, last, _ in ranges for offset in range(first, last + 1)]


def _unreadable(key: tuple[str, int], offset: int, reason: str, kind: int) -> RecordUnreadable:
    chosen = "RELEASE" if kind == AcknowledgeType.RELEASE else "REJECT"
    return RecordUnreadable(*key, offset, reason, advice=_ADVICE.format(chosen))


def _converted(record: ShareRecord, converters: Converters) -> ShareRecord:
    """Return the deserialized record.

    Raises:
        RecordUnreadable: a deserializer refused it.
    """
    for_key, for_value = converters
    *head, key, value, headers, count = record
    topic = record.topic
    step = for_key
    try:
        if for_key is not None and key is not None:
            key = as_user(for_key.for_topic(topic), key)
        step = for_value
        if for_value is not None and value is not None:
            value = as_user(for_value.for_topic(topic), value)
    except Exception as error:
        assert step is not None, record
        reason = f"the deserializer says {error!r} ({step.setting} {step.name})"
        place = topic, record.partition
        raise _unreadable(place, record.offset, reason, AcknowledgeType.RELEASE) from error
    return ShareRecord((*head, key, value, headers, count))

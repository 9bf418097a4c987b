"""`HandOut`: makes results of `poll`, `poll_batches` and `poll_columns` from buffered fetches."""

from __future__ import annotations

from embedlog.client.consumer.record import (
    JOINED_SIZE_MAX,
    ConsumerRecord,
    ConsumerRecords,
    PolledBatch,
    PolledColumns,
    RecordChunk,
)
from embedlog.client.consumer.subscription_state import FetchState
from embedlog.client.errors import RecordUnreadable
from embedlog.client.parse_settings import close_converters, converters
from embedlog.runtime.outer_call import as_user

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.client.consumer.completed_fetch import CompletedFetch
    from embedlog.client.consumer.fetch_buffer import FetchBuffer
    from embedlog.client.consumer.parts import ConsumerParts
    from embedlog.client.consumer.record import Chunk
    from embedlog.common import TopicPartition
    from wire.records.decode.rows import Rows


class HandOut:
    """Takes records from the buffer and moves positions past them. Used by one thread at a time."""

    def __init__(self, parts: ConsumerParts, buffer: FetchBuffer) -> None:
        self._buffer = buffer
        self._counts = parts.counts
        self._key_of, self._value_of = converters(parts.settings, "deserializer")
        self._current: CompletedFetch | None = None
        """The fetch that records were last taken from; None once it is drained."""
        self._moved = False
        """True if the last call skipped batches that have no records for the application."""

    def records(self, count_max: int) -> ConsumerRecords | None:
        """Return up to `count_max` buffered records, or None.

        If the positions moved only past markers or aborted records, the result is empty, not None.

        Raises:
            RecordUnreadable: the next record is damaged or a deserializer refused it.
            KafkaError: a broker refused a fetch.
        """
        found: dict[TopicPartition, list[Chunk]] = {}
        decodes = self._key_of is not None or self._value_of is not None
        count = 0
        fetch = chunk = None
        try:
            for at, taken in self._rows(count_max, several=True):
                if at is not fetch:
                    fetch, chunk = at, None
                    chunks = found.setdefault(at.state.topic_partition, [])
                if decodes:
                    decoded: list[ConsumerRecord] = []
                    chunks.append(decoded)
                    try:
                        self._decode(at, taken, decoded)
                    finally:
                        count += len(decoded)  # a failed record is not in it: it was given back
                    continue
                size = len(taken.offsets)
                count += size
                head = at.head
                if chunk is None or chunk.head != head or size > JOINED_SIZE_MAX:
                    chunk = RecordChunk(head)
                    chunks.append(chunk)
                chunk.add(taken, size)
        except RecordUnreadable:
            # Return the records before the unreadable one; the next poll raises.
            found = {key: chunks for key, chunks in found.items() if any(chunks)}
            if not found:
                raise
        self._counts["records-consumed-total"] += count
        return ConsumerRecords(found) if found or self._moved else None

    def next_record(self) -> ConsumerRecord | None:
        """Return the next record of the current batch; None if the caller must use `records`.

        Raises:
            RecordUnreadable: a deserializer refused the record.
        """
        fetch = self._current
        if (
            fetch is None
            or self._buffer.errors
            or self._buffer.is_stale(fetch)
            or not fetch.state.is_fetchable
        ):
            return None
        if self._key_of is None and self._value_of is None:
            record = fetch.take_next()
        elif fetch.is_inside_batch:
            decoded: list[ConsumerRecord] = []
            self._decode(fetch, fetch.take(1), decoded)
            (record,) = decoded
        else:
            record = None
        if record is not None:
            self._counts["records-consumed-total"] += 1
        return record

    def batches(self, count_max: int) -> list[PolledBatch] | None:
        """Like `records`, but return plain tuples, grouped by record batch."""
        found: list[PolledBatch] = []
        count = 0
        try:
            for fetch, taken in self._rows(count_max, several=False):
                count += len(taken.offsets)
                _, _, epoch, timestamp_type = fetch.head
                key = fetch.state.topic_partition
                found.append(PolledBatch(key, epoch, timestamp_type, taken))
        except RecordUnreadable:
            if not found:
                raise
        self._counts["records-consumed-total"] += count
        return found if found or self._moved else None

    def columns(self, count_max: int) -> list[PolledColumns] | None:
        """Like `records`, but return columns over whole batches.

        Batches are not split, so the last batch may exceed `count_max`.
        """
        found: list[PolledColumns] = []
        left = count_max
        try:
            for fetch in self._ready():
                while left > 0:
                    taken = fetch.take_columns(left)
                    if taken is None:
                        break
                    columns, start = taken
                    _, _, epoch, kind = fetch.head
                    found.append(
                        PolledColumns(fetch.state.topic_partition, epoch, kind, columns, start)
                    )
                    left -= columns.count - start
                if left <= 0:
                    break
        except RecordUnreadable:
            if not found:
                raise
        self._counts["records-consumed-total"] += count_max - left
        return found if found or self._moved else None

    def close(self) -> None:
        self._current = None
        close_converters(self._key_of, self._value_of)

    def _rows(self, count_max: int, *, several: bool) -> Iterator[tuple[CompletedFetch, Rows]]:
        """Take up to `count_max` records and yield them batch by batch.

        With `several`, successive batches of the same layout may be joined.
        """
        left = count_max
        for fetch in self._ready():
            while left and not fetch.is_drained:
                taken = fetch.take(left, several=several)
                size = len(taken.offsets)
                if not size:
                    break
                left -= size
                yield fetch, taken
            if not left:
                break

    def _ready(self) -> Iterator[CompletedFetch]:
        """Yield the buffered fetches of fetchable partitions; drop each fetch when it is drained.

        Raises the first buffered error instead, if there is one.
        """
        error = self._buffer.take_error() if self._buffer.errors else None
        if error is not None:
            raise error
        self._moved = False
        for key in list(self._buffer.first):
            while (fetch := self._buffer.first.get(key)) is not None:
                if self._buffer.is_stale(fetch):
                    self._buffer.drop(key)
                    continue
                state = fetch.state
                if state.is_paused or state.is_revoking or state.state != FetchState.FETCHING:
                    break
                self._current = fetch
                yield fetch
                assert fetch.is_drained, key  # a caller with enough records stops iterating
                self._moved |= fetch.batches.moved
                self._current = None
                self._buffer.drop(key)

    def _decode(self, fetch: CompletedFetch, taken: Rows, records: list[ConsumerRecord]) -> None:
        """Deserialize `taken` and append it to `records`.

        If a deserializer fails, give that record and the following back to the fetch, and raise.
        """
        head = fetch.head
        topic, partition = fetch.state.topic_partition
        key_of = None if self._key_of is None else self._key_of.for_topic(topic)
        value_of = None if self._value_of is None else self._value_of.for_topic(topic)
        for offset, timestamp, key, value, headers in taken:
            step = self._key_of
            try:
                if key_of is not None and key is not None:
                    key = as_user(key_of, key)
                step = self._value_of
                if value_of is not None and value is not None:
                    value = as_user(value_of, value)
            except Exception as error:
                fetch.give_back(offset)
                assert step is not None, self
                reason = f"the deserializer says {error!r} ({step.setting} {step.name})"
                raise RecordUnreadable(topic, partition, offset, reason) from error
            records.append(ConsumerRecord((*head, offset, timestamp, key, value, headers)))

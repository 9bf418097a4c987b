"""The records of dead letters: headers that name the lost record, and perhaps a copy of it."""

from __future__ import annotations

from embedlog.errors import EmbedlogError
from embedlog.replication.partition import Isolation
from embedlog.sharing import log_read
from wire.records.batch import iter_batches
from wire.records.encode.builder import build_batch
from wire.records.errors import RecordsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from embedlog.coordinator.share.state_client import StateBatch
    from embedlog.replication.partition import Partition

    Copy = tuple[bytes | None, bytes | None]
    """Key and value of a record."""

REJECTED = "Offset rejected by client."
EXHAUSTED = "Offset delivery count exceeded the threshold."
COPY_SIZE_MAX = 1 << 20
"""A record in a larger batch is not copied."""

_BATCH_OVERHEAD = 61
_RECORD_OVERHEAD = 40
_HEADER_OVERHEAD = 6

_NOTHING: Copy = (None, None)


class LetterRecords:
    """The letters of some offsets, made batch by batch, in the order of the offsets."""

    def __init__(
        self,
        group_id: str,
        partition: Partition,
        rows: list[StateBatch],
        *,
        delivery_limit: int,
        copies: bool,
    ) -> None:
        self.source = partition.topic_partition
        self._group_id = group_id
        self._partition = partition
        self._delivery_limit = delivery_limit
        self._copies = copies
        self._offsets = self._all_offsets(rows)
        self._ahead: tuple[int, int] | None = next(self._offsets, None)
        self._copied: dict[int, Copy] = {}
        """Offset -> key and value, of the batch that was read last."""

    def _all_offsets(self, rows: list[StateBatch]) -> Iterator[tuple[int, int]]:
        for row in rows:
            for offset in range(row.first_offset, row.last_offset + 1):
                yield offset, row.delivery_count

    def next_batch(self, now_ms: int, *, size_max: int) -> bytes | None:
        """Return the next batch within `size_max` bytes, at least one letter; None at the end."""
        keys: list[bytes | None] = []
        values: list[bytes | None] = []
        headers: list[tuple[tuple[str, bytes], ...]] = []
        size = _BATCH_OVERHEAD
        while self._ahead is not None:
            offset, count = self._ahead
            key, value = self._copy(offset) if self._copies else _NOTHING
            told = self._headers(offset, count)
            added = _RECORD_OVERHEAD
            added += sum(len(name) + len(text) + _HEADER_OVERHEAD for name, text in told)
            copied = len(key or b"") + len(value or b"")
            if _BATCH_OVERHEAD + added + copied > size_max:
                key, value, copied = None, None, 0  # the topic cannot take the copy
            added += copied
            if values and size + added > size_max:
                break
            size += added
            keys.append(key)
            values.append(value)
            headers.append(told)
            self._ahead = next(self._offsets, None)
        if not values:
            return None
        return build_batch(values, keys=keys, timestamps=now_ms, headers=headers)

    def _headers(self, offset: int, count: int) -> tuple[tuple[str, bytes], ...]:
        topic, partition = self.source
        text = EXHAUSTED if count >= self._delivery_limit else REJECTED
        told = (
            ("topic", topic),
            ("partition", str(partition)),
            ("offset", str(offset)),
            ("group", self._group_id),
            ("delivery.count", str(count)),
            ("message", text),
        )
        return tuple((f"__dlq.errors.{name}", value.encode()) for name, value in told)

    def _copy(self, offset: int) -> Copy:
        """Return key and value of a record; nothing if it cannot be read."""
        if offset in self._copied:
            return self._copied[offset]
        self._copied = {}
        try:
            read = log_read.read(
                self._partition,
                offset,
                COPY_SIZE_MAX,
                Isolation.HIGH_WATERMARK,
                last_wanted=offset,
            )
            if read is None or read.ends[0] > COPY_SIZE_MAX:
                return _NOTHING
            first = next(iter_batches(read.records))
            for record in first.records(COPY_SIZE_MAX):
                self._copied[record.offset] = (_bytes(record.key), _bytes(record.value))
        except (EmbedlogError, RecordsError):
            return _NOTHING
        return self._copied.get(offset, _NOTHING)


def _bytes(field: bytes | memoryview | None) -> bytes | None:
    return None if field is None else bytes(field)

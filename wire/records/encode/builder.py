"""Building record batches of magic 2, from columns or record by record."""

from __future__ import annotations

from io import BytesIO

from wire.records.crc32c import crc32c
from wire.records.encode.joins import encode_headers, encode_records
from wire.records.format import (
    ATTRIBUTES_POSITION,
    CHECKED_HEAD,
    CONTROL_BIT,
    CRC_POSITION,
    FRAME_HEAD,
    HEADER_SIZE,
    LOG_OVERHEAD,
    PRODUCER,
    PRODUCER_POSITION,
    TRANSACTIONAL_BIT,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from wire.records.record import Buffer, Headers

# length 5, attributes 1, timestamp delta 10, offset delta 5
RECORD_OVERHEAD_MAX = 21
FIELD_OVERHEAD_MAX = 5

# The length of an ordinary record's fields below which these hold, see BatchBuilder.append:
# length 2, attributes 1, timestamp delta 1, offset delta 2, key length 2, value length 2, headers 1
ORDINARY_SIZE_MAX = 8000
ORDINARY_COUNT_MAX = 8192
ORDINARY_OVERHEAD = 11

# From here patching the checksum into the joined bytes is cheaper than joining them once more.
PATCHED_SIZE_MIN = 8 << 10

_BLANK_FRAME = bytes(FRAME_HEAD.size)


def build_batch(
    values: Sequence[Buffer | None],
    *,
    keys: Sequence[Buffer | None] | None = None,
    timestamps: int | Sequence[int],
    headers: Sequence[Headers | None] | None = None,
    codec: int = 0,
    level: int | None = None,
    base_offset: int = 0,
    leader_epoch: int = -1,
    timestamp_type: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
) -> bytes:
    """Return one batch of magic 2 holding `values`, at least one, with offsets from `base_offset`.

    `keys`, `timestamps` (ms) and `headers` have one item per value, or are one timestamp for all,
    or None.

    Raises:
        TypeError: a key or value is neither bytes, a bytearray, None nor a memoryview of bytes.

    >>> from wire.records import Batch
    >>> [r.value for r in RecordBatch(build_batch([b"a", None], timestamps=5)).records()]
    [b'a', None]
    """
    count = len(values)
    assert count > 0, "a batch has at least one record"
    assert keys is None or len(keys) == count, (len(keys), count)
    base_timestamp, max_timestamp, deltas = _split_timestamps(timestamps, count)
    assert headers is None or len(headers) == count, (len(headers), count)
    _require_bytes(values, "value")
    if keys is not None:
        _require_bytes(keys, "key")
    parts = encode_records(values, keys, deltas, headers)

    attributes = codec | timestamp_type << 3
    if transactional:
        attributes |= TRANSACTIONAL_BIT
    if control:
        attributes |= CONTROL_BIT

    checked = CHECKED_HEAD.pack(
        attributes,
        count - 1,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    if codec:
        from wire.records.compression import compress

        parts = [compress(codec, b"".join(parts), level)]
    return seal(base_offset, leader_epoch, checked, parts)


def seal(base_offset: int, leader_epoch: int, checked: bytes, parts: list[Buffer]) -> bytes:
    """Return the batch of a header from its attributes on, `checked`, and pieces of records."""
    parts[0] = _BLANK_FRAME + checked + parts[0]
    batch = b"".join(parts)
    if len(batch) < PATCHED_SIZE_MIN:
        rest = batch[ATTRIBUTES_POSITION:]
        return _pack_frame(base_offset, leader_epoch, rest) + rest
    with memoryview(batch) as view:
        frame = _pack_frame(base_offset, leader_epoch, view[ATTRIBUTES_POSITION:])
    # BytesIO owns `batch` once nobody else refers to it, and then writes into it without a copy.
    patched = BytesIO(batch)
    del batch
    patched.write(frame)
    return patched.getvalue()


def renumbered(batch: bytes, producer_id: int, producer_epoch: int, base_sequence: int) -> bytes:
    """Return the batch with these in place of its producer's numbers.

    A quarter of what building it takes: the bytes are copied, and their checksum is made again.
    """
    patched = BytesIO(batch)
    patched.seek(PRODUCER_POSITION)
    patched.write(PRODUCER.pack(producer_id, producer_epoch, base_sequence))
    with patched.getbuffer() as view, view[ATTRIBUTES_POSITION:] as checked:
        view[CRC_POSITION:ATTRIBUTES_POSITION] = crc32c(checked).to_bytes(4, "big")
    return patched.getvalue()


def _require_bytes(column: Sequence[Buffer | None], what: str) -> None:
    """Raise TypeError if a length in the column is not in bytes, or is none."""
    kinds = list(map(type, column))
    if kinds.count(bytes) == len(kinds):
        return
    for index, field in enumerate(column):
        if isinstance(field, memoryview):
            if field.itemsize != 1 or field.ndim != 1 or not field.contiguous:
                form = f"a memoryview of {field.format!r}, shape {field.shape}"
                raise TypeError(f"{what} {index} is {form}, not of consecutive bytes")
        elif field is not None and not isinstance(field, bytes | bytearray):
            raise TypeError(f"{what} {index} is {type(field).__name__}, not bytes")


def _split_timestamps(
    timestamps: int | Sequence[int], count: int
) -> tuple[int, int, list[int] | None]:
    """Return the base timestamp, the greatest one, and the deltas unless all are 0."""
    if isinstance(timestamps, int):
        return timestamps, timestamps, None
    assert len(timestamps) == count, (len(timestamps), count)
    base_timestamp = timestamps[0]
    # Counting takes a quarter of finding the least and the greatest.
    if type(timestamps) is list and timestamps.count(base_timestamp) == count:
        return base_timestamp, base_timestamp, None
    max_timestamp = max(timestamps)
    if max_timestamp == base_timestamp == min(timestamps):
        return base_timestamp, base_timestamp, None
    deltas = [timestamp - base_timestamp for timestamp in timestamps]
    return base_timestamp, max_timestamp, deltas


def _pack_frame(base_offset: int, leader_epoch: int, rest: Buffer) -> bytes:
    """Return the header up to its checksum, which is of the `rest`."""
    length = ATTRIBUTES_POSITION - LOG_OVERHEAD + len(rest)
    return FRAME_HEAD.pack(base_offset, length, leader_epoch, 2, crc32c(rest))


def size_upper_bound(key: Buffer | None, value: Buffer | None, headers: Headers | None) -> int:
    """Return a size that a batch of this one record, uncompressed, does not exceed."""
    return HEADER_SIZE + record_size_upper_bound(key, value, headers)


def record_size_upper_bound(
    key: Buffer | None, value: Buffer | None, headers: Headers | None
) -> int:
    """Return a size that this record does not exceed, at any place in a batch."""
    size = RECORD_OVERHEAD_MAX + 2 * FIELD_OVERHEAD_MAX
    if key is not None:
        size += len(key)
    if value is not None:
        size += len(value)
    return size + (len(encode_headers(headers)) if headers else 1)


class BatchBuilder:
    """Collects records one by one; `close` makes the batch.

    Keys, values and headers are kept by reference until then, so they must not change. Not
    thread-safe: one owner at a time.
    """

    __slots__ = (
        "_codec",
        "_first_timestamp",
        "_headers",
        "_keys",
        "_level",
        "_timestamps",
        "_values",
        "count",
        "estimated_size",
        "size_limit",
    )

    def __init__(
        self, *, codec: int = 0, level: int | None = None, size_limit: int = 16384
    ) -> None:
        self._codec = codec
        self._level = level
        self._values: list[Buffer | None] = []
        self._keys: list[Buffer | None] = []
        self._timestamps: list[int] = []
        self._headers: dict[int, Headers] = {}
        self._first_timestamp = 0
        self.size_limit = size_limit
        self.count = 0
        # Of the batch uncompressed; never less than its size, and more by a few bytes per record.
        self.estimated_size = HEADER_SIZE

    def append(
        self,
        timestamp: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Headers | None = None,
    ) -> int:
        """Add a record and return its offset delta; `size_limit` is not enforced here."""
        count = self.count
        if count == 0:
            self._first_timestamp = timestamp
        size = 0 if value is None else len(value)
        if key is not None:
            size += len(key)
        if (
            size < ORDINARY_SIZE_MAX
            and -64 <= timestamp - self._first_timestamp < 64
            and count < ORDINARY_COUNT_MAX
            and not headers
        ):
            self.estimated_size += size + ORDINARY_OVERHEAD
        else:
            self.estimated_size += record_size_upper_bound(key, value, headers)
            if headers:
                self._headers[count] = headers
        self._values.append(value)
        self._keys.append(key)
        self._timestamps.append(timestamp)
        self.count = count + 1
        return count

    def has_room_for(
        self, key: Buffer | None, value: Buffer | None, headers: Headers | None = None
    ) -> bool:
        """Return whether the record fits into `size_limit`; the first one always does."""
        if self.count == 0:
            return True
        bound = record_size_upper_bound(key, value, headers)
        return self.estimated_size + bound <= self.size_limit

    def close(
        self,
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        transactional: bool = False,
        control: bool = False,
        base_offset: int = 0,
        leader_epoch: int = -1,
        timestamp_type: int = 0,
    ) -> bytes:
        """Return the batch of the records so far; may be called again, with other sequences."""
        keys = self._keys
        headers = self._headers
        return build_batch(
            self._values,
            keys=None if keys.count(None) == len(keys) else keys,
            timestamps=self._timestamps,
            headers=[headers.get(index) for index in range(self.count)] if headers else None,
            codec=self._codec,
            level=self._level,
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            timestamp_type=timestamp_type,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            transactional=transactional,
            control=control,
        )

"""Building record batches of magic 2 from columns of keys, values, timestamps and headers."""

from __future__ import annotations

from io import BytesIO

from wire.records.crc32c import crc32c
from wire.records.encode.joins import encode_records
from wire.records.format import (
    ATTRIBUTES_POSITION,
    CHECKED_HEAD,
    CONTROL_BIT,
    CRC_POSITION,
    FRAME_HEAD,
    LOG_OVERHEAD,
    PRODUCER,
    PRODUCER_POSITION,
    TRANSACTIONAL_BIT,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from wire.records.record import Buffer, Headers

# The checksum stands before the bytes that it covers, so it is known only after they are joined. In
# a batch of at least this size it then overwrites a blank, which is cheaper than another join.
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

    `keys`, `timestamps` (ms) and `headers` have one item per value. A single timestamp applies to
    all records; None means no keys or headers.

    Raises:
        TypeError: a key or value is not bytes, a bytearray, a memoryview of bytes or None.

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
    """Return the batch with the encoded header fields `checked` and the pieces of its records.

    `checked` begins with the attributes: the bytes that the checksum covers."""
    parts[0] = _BLANK_FRAME + checked + parts[0]
    batch = b"".join(parts)
    if len(batch) < PATCHED_SIZE_MIN:
        rest = batch[ATTRIBUTES_POSITION:]
        return _pack_frame(base_offset, leader_epoch, rest) + rest
    with memoryview(batch) as view:
        frame = _pack_frame(base_offset, leader_epoch, view[ATTRIBUTES_POSITION:])
    # If BytesIO has the only reference to `batch`, it writes into those bytes without a copy.
    patched = BytesIO(batch)
    del batch
    patched.write(frame)
    return patched.getvalue()


def renumbered(batch: bytes, producer_id: int, producer_epoch: int, base_sequence: int) -> bytes:
    """Return a copy of the batch with the given producer id, epoch and base sequence.

    This copies the bytes and computes a new checksum, in a quarter of the time of `build_batch`.
    """
    patched = BytesIO(batch)
    patched.seek(PRODUCER_POSITION)
    patched.write(PRODUCER.pack(producer_id, producer_epoch, base_sequence))
    with patched.getbuffer() as view, view[ATTRIBUTES_POSITION:] as checked:
        view[CRC_POSITION:ATTRIBUTES_POSITION] = crc32c(checked).to_bytes(4, "big")
    return patched.getvalue()


def _require_bytes(column: Sequence[Buffer | None], what: str) -> None:
    """Raise TypeError if an item is not bytes or None, or its `len` is not its size in bytes."""
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
    """Return the base timestamp, the greatest timestamp, and the deltas (None if all are 0)."""
    if isinstance(timestamps, int):
        return timestamps, timestamps, None
    assert len(timestamps) == count, (len(timestamps), count)
    base_timestamp = timestamps[0]
    # Usually all timestamps are equal. Counting shows it in a quarter of the time of min and max.
    if type(timestamps) is list and timestamps.count(base_timestamp) == count:
        return base_timestamp, base_timestamp, None
    max_timestamp = max(timestamps)
    if max_timestamp == base_timestamp == min(timestamps):
        return base_timestamp, base_timestamp, None
    deltas = [timestamp - base_timestamp for timestamp in timestamps]
    return base_timestamp, max_timestamp, deltas


def _pack_frame(base_offset: int, leader_epoch: int, rest: Buffer) -> bytes:
    """Return the first part of the header, which ends with the checksum of `rest`.

    `rest` are all bytes of the batch that follow the checksum.
    """
    length = ATTRIBUTES_POSITION - LOG_OVERHEAD + len(rest)
    return FRAME_HEAD.pack(base_offset, length, leader_epoch, 2, crc32c(rest))

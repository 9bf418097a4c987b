"""Converting batches of magic 2 to messages of magic 0 or 1, for clients up to Kafka 0.10."""

from __future__ import annotations

from wire.records.batch import RecordBatch, iter_batches
from wire.records.decode.choose import tuples
from wire.records.errors import UnsupportedCodec
from wire.records.format import Codec
from wire.records.legacy import LegacyBatch, encode_message, encode_wrapper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from wire.records.record import Buffer


def down_convert(view: Buffer, *, magic: int, first_offset: int) -> bytes:
    """Return the whole batches in `view` as messages of `magic` 0 or 1, for answers to Fetch v0-3.

    The result has no control batches, headers or producer fields. Records below `first_offset` are
    left out if their batch is not compressed. Batches whose magic is `magic` or lower are copied.

    Raises:
        UnsupportedCodec: a batch is compressed with zstd.
        CorruptBatch, InvalidRecord, CorruptPayload, TooLarge: a batch cannot be read.
    """
    assert magic in (0, 1), magic
    messages: list[Buffer] = []
    for batch in iter_batches(view):
        if batch.magic <= magic:
            messages.append(batch.buffer)
        elif not batch.is_control:
            messages += _messages_of(batch, magic, first_offset)
    return b"".join(messages)


def _messages_of(
    batch: RecordBatch | LegacyBatch, magic: int, first_offset: int
) -> Iterator[bytes]:
    if batch.codec == Codec.ZSTD:
        raise UnsupportedCodec(f"zstd at offset {batch.last_offset}, below magic 2")
    timestamp_type = batch.timestamp_type
    if batch.codec != Codec.NONE:
        records = list(batch.records())
        if records:
            yield encode_wrapper(
                records, magic=magic, codec=batch.codec, timestamp_type=timestamp_type
            )
        return
    rows = tuples(batch) if isinstance(batch, RecordBatch) else batch.records()
    for offset, timestamp, key, value, _ in rows:
        if offset >= first_offset:
            yield encode_message(
                offset=offset,
                magic=magic,
                attributes=(timestamp_type & 1) << 3,
                timestamp=timestamp,
                key=key,
                value=value,
            )

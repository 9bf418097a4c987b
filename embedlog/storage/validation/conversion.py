"""Batches that must be rebuilt before they are stored: for their codec, format or offsets."""

from __future__ import annotations

from embedlog import errors
from embedlog.storage.validation.errors import as_kafka_error, check_records
from embedlog.storage.validation.record_set import check_size
from wire.records.batch import RecordBatch, iter_batches
from wire.records.encode.builder import build_batch
from wire.records.errors import RecordsError
from wire.records.format import Codec, TimestampType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from embedlog.storage.log_config import LogConfig
    from wire.records.legacy import LegacyBatch
    from wire.records.record import Record

CODEC_IDS = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
"""Value of compression.type -> codec. The value "producer" keeps the sender's codec."""


def rebuild(
    records: Sequence[Record],
    *,
    codec: int,
    config: LogConfig,
    now_ms: int,
    source: RecordBatch | None = None,
) -> RecordBatch:
    """Build a batch of these records, with consecutive offsets and the producer of `source`."""
    timestamps = [record.timestamp for record in records]
    headers = [record.headers for record in records]
    built = build_batch(
        [record.value for record in records],
        keys=[record.key for record in records],
        timestamps=now_ms if config.log_append_time else timestamps,
        headers=headers if any(headers) else None,
        codec=codec,
        level=_level(codec, config),
        timestamp_type=(
            TimestampType.LOG_APPEND_TIME if config.log_append_time else TimestampType.CREATE_TIME
        ),
        producer_id=-1 if source is None else source.producer_id,
        producer_epoch=-1 if source is None else source.producer_epoch,
        base_sequence=-1 if source is None else source.base_sequence,
        transactional=source is not None and source.is_transactional,
    )
    return RecordBatch(built)


def convert_legacy(
    view: memoryview, *, config: LogConfig, now_ms: int, topic_partition: object
) -> RecordBatch:
    """Build one batch of magic 2 from a message set of magic 0 or 1 (Produce 0 to 2).

    A message set may hold many plain messages, or one compressed wrapper.

    Raises:
        CorruptMessage, MessageTooLarge: a message's checksum or size is wrong.
        InvalidRecord: mixed formats, several wrappers, or a bad record.
        InvalidTimestamp: as for a batch of magic 2.
    """
    try:
        return _convert_legacy(view, config, now_ms, topic_partition)
    except RecordsError as error:
        raise as_kafka_error(error) from None


def _convert_legacy(
    view: memoryview, config: LogConfig, now_ms: int, topic_partition: object
) -> RecordBatch:
    batches = _legacy_batches(view, topic_partition)
    codec = Codec.NONE
    for batch in batches:
        check_size(batch.size, config.max_message_bytes, topic_partition)
        if not batch.is_valid_crc():
            raise errors.CorruptMessage(
                f"Record is corrupt (stored crc = {batch.crc}) in topic partition "
                f"{topic_partition}."
            )
        codec = batch.codec or codec
    if codec != Codec.NONE and len(batches) > 1:
        raise errors.InvalidRecord("Compressed outer record has more than one batch")
    records: list[Record] = []
    for batch in batches:
        inner = list(batch.records(config.max_decompressed_message_bytes))
        check_records(
            inner,
            sent_as_log_append_time=batch.timestamp_type == TimestampType.LOG_APPEND_TIME,
            config=config,
            now_ms=now_ms,
            topic_partition=topic_partition,
        )
        records += inner
    target = CODEC_IDS.get(config.compression_type, codec)
    return rebuild(records, codec=target, config=config, now_ms=now_ms)


def _legacy_batches(view: memoryview, topic_partition: object) -> list[LegacyBatch]:
    batches: list[LegacyBatch] = []
    for batch in iter_batches(view):
        if isinstance(batch, RecordBatch) or (batches and batch.magic != batches[0].magic):
            raise errors.InvalidRecord(
                f"Batch magic {batch.magic} is not the same as the first batch's magic byte "
                f"{batches[0].magic} in topic partition {topic_partition}."
            )
        batches.append(batch)
    return batches


def _level(codec: int, config: LogConfig) -> int | None:
    if codec == Codec.GZIP:
        return config.compression_gzip_level
    if codec == Codec.LZ4:
        return config.compression_lz4_level
    if codec == Codec.ZSTD:
        return config.compression_zstd_level
    return None

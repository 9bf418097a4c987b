"""The checks between a produce request and the log, in Kafka's order and with Kafka's codes.

    set      no whole entry                                      INVALID_RECORD
             an entry's length < 14, unknown magic               CORRUPT_MESSAGE
             magic not allowed here, more than one v2 batch      INVALID_RECORD
             bytes after the batch that are no whole entry       trimmed
    batch    base offset not 0 (clients)                         INVALID_RECORD          *
             larger than max.message.bytes                       MESSAGE_TOO_LARGE
             more records than would fit uncompressed (clients)  MESSAGE_TOO_LARGE
             smaller than its header, wrong CRC                  CORRUPT_MESSAGE
             codec 5-7, payload that does not decompress         UNKNOWN_SERVER_ERROR    *
             count or offset range, control, no sequence         INVALID_RECORD          *
    record   malformed, or not as many as declared               INVALID_RECORD          *
             null key on a compacted topic                       INVALID_RECORD          * +
             timestamp out of range, LogAppendTime sent          INVALID_TIMESTAMP       * +
    result   larger than max.message.bytes once rebuilt          MESSAGE_TOO_LARGE
             larger than segment.bytes                           RECORD_LIST_TOO_LARGE

    *  the produce response carries the log start offset      +  and one error per bad record

Most batches never come here: see `ordinary_batch`. A batch that needs no new codec or timestamp is
not copied. Batches that Kafka stores verbatim are stored verbatim: odd offset deltas of
uncompressed batches, unused attribute bits, header keys that are not UTF-8, negative timestamps.
"""

from __future__ import annotations

from embedlog import errors
from embedlog.storage.validation.errors import NO_TIMESTAMP, as_kafka_error, check_records
from embedlog.storage.validation.origin import AppendOrigin
from embedlog.storage.validation.record_set import check_rest, check_size, first_entry
from embedlog.storage.validation.validated_batch import ValidatedBatch, of_batch
from wire.records.batch import RecordBatch
from wire.records.decode.choose import scan
from wire.records.encode.built import BuiltBatch
from wire.records.errors import RecordsError
from wire.records.format import CODEC_MASK, CONTROL_BIT, HEADER_SIZE, TIMESTAMP_TYPE_BIT, Codec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import Buffer
    from embedlog.storage.log_config import LogConfig
    from wire.records.decode.scan import ScanResult

_FOUND_BEFORE_THE_LOG = (2, 10)
"""Codes of errors without the log start offset: CORRUPT_MESSAGE and MESSAGE_TOO_LARGE."""


def validate(
    records: Buffer | BuiltBatch,
    *,
    config: LogConfig,
    origin: int,
    now_ms: int,
    magic_limits: tuple[int, int] = (2, 2),
    log_start_offset: int = -1,
    topic_partition: object = "",
) -> ValidatedBatch:
    """Check the one batch in `records` and make it ready to be stamped and written.

    `now_ms` is wall time. `magic_limits` are the formats that the request's version may carry: (2,
    2) from Produce 3 on, (0, 2) before. The result holds a view of `records` whenever possible.

    Raises:
        KafkaError: by the table at the top of this file. `log_start_offset` is set on errors marked
            with a star, -1 on the others; `record_errors` lists the bad records.
    """
    view = memoryview(bytes(records) if isinstance(records, BuiltBatch) else records)
    batch = _good_batch(view, config)
    if batch is None:
        offset, size, magic = first_entry(view, magic_limits)
        if magic == 2 and size != len(view):
            check_rest(view, size)
    else:
        offset, size, magic = batch.base_offset, batch.size, 2
    try:
        if magic < 2:
            validated = _convert_legacy(view, config, now_ms, topic_partition)
        else:
            if offset != 0 and origin == AppendOrigin.CLIENT:
                raise _wrong_base_offset(offset, topic_partition)
            if batch is None:
                batch = _checked_batch(view, size, config, topic_partition)
            if origin == AppendOrigin.CLIENT:
                _check_client_header(batch, config.compressed_count_max, topic_partition)
            validated = _checked_records(batch, config, now_ms, topic_partition)
    except errors.KafkaError as error:
        if error.code not in _FOUND_BEFORE_THE_LOG:
            error.log_start_offset = log_start_offset
        raise
    if validated.size > config.segment_bytes:
        raise errors.RecordListTooLarge(
            f"Message batch size is {validated.size} bytes in append to partition "
            f"{topic_partition}, which exceeds the maximum configured segment size of "
            f"{config.segment_bytes}."
        )
    return validated


# The batch


def _wrong_base_offset(offset: int, topic_partition: object) -> errors.KafkaError:
    return errors.InvalidRecord(
        f"The baseOffset of the record batch in the append to {topic_partition} should be 0, "
        f"but it is {offset}"
    )


def _good_batch(view: memoryview, config: LogConfig) -> RecordBatch | None:
    """Return the batch that fills `view` if it passes the parts `set` and `batch` of the table.

    Return None if the checks must be made one by one, to find the error.
    """
    try:
        batch = RecordBatch(view)
    except RecordsError:
        return None
    if (
        batch.size == len(view) <= config.max_message_bytes
        and batch.is_valid_crc()
        and batch.attributes & CODEC_MASK <= Codec.ZSTD
    ):
        return batch
    return None


def _checked_batch(
    view: memoryview, size: int, config: LogConfig, topic_partition: object
) -> RecordBatch:
    check_size(size, config.max_message_bytes, topic_partition)
    if size < HEADER_SIZE:
        raise errors.CorruptMessage(
            f"Record is corrupt ({size} bytes, a batch has at least {HEADER_SIZE}) in topic "
            f"partition {topic_partition}."
        )
    batch = RecordBatch(view if size == len(view) else view[:size])
    if not batch.is_valid_crc():
        raise errors.CorruptMessage(
            f"Record is corrupt (stored crc = {batch.crc}) in topic partition {topic_partition}."
        )
    if batch.attributes & CODEC_MASK > Codec.ZSTD:
        # Kafka answers an unknown codec id with this code.
        raise errors.UnknownServerError(
            f"Unknown compression type id: {batch.attributes & CODEC_MASK}"
        )
    return batch


def _check_client_header(
    batch: RecordBatch, compressed_count_max: int, topic_partition: object
) -> None:
    """Refuse a client's batch with a wrong offset range or count, a control bit, or no sequence."""
    count = batch.record_count
    delta = batch.last_offset_delta
    if count == delta + 1 and count > 0:
        if batch.attributes & CODEC_MASK and count > compressed_count_max:
            # More records than fit uncompressed: the client splits the batch and sends it again.
            raise errors.MessageTooLarge(
                f"{count} records in a batch in append to partition {topic_partition}; at most "
                f"{compressed_count_max} may be compressed into one."
            )
        if batch.attributes & CONTROL_BIT:
            raise errors.InvalidRecord(
                "Clients are not allowed to write control records in topic partition "
                f"{topic_partition}."
            )
        if batch.producer_id > -1 and batch.base_sequence < 0:
            raise errors.InvalidRecord(
                f"Invalid sequence number {batch.base_sequence} in record batch with producerId "
                f"{batch.producer_id} in topic partition {topic_partition}."
            )
        return
    where = f"[{batch.base_offset}, {batch.base_offset + delta}]"
    if delta < 0:
        message = f"Batch has an invalid offset range: {where} in topic partition"
    elif count <= 0:
        message = f"Invalid reported count for record batch: {count} in topic partition"
    else:
        message = (
            f"Inconsistent batch offset range {where} and count of records {count} in topic "
            "partition"
        )
    raise errors.InvalidRecord(f"{message} {topic_partition}.")


# Its records


def _checked_records(
    batch: RecordBatch, config: LogConfig, now_ms: int, topic_partition: object
) -> ValidatedBatch:
    """Return the batch to be written after checking all its records."""
    try:
        facts = scan(batch, config.max_decompressed_message_bytes, config.header_count_max)
    except RecordsError as error:
        raise as_kafka_error(error) from None
    attributes = batch.attributes
    sent_as_log_append_time = attributes & TIMESTAMP_TYPE_BIT != 0
    if sent_as_log_append_time or _looks_bad(facts, config, now_ms):
        check_records(
            batch.records(config.max_decompressed_message_bytes),
            sent_as_log_append_time=sent_as_log_append_time,
            config=config,
            now_ms=now_ms,
            topic_partition=topic_partition,
        )
    codec = attributes & CODEC_MASK
    if codec and not facts.consecutive:
        # Kafka fails to re-encode a compressed batch with odd offsets, and has no code for that.
        raise errors.UnknownServerError
    if config.compression_type != "producer":
        rebuilt = _rebuild(batch, config, now_ms)
        if rebuilt is not None:
            return _validated_rebuilt(rebuilt, config, now_ms, topic_partition)
    if config.log_append_time:
        return of_batch(
            batch,
            attributes=attributes | TIMESTAMP_TYPE_BIT,
            max_timestamp=now_ms,
            log_append_time_ms=now_ms,
        )
    # If sent as LogAppendTime, every record has the batch's timestamp, whatever its delta is.
    latest = batch.max_timestamp if sent_as_log_append_time else facts.max_timestamp
    return of_batch(
        batch,
        attributes=attributes & ~TIMESTAMP_TYPE_BIT,
        max_timestamp=max(NO_TIMESTAMP, latest),
        log_append_time_ms=-1,
    )


def _looks_bad(facts: ScanResult, config: LogConfig, now_ms: int) -> bool:
    """Whether some record may be bad, so that all records must be read."""
    if facts.first_null_key_index >= 0 and config.compact:
        return True
    return not config.log_append_time and (
        facts.max_timestamp - now_ms > config.message_timestamp_after_max_ms
        or now_ms - facts.min_timestamp > config.message_timestamp_before_max_ms
    )


# Rebuilding batches


def _rebuild(batch: RecordBatch, config: LogConfig, now_ms: int) -> RecordBatch | None:
    """Return the batch in the topic's codec; None if it has that codec.

    Kafka keeps odd offsets of plain batches, and never compresses plain control batches.
    """
    from embedlog.storage.validation.conversion import CODEC_IDS, rebuild

    source = batch.attributes & CODEC_MASK
    target = CODEC_IDS.get(config.compression_type, source)
    if source == target or not batch.record_count:
        return None
    if source == Codec.NONE and batch.attributes & CONTROL_BIT:
        return None
    records = list(batch.records(config.max_decompressed_message_bytes))
    return rebuild(records, codec=target, config=config, now_ms=now_ms, source=batch)


def _convert_legacy(
    view: memoryview, config: LogConfig, now_ms: int, topic_partition: object
) -> ValidatedBatch:
    from embedlog.storage.validation.conversion import convert_legacy

    converted = convert_legacy(view, config=config, now_ms=now_ms, topic_partition=topic_partition)
    return _validated_rebuilt(converted, config, now_ms, topic_partition)


def _validated_rebuilt(
    batch: RecordBatch, config: LogConfig, now_ms: int, topic_partition: object
) -> ValidatedBatch:
    if batch.size > config.max_message_bytes:
        raise errors.MessageTooLarge(
            f"Message batch size is {batch.size} bytes in append to partition {topic_partition} "
            f"which exceeds the maximum configured size of {config.max_message_bytes}."
        )
    return of_batch(
        batch,
        attributes=batch.attributes,
        max_timestamp=max(NO_TIMESTAMP, batch.max_timestamp),
        log_append_time_ms=now_ms if config.log_append_time else -1,
    )

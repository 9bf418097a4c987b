"""The errors of bad records: a code for bad bytes, and a message for each bad record."""

from __future__ import annotations

from embedlog import errors
from wire.records.errors import (
    CorruptBatch,
    CorruptPayload,
    InvalidRecord,
    RecordsError,
    TooLarge,
    TooManyHeaders,
    UnsupportedCodec,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from embedlog.storage.log_config import LogConfig
    from wire.records.record import Record

NO_TIMESTAMP = -1
_ERRORS_SHOWN = 3

_CODES: tuple[tuple[type[RecordsError], int], ...] = (
    (CorruptBatch, 2),
    (InvalidRecord, 87),
    (TooLarge, 10),  # clients split the batch, and send its halves
    (TooManyHeaders, 10),  # the same
    (CorruptPayload, -1),  # Kafka fails on such bytes with this code
    (UnsupportedCodec, 76),
)


def as_kafka_error(error: RecordsError) -> errors.KafkaError:
    """Return the error of a produce request for bytes that `wire.records` refuses."""
    code = next(code for kind, code in _CODES if isinstance(error, kind))
    if not isinstance(error, TooLarge):
        return errors.error_for(code, str(error))
    found = errors.error_for(code, f"{error}, which max.decompressed.message.bytes sets")
    # Kafka would take the batch, so tell client and operator which setting refuses it.
    found.told_with_message = True
    return found


def check_records(
    records: Iterable[Record],
    *,
    sent_as_log_append_time: bool,
    config: LogConfig,
    now_ms: int,
    topic_partition: object,
) -> None:
    """Refuse the batch when a record lacks its key or has a bad timestamp (KIP-467).

    Every record is read, so call it only if the facts of the batch show that one may be bad.

    Raises:
        InvalidTimestamp, InvalidRecord: some record is bad; `record_errors` lists all bad ones. One
            bad timestamp makes the whole error InvalidTimestamp.
    """
    found: list[tuple[int, str | None]] = []
    is_timestamp_bad = False
    for index, record in enumerate(records):
        if config.compact and record.key is None:
            found.append(
                (
                    index,
                    "Compacted topic cannot accept message without key in topic partition "
                    f"{topic_partition}",
                )
            )
            continue
        message = _timestamp_error(record, sent_as_log_append_time, config, now_ms)
        if message is not None:
            is_timestamp_bad = True
            found.append((index, message))
    if not found:
        return
    if is_timestamp_bad:
        error = errors.InvalidTimestamp(
            "One or more records have been rejected due to invalid timestamp"
        )
    else:
        shown = ", ".join(
            f"RecordError(batchIndex={index}, message='{message}')"
            for index, message in found[:_ERRORS_SHOWN]
        )
        error = errors.InvalidRecord(
            f"One or more records have been rejected due to {len(found)} record errors in total, "
            f"and only showing the first three errors at most: [{shown}]"
        )
    error.record_errors = tuple(found)
    raise error


def _timestamp_error(
    record: Record, sent_as_log_append_time: bool, config: LogConfig, now_ms: int
) -> str | None:
    timestamp = record.timestamp
    if not config.log_append_time and timestamp != NO_TIMESTAMP:
        earliest = now_ms - config.message_timestamp_before_max_ms
        latest = now_ms + config.message_timestamp_after_max_ms
        if earliest <= timestamp <= latest:
            return None
        return (
            f"Timestamp {timestamp} of message with offset {record.offset} is out of range. The "
            f"timestamp should be within [{earliest}, {latest}]"
        )
    if not sent_as_log_append_time:
        return None
    key_size = 0 if record.key is None else len(record.key)
    value_size = 0 if record.value is None else len(record.value)
    return (
        f"Invalid timestamp type in message DefaultRecord(offset={record.offset}, "
        f"timestamp={timestamp}, key={key_size} bytes, value={value_size} bytes). Producer should "
        "not set timestamp type to LogAppendTime."
    )

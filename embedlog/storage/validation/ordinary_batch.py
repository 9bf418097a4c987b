"""Ordinary batches, which a few comparisons prove to be good; nearly all are ordinary.

Producers send the same kind of batch again and again: plain, without a transaction, its records of
a shape met before (see `wire.records.decode.uniform`). The header of a batch and one call over all
its records prove that every check of `validator` would pass. A `BuiltBatch` is good by its
construction, and only its facts are compared with the topic's settings.
"""

from __future__ import annotations

from embedlog.storage.validation.validated_batch import MAGIC, ValidatedBatch
from wire.records.crc32c import crc32c
from wire.records.decode.uniform import known_shape
from wire.records.encode.built import BuiltBatch
from wire.records.format import ATTRIBUTES_POSITION, HEADER, HEADER_SIZE, LOG_OVERHEAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from embedlog.common import Buffer
    from embedlog.storage.log_config import LogConfig
    from embedlog.storage.validation.validated_batch import GoodBatch

_header_of = HEADER.unpack_from


def ordinary(records: Buffer | BuiltBatch, config: LogConfig, now_ms: int) -> GoodBatch | None:
    """Validate an ordinary, good batch; return None if `validate` must decide."""
    if isinstance(records, BuiltBatch):
        is_fit = (
            records.size <= config.batch_size_max
            and config.keeps_plain
            and records.min_timestamp >= 0
            and records.max_timestamp - now_ms <= config.message_timestamp_after_max_ms
            and now_ms - records.min_timestamp <= config.message_timestamp_before_max_ms
            and (records.first_null_key_index < 0 or not config.compact)
            and (records.producer_id < 0 or records.base_sequence >= 0 or records.is_control)
        )
        return records if is_fit else None
    size = len(view := memoryview(records))
    if not HEADER_SIZE < size <= config.batch_size_max or not config.keeps_plain:
        return None
    (
        base_offset,
        length,
        _,
        magic,
        crc,
        attributes,
        delta,
        base_timestamp,
        latest,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    ) = _header_of(view)
    if (
        magic != MAGIC
        or length != size - LOG_OVERHEAD
        or base_offset != 0
        or attributes != 0  # 0: no codec, CreateTime, no transaction, no control batch
        or delta != count - 1
        or (producer_id > -1 and base_sequence < 0)
    ):
        return None
    shape = known_shape(size - HEADER_SIZE, count)
    if shape is None or (config.compact and not shape.has_keys):
        return None
    delta_range = shape.delta_range(view, HEADER_SIZE)
    if delta_range is None:
        return None
    least, greatest = delta_range
    checked = view[ATTRIBUTES_POSITION:]
    earliest = base_timestamp + least
    if (
        earliest < 0
        or latest != base_timestamp + greatest
        or latest - now_ms > config.message_timestamp_after_max_ms
        or now_ms - earliest > config.message_timestamp_before_max_ms
        or crc32c(checked) != crc
    ):
        return None
    return ValidatedBatch(
        (checked,), crc, size, delta, latest, -1, 0, producer_id, producer_epoch, base_sequence
    )

"""A batch that passed validation: the leader writes `checked` after a head that it makes itself.

position    size
0           21      FRAME_HEAD: base offset, length, leader epoch, magic, checksum
21          ...     `checked`: the bytes that the checksum covers, unchanged if possible
"""

from __future__ import annotations

from wire.records.batch import RecordBatch
from wire.records.crc32c import crc32c
from wire.records.format import (
    CHECKED_HEAD,
    FRAME_HEAD,
    HEADER_SIZE,
    LOG_OVERHEAD,
    TRANSACTIONAL_BIT,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from embedlog.runtime.files import Bytes
    from wire.records.encode.built import BuiltBatch

    GoodBatch: TypeAlias = "BuiltBatch | ValidatedBatch"
    """A batch that a log appends. Both classes have the same attributes."""

MAGIC = 2


class ValidatedBatch:
    """The validated bytes of one produced batch, and the facts that its log keeps.

    `checked` are the bytes after the head, in order; `size` includes the head. `max_timestamp` is
    stored. `log_append_time_ms` is for the produce response; it is -1 on a CreateTime topic. The
    other attributes are header fields.
    """

    __slots__ = (
        "attributes",
        "base_sequence",
        "checked",
        "crc",
        "last_offset_delta",
        "log_append_time_ms",
        "max_timestamp",
        "producer_epoch",
        "producer_id",
        "size",
    )

    def __init__(  # noqa: PLR0917  one per append: the keywords would cost as much as the rest
        self,
        checked: tuple[Bytes, ...],
        crc: int,
        size: int,
        last_offset_delta: int,
        max_timestamp: int,
        log_append_time_ms: int,
        attributes: int,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
    ) -> None:
        self.checked = checked
        self.crc = crc
        self.size = size
        self.last_offset_delta = last_offset_delta
        self.max_timestamp = max_timestamp
        self.log_append_time_ms = log_append_time_ms
        self.attributes = attributes
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    def stamped(self, *, base_offset: int, leader_epoch: int) -> bytes:
        """Return a copy of the whole batch, with the head that the leader would write."""
        length = self.size - LOG_OVERHEAD
        head = FRAME_HEAD.pack(base_offset, length, leader_epoch, MAGIC, self.crc)
        return b"".join([head, *self.checked])


def of_batch(
    batch: RecordBatch, *, attributes: int, max_timestamp: int, log_append_time_ms: int
) -> ValidatedBatch:
    """Return the validated `batch` with these header fields; no record is copied."""
    view = batch.buffer
    checked: tuple[Bytes, ...] = (view[FRAME_HEAD.size :],)
    crc = batch.crc
    if attributes != batch.attributes or max_timestamp != batch.max_timestamp:
        head = CHECKED_HEAD.pack(
            attributes,
            batch.last_offset_delta,
            batch.base_timestamp,
            max_timestamp,
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            batch.record_count,
        )
        checked = head, view[HEADER_SIZE:]
        crc = crc32c(checked[1], crc32c(head))
    return ValidatedBatch(
        checked,
        crc,
        batch.size,
        batch.last_offset_delta,
        max_timestamp,
        log_append_time_ms,
        attributes,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
    )

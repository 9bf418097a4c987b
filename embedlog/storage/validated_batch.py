"""A batch that passed validation: 61 header bytes to stamp, and a body that nobody copied."""

from __future__ import annotations

from struct import Struct

from wire.records.batch import (
    ATTRIBUTES_POSITION,
    CRC_POSITION,
    HEADER_SIZE,
    MAX_TIMESTAMP_POSITION,
    RecordBatch,
)
from wire.records.crc32c import crc32c

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire.records.built import BuiltBatch

_INT16 = Struct(">h")
_INT32 = Struct(">i")
_UINT32 = Struct(">I")
_INT64 = Struct(">q")
_LEADER_EPOCH_POSITION = 12


class ValidatedBatch:
    """What a leader writes for one produced batch, and the facts its log keeps of it.

    `header` is this object's own copy; the log stamps its offset and epoch into it. `body` is a
    view of the caller's bytes unless the batch had to be rebuilt. The attributes suffice as
    `BatchFacts` of the producer state.
    """

    __slots__ = (
        "batch",
        "body",
        "crc_changed",
        "header",
        "last_offset_delta",
        "log_append_time_ms",
        "max_timestamp",
        "offset_of_max_timestamp",
        "producer_id",
        "size",
    )

    def __init__(
        self,
        batch: RecordBatch,
        *,
        attributes: int,
        max_timestamp: int,
        offset_of_max_timestamp: int,
        log_append_time_ms: int,
    ) -> None:
        view = batch.buffer
        self.batch = batch
        """The batch before its header was changed; keeps `body` alive."""
        self.header = bytearray(view[:HEADER_SIZE])
        self.body: bytes | memoryview = view[HEADER_SIZE:]
        self.size = batch.size
        self.last_offset_delta = batch.last_offset_delta
        self.producer_id = batch.producer_id
        self.max_timestamp = max_timestamp
        self.offset_of_max_timestamp = offset_of_max_timestamp
        """As a delta to the first offset; -1 when no record has a timestamp."""
        self.log_append_time_ms = log_append_time_ms
        """What the produce response says: -1 on a CreateTime topic."""
        if attributes == batch.attributes and max_timestamp == batch.max_timestamp:
            self.crc_changed = False
        else:
            self.crc_changed = True
            self._rewrite(attributes, max_timestamp)

    @property
    def record_count(self) -> int:
        """The number of records in the body."""
        return self.batch.record_count

    @property
    def producer_epoch(self) -> int:
        """The epoch of `producer_id`, -1 for none."""
        return self.batch.producer_epoch

    @property
    def base_sequence(self) -> int:
        """The sequence of the first record, -1 for none."""
        return self.batch.base_sequence

    @property
    def is_transactional(self) -> bool:
        """True if the batch belongs to a transaction."""
        return self.batch.is_transactional

    @property
    def is_control(self) -> bool:
        """True if the records are markers for the machinery, not for applications."""
        return self.batch.is_control

    @property
    def buffers(self) -> list[bytes | bytearray | memoryview]:
        """The bytes to write, in order."""
        return [self.header, self.body]

    def stamp(self, *, base_offset: int, leader_epoch: int) -> None:
        """Write the leader's two fields into the header; the checksum does not cover them."""
        _INT64.pack_into(self.header, 0, base_offset)
        _INT32.pack_into(self.header, _LEADER_EPOCH_POSITION, leader_epoch)

    def _rewrite(self, attributes: int, max_timestamp: int) -> None:
        header = self.header
        _INT16.pack_into(header, ATTRIBUTES_POSITION, attributes)
        _INT64.pack_into(header, MAX_TIMESTAMP_POSITION, max_timestamp)
        crc = crc32c(self.body, crc32c(header[ATTRIBUTES_POSITION:]))
        _UINT32.pack_into(header, CRC_POSITION, crc)


class ValidatedBuiltBatch(ValidatedBatch):
    """The same of a batch that was built here, whose header need not be parsed."""

    __slots__ = ("_built",)

    def __init__(self, built: BuiltBatch) -> None:
        self._built = built
        self.header = bytearray(built.header)
        self.body = built.body
        self.size = built.size
        self.last_offset_delta = built.count - 1
        self.producer_id = built.producer_id
        self.max_timestamp = built.max_timestamp
        self.offset_of_max_timestamp = built.max_timestamp_index
        self.log_append_time_ms = -1
        self.crc_changed = False

    @property
    def batch(self) -> RecordBatch:  # type: ignore[override]
        """The batch before its header was changed, made when it is asked for."""
        return RecordBatch(bytes(self._built))

    @property
    def producer_epoch(self) -> int:
        return self._built.producer_epoch

    @property
    def base_sequence(self) -> int:
        return self._built.base_sequence

    @property
    def record_count(self) -> int:
        return self._built.count

    @property
    def is_transactional(self) -> bool:
        return False

    @property
    def is_control(self) -> bool:
        return False

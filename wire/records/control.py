"""Control records: markers in a log that are for the machinery, not for applications.

    key     int16 version = 0, int16 type
    value   of ABORT and COMMIT: int16 version = 0, int32 epoch of the transaction coordinator

A reader takes any version from 0 on (newer ones may only append fields), and passes over types that
it does not know. A control batch of the transaction coordinator holds exactly one record.
"""

from __future__ import annotations

from struct import Struct

from wire.records.batch import RecordBatch
from wire.records.crc32c import crc32c
from wire.records.decode.choose import tuples
from wire.records.encode.builder import build_batch
from wire.records.encode.built import BuiltBatch
from wire.records.encode.joins import encode_records
from wire.records.errors import InvalidRecord
from wire.records.format import CHECKED_HEAD, CONTROL_BIT, HEADER_SIZE, TRANSACTIONAL_BIT

_KEY = Struct(">hh")
_END_TRANSACTION_MARKER = Struct(">hi")


class ControlType:
    """The known types of control records."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


CONTROL_NAMES = {
    ControlType.ABORT: "ABORT",
    ControlType.COMMIT: "COMMIT",
    ControlType.LEADER_CHANGE: "LEADER_CHANGE",
    ControlType.SNAPSHOT_HEADER: "SNAPSHOT_HEADER",
    ControlType.SNAPSHOT_FOOTER: "SNAPSHOT_FOOTER",
    ControlType.KRAFT_VERSION: "KRAFT_VERSION",
    ControlType.KRAFT_VOTERS: "KRAFT_VOTERS",
}


def control_key(control_type: int) -> bytes:
    """Return the key of a control record of this type."""
    return _KEY.pack(0, control_type)


def parse_control_type(key: bytes | None) -> int:
    """Return the type in a control record's key; see `ControlType`, others may come.

    Raises:
        InvalidRecord: the key is shorter than 4 bytes, or its version negative.
    """
    if key is None or len(key) < _KEY.size:
        raise InvalidRecord(0, f"a control key of {0 if key is None else len(key)} bytes")
    version, control_type = _KEY.unpack_from(key)
    if version < 0:
        raise InvalidRecord(0, f"a control key of version {version}")
    return int(control_type)


def control_type_of(batch: RecordBatch) -> int:
    """Return the type of the first record of a control batch.

    Raises:
        InvalidRecord: there is no record, or no control key.
    """
    assert batch.is_control, batch
    records = tuples(batch)
    if not records:
        raise InvalidRecord(-1, "a control batch without records")
    return parse_control_type(records[0][2])


class EndTransactionMarker:
    """The end of a producer's transaction: COMMIT or ABORT, by the coordinator of that epoch."""

    __slots__ = ("control_type", "coordinator_epoch")

    def __init__(self, control_type: int, coordinator_epoch: int) -> None:
        self.control_type = control_type
        self.coordinator_epoch = coordinator_epoch

    @property
    def is_commit(self) -> bool:
        """True if the transaction was committed."""
        return self.control_type == ControlType.COMMIT

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EndTransactionMarker):
            return NotImplemented
        return (self.control_type, self.coordinator_epoch) == (
            other.control_type,
            other.coordinator_epoch,
        )

    def __hash__(self) -> int:
        return hash((self.control_type, self.coordinator_epoch))

    def __repr__(self) -> str:
        return f"EndTransactionMarker({CONTROL_NAMES[self.control_type]}, {self.coordinator_epoch})"


def parse_end_transaction_marker(
    key: bytes | None, value: bytes | None
) -> EndTransactionMarker | None:
    """Return the marker in a control record; None if it is of another type.

    Raises:
        InvalidRecord: the key is none, or the value is shorter than 6 bytes.
    """
    control_type = parse_control_type(key)
    if control_type not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    if value is None or len(value) < _END_TRANSACTION_MARKER.size:
        raise InvalidRecord(0, f"a marker of {0 if value is None else len(value)} bytes")
    version, coordinator_epoch = _END_TRANSACTION_MARKER.unpack_from(value)
    if version < 0:
        raise InvalidRecord(0, f"a marker of version {version}")
    return EndTransactionMarker(control_type, coordinator_epoch)


def build_end_transaction_marker(
    control_type: int,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """Return the control batch that ends a transaction; `control_type` is COMMIT or ABORT."""
    assert control_type in (ControlType.ABORT, ControlType.COMMIT), control_type
    return build_batch(
        [_END_TRANSACTION_MARKER.pack(0, coordinator_epoch)],
        keys=[control_key(control_type)],
        timestamps=timestamp,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )


class BuiltMarker(BuiltBatch):
    """The control batch that ends a transaction, built by this process: nobody has to read it.

    `bytes(marker)` equals what `build_end_transaction_marker` makes of the same.
    """

    __slots__ = ("coordinator_epoch", "is_commit")

    attributes = TRANSACTIONAL_BIT | CONTROL_BIT
    is_transactional = True

    def __init__(
        self,
        *,
        is_commit: bool,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        timestamp: int,
    ) -> None:
        key = control_key(ControlType.COMMIT if is_commit else ControlType.ABORT)
        value = _END_TRANSACTION_MARKER.pack(0, coordinator_epoch)
        body = b"".join(encode_records([value], [key], None, None))
        producer = producer_id, producer_epoch, -1
        head = CHECKED_HEAD.pack(self.attributes, 0, timestamp, timestamp, *producer, 1)
        self.coordinator_epoch = coordinator_epoch
        self.is_commit = is_commit
        self.producer_id, self.producer_epoch, self.base_sequence = producer
        self.size = HEADER_SIZE + len(body)
        self.crc = crc32c(body, crc32c(head, 0))
        self.checked = head, body
        self.count = 1
        self.last_offset_delta = 0
        self.max_timestamp = self.min_timestamp = timestamp
        self.first_null_key_index = -1

"""Control records: records that brokers and clients read, and applications do not see.

    key     int16 version = 0, int16 type
    value   of ABORT and COMMIT: int16 version = 0, int32 epoch of the transaction coordinator

A reader accepts any version from 0 on (newer versions may only append fields), and skips unknown
types. A control batch of the transaction coordinator holds exactly one record.
"""

from __future__ import annotations

from struct import Struct

from wire.records.batch import RecordBatch
from wire.records.decode.rows import plain_tuples
from wire.records.encode.builder import build_batch
from wire.records.encode.built import BuiltBatch
from wire.records.errors import InvalidRecord
from wire.records.format import CONTROL_BIT, TRANSACTIONAL_BIT
from wire.records.record import Record

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


CONTROL_NAMES = {number: name for name, number in vars(ControlType).items() if type(number) is int}


def control_key(control_type: int) -> bytes:
    """Return the key of a control record of this type."""
    return _KEY.pack(0, control_type)


def parse_control_type(key: bytes | None) -> int:
    """Return the type in a control record's key: a `ControlType`, or an unknown number.

    Raises:
        InvalidRecord: the key is shorter than 4 bytes, or its version negative.
    """
    if key is None or len(key) < _KEY.size:
        raise InvalidRecord(0, f"a control key of {0 if key is None else len(key)} bytes")
    version, control_type = _KEY.unpack_from(key)
    if version < 0:
        raise InvalidRecord(0, f"a control key of version {version}")
    return int(control_type)


def control_records(batch: RecordBatch) -> list[Record]:
    """Return the records of a control batch; no records if compaction has emptied it.

    The plain loop reads them, because it is the fastest for a batch of one record.

    Raises as `RecordBatch.records` does.
    """
    if batch.record_count == 0:
        return []
    return [Record(fields) for fields in plain_tuples(batch, batch.payload())]


def control_type_of(batch: RecordBatch) -> int:
    """Return the type of the first record of a control batch.

    Raises:
        InvalidRecord: the batch has no records, or its first key is not a control key.
    """
    assert batch.is_control, batch
    records = control_records(batch)
    if not records:
        raise InvalidRecord(-1, "a control batch without records")
    return parse_control_type(records[0].key)


class EndTransactionMarker:
    """A marker that ends a producer's transaction, with the epoch of the coordinator."""

    __slots__ = ("control_type", "coordinator_epoch")

    def __init__(self, control_type: int, coordinator_epoch: int) -> None:
        self.control_type = control_type
        self.coordinator_epoch = coordinator_epoch

    @property
    def is_commit(self) -> bool:
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
    """Return the marker in a control record; None for a record of another type.

    Raises:
        InvalidRecord: the key is not a control key, or the value is shorter than 6 bytes.
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
    """Return a control batch with a marker that ends a transaction.

    `control_type` is COMMIT or ABORT.
    """
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
    """A control batch with one `marker` that this process has built: see `BuiltBatch`.

    `bytes(batch)` equals the result of `build_end_transaction_marker` at offset 0.
    """

    __slots__ = ("marker",)

    attributes = TRANSACTIONAL_BIT | CONTROL_BIT
    is_transactional = True
    is_control = True

    def __init__(
        self,
        marker: EndTransactionMarker,
        *,
        producer_id: int,
        producer_epoch: int,
        timestamp: int,
    ) -> None:
        assert marker.control_type in (ControlType.ABORT, ControlType.COMMIT), marker
        self.marker = marker
        super().__init__(
            [_END_TRANSACTION_MARKER.pack(0, marker.coordinator_epoch)],
            keys=[control_key(marker.control_type)],
            timestamps=timestamp,
            producer=(producer_id, producer_epoch, -1),
        )

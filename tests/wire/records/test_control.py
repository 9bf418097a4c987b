"""Control records: marker vectors, tolerance for newer versions, and broken keys."""

from __future__ import annotations

import pytest

from tests.wire.records.batches import NOW
from wire.records import InvalidRecord, RecordBatch, build_batch, tuples
from wire.records.control import (
    CONTROL_NAMES,
    BuiltMarker,
    ControlType,
    EndTransactionMarker,
    build_end_transaction_marker,
    control_key,
    control_records,
    control_type_of,
    parse_control_type,
    parse_end_transaction_marker,
)

VECTORS = {
    ControlType.COMMIT: (
        "000000000000002a00000042ffffffff02ad320ccb0030000000000000018bcfe568000000018bcfe568"
        "0000000000000003e80003ffffffff000000012000000008000000010c00000000000700"
    ),
    ControlType.ABORT: (
        "000000000000002a00000042ffffffff02590cda830030000000000000018bcfe568000000018bcfe568"
        "0000000000000003e80003ffffffff000000012000000008000000000c00000000000700"
    ),
}


@pytest.mark.parametrize(("control_type", "encoded"), VECTORS.items())
def test_marker_vectors(control_type: int, encoded: str) -> None:
    built = build_end_transaction_marker(
        control_type,
        producer_id=1000,
        producer_epoch=3,
        coordinator_epoch=7,
        timestamp=NOW,
        base_offset=42,
    )
    assert built.hex() == encoded
    batch = RecordBatch(bytes.fromhex(encoded))
    assert batch.size == 78
    assert batch.is_valid_crc()
    assert batch.is_control
    assert batch.is_transactional
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (1000, 3, -1)
    assert batch.last_sequence == -1
    assert control_type_of(batch) == control_type
    ((offset, timestamp, key, value, headers),) = tuples(batch)
    assert (offset, timestamp, headers) == (42, NOW, ())
    marker = parse_end_transaction_marker(key, value)
    assert marker == EndTransactionMarker(control_type, 7)
    assert marker is not None
    assert marker.is_commit == (control_type == ControlType.COMMIT)
    assert CONTROL_NAMES[control_type] in repr(marker)


@pytest.mark.parametrize("control_type", VECTORS)
def test_a_built_marker_is_the_batch_that_the_builder_makes(control_type: int) -> None:
    built = BuiltMarker(
        EndTransactionMarker(control_type, 7), producer_id=1000, producer_epoch=3, timestamp=NOW
    )
    wanted = build_end_transaction_marker(
        control_type, producer_id=1000, producer_epoch=3, coordinator_epoch=7, timestamp=NOW
    )
    assert bytes(built) == wanted
    batch = RecordBatch(wanted)
    for name in ("attributes", "crc", "size", "is_transactional", "is_control", "max_timestamp"):
        assert getattr(built, name) == getattr(batch, name), name
    assert built.first_null_key_index == -1
    assert built.marker == EndTransactionMarker(control_type, 7)


def test_control_records_are_those_of_the_general_reader() -> None:
    batch = RecordBatch(bytes.fromhex(VECTORS[ControlType.COMMIT]))
    assert control_records(batch) == list(batch.records())


def test_newer_versions_are_read_as_the_first() -> None:
    assert parse_control_type(b"\x00\x09\x00\x01more") == ControlType.COMMIT
    marker = parse_end_transaction_marker(control_key(0), b"\x00\x05\x00\x00\x00\x02more")
    assert marker == EndTransactionMarker(ControlType.ABORT, 2)


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x01"])
def test_bad_keys(key: bytes | None) -> None:
    with pytest.raises(InvalidRecord, match="control key"):
        parse_control_type(key)


@pytest.mark.parametrize("value", [None, b"\x00\x00\x00\x00\x00", b"\xff\xff\x00\x00\x00\x00"])
def test_bad_marker_values(value: bytes | None) -> None:
    with pytest.raises(InvalidRecord, match="marker"):
        parse_end_transaction_marker(control_key(1), value)


@pytest.mark.parametrize("control_type", [-1, 2, 3, 6, 99])
def test_other_types_are_no_markers(control_type: int) -> None:
    assert parse_control_type(control_key(control_type)) == control_type
    assert parse_end_transaction_marker(control_key(control_type), None) is None


def test_a_control_batch_without_records_is_invalid() -> None:
    buffer = bytearray(build_batch([b"v"], timestamps=NOW, control=True)[:61])
    buffer[8:12] = (49).to_bytes(4, "big")
    buffer[57:61] = bytes(4)
    with pytest.raises(InvalidRecord, match="without records"):
        control_type_of(RecordBatch(buffer))

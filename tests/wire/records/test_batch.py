"""The batch header: vectors, derived values, stamping, walking, and broken frames."""

from __future__ import annotations

import pytest

from tests.wire.records.batches import NOW, TWO_RECORDS
from wire.records import (
    CorruptBatch,
    Record,
    RecordBatch,
    TimestampType,
    UnsupportedCodec,
    build_batch,
    iter_batches,
    scan,
    stamp,
    tuples,
)
from wire.records.batch import increment_sequence

SEQUENCE_MAX = (1 << 31) - 1


def test_vector_reads() -> None:
    batch = RecordBatch(TWO_RECORDS)
    assert batch.size == len(TWO_RECORDS) == 88
    assert batch.base_offset == 0
    assert batch.partition_leader_epoch == -1
    assert batch.magic == 2
    assert batch.attributes == 0
    assert batch.codec == 0
    assert batch.timestamp_type == TimestampType.CREATE_TIME
    assert not batch.is_transactional
    assert not batch.is_control
    assert not batch.has_delete_horizon
    assert batch.delete_horizon_ms is None
    assert batch.producer_id == -1
    assert batch.last_offset_delta == 1
    assert (batch.last_offset, batch.next_offset) == (1, 2)
    assert (batch.base_timestamp, batch.max_timestamp) == (NOW, NOW + 5)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)
    assert batch.last_sequence == -1
    assert batch.record_count == 2
    assert batch.is_valid_crc()
    assert batch.compute_crc() == batch.crc
    assert list(batch.records()) == [
        (0, NOW, b"k", b"v", ()),
        (1, NOW + 5, None, b"v2", (("h1", b"x"), ("h2", None))),
    ]


def test_vector_builds() -> None:
    built = build_batch(
        [b"v", b"v2"],
        keys=[b"k", None],
        timestamps=[NOW, NOW + 5],
        headers=[None, [("h1", b"x"), ("h2", None)]],
    )
    assert built.hex() == TWO_RECORDS.hex()


def test_records_have_names() -> None:
    record = next(RecordBatch(TWO_RECORDS).records())
    assert isinstance(record, Record)
    assert (record.offset, record.timestamp, record.key, record.value) == (0, NOW, b"k", b"v")
    assert record.headers == ()
    assert repr(record) == (
        "Record(offset=0, timestamp=1700000000000, key=b'k', value=b'v', headers=())"
    )


@pytest.mark.parametrize(
    ("sequence", "increment", "expected"),
    [(0, 5, 5), (SEQUENCE_MAX, 1, 0), (SEQUENCE_MAX - 1, 3, 1), (SEQUENCE_MAX, 0, SEQUENCE_MAX)],
)
def test_sequences_wrap(sequence: int, increment: int, expected: int) -> None:
    assert increment_sequence(sequence, increment) == expected


def test_last_sequence_wraps() -> None:
    built = build_batch(
        [b"v"] * 3, timestamps=NOW, producer_id=9, producer_epoch=2, base_sequence=SEQUENCE_MAX - 1
    )
    batch = RecordBatch(built)
    assert (batch.producer_id, batch.producer_epoch) == (9, 2)
    assert batch.last_sequence == 0


def test_log_append_time_is_the_time_of_every_record() -> None:
    built = build_batch([b"a", b"b"], timestamps=[NOW, NOW + 9], timestamp_type=1)
    assert [record.timestamp for record in RecordBatch(built).records()] == [NOW + 9] * 2


def test_flags() -> None:
    built = bytearray(build_batch([b"v"], timestamps=NOW, transactional=True, control=True))
    built[22] |= 0x40
    batch = RecordBatch(built)
    assert batch.is_transactional
    assert batch.is_control
    assert batch.has_delete_horizon
    assert batch.delete_horizon_ms == NOW


def test_stamp_keeps_the_checksum() -> None:
    buffer = bytearray(b"before" + TWO_RECORDS)
    stamp(buffer, base_offset=1 << 40, leader_epoch=7, position=6)
    batch = RecordBatch(buffer, 6)
    assert (batch.base_offset, batch.partition_leader_epoch) == (1 << 40, 7)
    assert batch.crc == RecordBatch(TWO_RECORDS).crc
    assert batch.is_valid_crc()
    assert [record.offset for record in batch.records()] == [1 << 40, (1 << 40) + 1]


def test_stamp_of_times_makes_a_new_checksum() -> None:
    buffer = bytearray(TWO_RECORDS)
    stamp(
        memoryview(buffer), base_offset=0, leader_epoch=0, timestamp_type=1, max_timestamp=NOW + 77
    )
    batch = RecordBatch(buffer)
    assert batch.timestamp_type == TimestampType.LOG_APPEND_TIME
    assert batch.max_timestamp == NOW + 77
    assert batch.is_valid_crc()
    assert batch.crc != RecordBatch(TWO_RECORDS).crc
    stamp(buffer, base_offset=0, leader_epoch=0, timestamp_type=0, max_timestamp=NOW + 5)
    assert RecordBatch(buffer).crc == RecordBatch(TWO_RECORDS).crc


def test_a_batch_emptied_by_compaction_has_no_records() -> None:
    buffer = bytearray(TWO_RECORDS[:61])
    buffer[8:12] = (61 - 12).to_bytes(4, "big")
    buffer[57:61] = bytes(4)
    for codec in (0, 1, 4):
        buffer[22] = codec
        batch = RecordBatch(buffer)
        assert list(batch.records()) == tuples(batch) == []
        assert len(batch.columns()) == 0
        assert batch.columns().offsets.tolist() == batch.columns().values() == []
        assert scan(batch).max_timestamp == -1
    assert batch.last_offset == 1


def test_iter_batches_ignores_the_incomplete_tail() -> None:
    data = TWO_RECORDS * 3
    assert [batch.size for batch in iter_batches(data)] == [88] * 3
    for end in range(len(data)):
        assert len(list(iter_batches(data[:end]))) == end // 88
        assert len(list(iter_batches(memoryview(data), end=end))) == end // 88
    assert [batch.size for batch in iter_batches(b"xy" + data, position=2 + 88)] == [88] * 2


@pytest.mark.parametrize("length", [-1, 0, 13, 14, 48])
def test_iter_batches_refuses_impossible_lengths(length: int) -> None:
    data = bytearray(TWO_RECORDS * 2)
    data[88 + 8 : 88 + 12] = length.to_bytes(4, "big", signed=True)
    batches = iter_batches(data)
    assert next(batches).size == 88
    with pytest.raises(CorruptBatch):
        next(batches)


def test_iter_batches_refuses_unknown_magic() -> None:
    data = bytearray(TWO_RECORDS)
    data[16] = 3
    with pytest.raises(CorruptBatch, match="magic 3"):
        list(iter_batches(data))


@pytest.mark.parametrize("size", [0, 16, 60, 61, 87])
def test_cut_batch_is_corrupt(size: int) -> None:
    with pytest.raises(CorruptBatch):
        RecordBatch(TWO_RECORDS[:size])


def test_every_flipped_bit_under_the_checksum_is_found() -> None:
    for position in range(17, 88):
        data = bytearray(TWO_RECORDS)
        data[position] ^= 0x10
        batch = RecordBatch(data)
        assert not batch.is_valid_crc(), position
        with pytest.raises(CorruptBatch, match="crc"):
            batch.check_crc()


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codecs(codec: int) -> None:
    data = bytearray(TWO_RECORDS)
    data[22] = codec
    with pytest.raises(UnsupportedCodec):
        RecordBatch(data).records()
    with pytest.raises(UnsupportedCodec):
        scan(RecordBatch(data))


def test_bytes_after_the_batch_are_cut_off() -> None:
    batch = RecordBatch(TWO_RECORDS + b"more")
    assert bytes(batch.buffer) == TWO_RECORDS

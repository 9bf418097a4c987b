"""kafka-python and aiokafka build the same batches, and read ours."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from hypothesis import given, settings
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from tests.wire.records.batches import NOW, build, columns, expected_records
from wire.records import Record, RecordBatch, build_batch, tuples
from wire.records.legacy import LegacyBatch, encode_message
from wire.records.legacy_conversion import down_convert

pytestmark = pytest.mark.interop

# Magic 0 with lz4 is covered by its vectors: kafka-python needs xxhash for it.
OLD_FORMATS = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (1, 3)]
BUILDERS = {"kafka-python": DefaultRecordBatchBuilder, "aiokafka": AioBuilder}


def built_by(name: str, arguments: dict[str, Any], codec: int = 0) -> bytes:
    """Build the same columns with another library."""
    builder = BUILDERS[name](
        magic=2,
        compression_type=codec,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 30,
    )
    count = len(arguments["values"])
    stamps = arguments["timestamps"]
    stamps = [stamps] * count if isinstance(stamps, int) else stamps
    for index, value in enumerate(arguments["values"]):
        key = arguments["keys"][index] if arguments["keys"] else None
        headers = arguments["headers"][index] if arguments["headers"] else None
        appended = builder.append(
            index, timestamp=stamps[index], key=key, value=value, headers=headers or []
        )
        assert appended is not None
    return bytes(builder.build())


def comparable(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the columns, limited to the features of these builders."""
    stamps = arguments["timestamps"]
    earliest = stamps if isinstance(stamps, int) else min(stamps)
    if earliest < 0:
        stamps = NOW
    return {**arguments, "timestamps": stamps, "timestamp_type": 0, "base_offset": 0}


@pytest.mark.parametrize("name", BUILDERS)
@given(arguments=columns(count_max=150))
@settings(max_examples=60)
def test_the_same_bytes(name: str, arguments: dict[str, Any]) -> None:
    arguments = comparable(arguments)
    theirs = bytearray(built_by(name, arguments))
    theirs[12:16] = b"\xff\xff\xff\xff"  # a client has no leader epoch; these libraries write 0
    assert build(arguments).hex() == theirs.hex()


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("codec", [1, 2, 3, 4])
@given(arguments=columns(count_max=100))
@settings(max_examples=8)
def test_we_read_theirs(name: str, codec: int, arguments: dict[str, Any]) -> None:
    arguments = comparable(arguments)
    batch = RecordBatch(built_by(name, arguments, codec))
    assert batch.is_valid_crc()
    assert tuples(batch) == expected_records(arguments)


@pytest.mark.parametrize("reader", [DefaultRecordBatch, AioBatch])
@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
@given(arguments=columns(count_max=100))
@settings(max_examples=8)
def test_they_read_ours(reader: Any, codec: int, arguments: dict[str, Any]) -> None:
    arguments = comparable(arguments)
    batch = reader(bytearray(build(arguments, codec=codec)))
    assert batch.validate_crc()
    rows = [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]
    assert rows == expected_records(arguments)


@pytest.mark.parametrize(("magic", "codec"), OLD_FORMATS)
def test_old_message_sets_of_kafka_python(magic: int, codec: int) -> None:
    builder = LegacyRecordBatchBuilder(magic=magic, compression_type=codec, batch_size=1 << 20)
    for index in range(5):
        builder.append(index, timestamp=NOW + index, key=b"k", value=b"v" * index)
    data = bytes(builder.build())
    expected = [
        Record((index, NOW + index if magic else -1, b"k", b"v" * index, ())) for index in range(5)
    ]
    found: list[Record] = []
    position = 0
    while position < len(data):
        batch = LegacyBatch(data, position)
        assert batch.is_valid_crc()
        found += batch.records()
        position += batch.size
    assert found == expected
    if codec == 0:
        assert data == b"".join(
            encode_message(offset=r[0], magic=magic, timestamp=r[1], key=r[2], value=r[3])
            for r in expected
        )


@pytest.mark.parametrize(("magic", "codec"), OLD_FORMATS)
def test_kafka_python_reads_what_we_convert_down(magic: int, codec: int) -> None:
    built = build_batch(
        [b"v" * index for index in range(5)], timestamps=NOW, base_offset=100, codec=codec
    )
    data = down_convert(built, magic=magic, first_offset=0)
    records = MemoryRecords(data)
    rows = []
    while records.has_next():
        batch = records.next_batch()
        assert batch.validate_crc()
        rows += [(r.offset, r.value) for r in batch]
    assert rows == [(100 + index, b"v" * index) for index in range(5)]
